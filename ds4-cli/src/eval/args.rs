//! The command line of `ds4-eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ds4_model::Sampler;
use ds4_model::chat::{Effort, RenderOptions, ThinkMode};
use ds4_model::eval::{Budget, Suite};

use crate::running::{Running, share, temperature};

/// Ask questions with known answers and say how many were answered right.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "ds4-eval", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Ask a server instead of a file: the base of its OpenAI routes, such as http://127.0.0.1:8000/v1 (no https).
    #[arg(long, value_name = "URL", conflicts_with = "model")]
    pub(crate) url: Option<String>,
    /// The key that the server wants.
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) api_key: Option<String>,
    /// The model's name at the server.
    #[arg(long, value_name = "NAME", requires = "url", default_value = "default")]
    pub(crate) remote_model: String,
    /// Seconds that the server may take for an answer.
    #[arg(long, value_name = "S", requires = "url", default_value_t = 3600)]
    pub(crate) timeout: u64,
    /// Questions of your own, one JSON object a line.
    #[arg(long, value_name = "FILE", conflicts_with = "suite")]
    pub(crate) cases: Option<PathBuf>,
    /// Built-in questions: core, hard, hard-smoke or all.
    #[arg(long, default_value = "core", value_parser = suite)]
    pub(crate) suite: Suite,
    /// The first N questions alone.
    #[arg(long, value_name = "N", conflicts_with = "case_sequence")]
    pub(crate) questions: Option<NonZeroUsize>,
    /// These questions alone, by their places from 1, in this order.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(crate) case_sequence: Vec<NonZeroUsize>,
    /// Show the questions and ask nothing.
    #[arg(long)]
    pub(crate) list_cases: bool,
    /// Most tokens of an answer.
    #[arg(short = 'n', long, value_name = "N", default_value = "16000")]
    tokens: NonZeroUsize,
    /// Tokens of context [default: what the longest question and answer can need].
    #[arg(short, long, value_name = "N")]
    pub(crate) ctx: Option<NonZeroUsize>,
    /// Temperature; 0 takes the likeliest token.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = temperature)]
    pub(crate) temp: f32,
    /// Only the likeliest tokens that together have this probability.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = share)]
    pub(crate) top_p: f32,
    /// Only tokens with at least this share of the likeliest one's probability.
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = share)]
    min_p: f32,
    /// Which random numbers; question i takes seed + i.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Think before answering, which is the default of a file.
    #[arg(long, conflicts_with_all = ["think_max", "nothink"])]
    think: bool,
    /// Think as hard as the model can.
    #[arg(long, conflicts_with = "nothink")]
    think_max: bool,
    /// Answer at once.
    #[arg(long)]
    nothink: bool,
    /// With so many tokens left, close thinking as soon as its end is likely.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    soft_limit_reply_budget: usize,
    /// How likely: among so many likeliest tokens.
    #[arg(long, value_name = "N", default_value_t = 3)]
    soft_limit_think_close_rank: usize,
    /// With so many tokens left, close thinking.
    #[arg(long, value_name = "N", default_value_t = 512)]
    hard_limit_reply_budget: usize,
    /// Write every question, answer and grade to this file, one JSON object a line; it is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// With --trace: questions that the file has a whole answer to are not asked again, those cut off are.
    #[arg(long, requires = "trace")]
    pub(crate) retry_incomplete: bool,
    /// Grade the answers of such a file again; no model is needed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "url", "model", "list_cases"])]
    pub(crate) regrade_trace: Option<PathBuf>,
    /// Write the result as JSON; the file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// A line a question instead of a bar.
    #[arg(long)]
    pub(crate) plain: bool,
}

fn suite(name: &str) -> Result<Suite, String> {
    Suite::by_name(name).ok_or_else(|| "expected core, hard, hard-smoke or all".to_owned())
}

impl Args {
    /// Thinking as the command line has it; `None` when it says nothing.
    pub(crate) fn thinking(&self) -> Option<ThinkMode> {
        match (self.nothink, self.think || self.think_max) {
            (true, _) => Some(ThinkMode::Off),
            (_, true) => Some(ThinkMode::On),
            _ => None,
        }
    }

    /// How hard to think, if the command line says.
    pub(crate) fn effort(&self) -> Option<Effort> {
        self.think_max.then_some(Effort::Max)
    }

    /// How a local model is asked.
    pub(crate) fn render(&self) -> RenderOptions {
        RenderOptions {
            think: self.thinking().unwrap_or_default(),
            effort: self.effort(),
            ..RenderOptions::default()
        }
    }

    /// How the answer to question `index` is drawn.
    pub(crate) fn sampler(&self, index: usize, vocab_len: usize) -> Sampler {
        Sampler {
            temperature: self.temp,
            top_p: self.top_p,
            min_p: self.min_p,
            vocab_len,
            ..Sampler::seeded(self.seed.wrapping_add(index as u64))
        }
    }

    /// How long an answer may be.
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            tokens: self.tokens.get(),
            soft: self.soft_limit_reply_budget,
            soft_rank: self.soft_limit_think_close_rank,
            hard: self.hard_limit_reply_budget,
        }
    }
}
