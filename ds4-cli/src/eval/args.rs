//! The command line of `ds4-eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ds4_model::Sampler;
use ds4_model::eval::{Budget, Suite};

use crate::running::Running;
use crate::sampling::Sampling;
use crate::thinking::ThinkingFlags;

/// The temperature, where nobody says: what a model knows best.
const TEMPERATURE: f32 = 0.0;

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
    #[command(flatten)]
    pub(crate) sampling: Sampling,
    #[command(flatten)]
    pub(crate) thinking: ThinkingFlags,
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
    /// Check the graders on answers of every form that this program knows the grades of, and ask nothing; a grade that is
    /// another is a failure.
    #[arg(long, conflicts_with_all = ["trace", "regrade_trace", "url", "model", "list_cases", "json"])]
    pub(crate) self_test_extractors: bool,
    /// Write the result as JSON; the file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Milliseconds between two questions, so that a person can follow.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=600_000))]
    pub(crate) pause_ms: u32,
    /// A line a question instead of a bar.
    #[arg(long)]
    pub(crate) plain: bool,
}

fn suite(name: &str) -> Result<Suite, String> {
    Suite::by_name(name).ok_or_else(|| "expected core, hard, hard-smoke or all".to_owned())
}

impl Args {
    /// How hot answers are drawn.
    pub(crate) fn temperature(&self) -> f32 {
        self.sampling.temperature(TEMPERATURE)
    }

    /// How the answer to question `index` of a run with `seed` is drawn.
    pub(crate) fn sampler(&self, seed: u64, index: usize, vocab_len: usize) -> Sampler {
        let seed = seed.wrapping_add(index as u64);
        self.sampling.sampler(TEMPERATURE, seed, vocab_len)
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
