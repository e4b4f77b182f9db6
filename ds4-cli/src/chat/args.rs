//! The command line of `ds4` without a command.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ds4_model::{Options, Precision, Sampler};

use super::talk::Thinking;
use crate::running::{backend, share, temperature};

/// What `--help TOPIC` can show: the topic, and the heading of its options.
pub(crate) const TOPICS: [(&str, &str); 4] = [
    ("runtime", RUNTIME),
    ("sampling", SAMPLING),
    ("thinking", THINKING),
    ("diagnostics", DIAGNOSTICS),
];
const RUNTIME: &str = "Model and runtime";
const SAMPLING: &str = "Prompt and sampling";
const THINKING: &str = "Thinking";
const DIAGNOSTICS: &str = "Diagnostics";

#[derive(clap::Args, Debug)]
pub(crate) struct Chat {
    /// The model.
    #[arg(short, long, value_name = "FILE", default_value = "ds4flash.gguf", help_heading = RUNTIME)]
    pub(crate) model: PathBuf,
    /// Longest conversation in tokens, answers included; more than the model can is what it can.
    #[arg(short, long = "ctx", value_name = "N", default_value = "32768", help_heading = RUNTIME)]
    pub(crate) context: NonZeroUsize,
    /// Threads; 0 is one a core.
    #[arg(short, long, value_name = "N", default_value_t = 0, env = crate::env::THREADS, hide_env_values = true, help_heading = RUNTIME)]
    pub(crate) threads: usize,
    /// Where to compute: cpu or auto.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = backend, help_heading = RUNTIME)]
    pub(crate) backend: String,
    /// Compute on the processor, as this build always does.
    #[arg(long, help_heading = RUNTIME)]
    pub(crate) cpu: bool,
    /// Tokens of a prompt computed in one step.
    #[arg(long, value_name = "N", default_value = "512", help_heading = RUNTIME)]
    pub(crate) prefill_chunk: NonZeroUsize,
    /// Compute with weights as they are and activations in single precision: slower, and exact.
    #[arg(long, help_heading = RUNTIME)]
    pub(crate) quality: bool,
    /// Bring all weights into memory first.
    #[arg(long, help_heading = RUNTIME)]
    pub(crate) warm_weights: bool,

    /// Answer this and end.
    #[arg(short, long, value_name = "TEXT", group = "source", allow_hyphen_values = true, help_heading = SAMPLING)]
    pub(crate) prompt: Option<String>,
    /// Answer what is in this file and end.
    #[arg(long, value_name = "FILE", group = "source", help_heading = SAMPLING)]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Instructions before the conversation, also as -sys TEXT; an empty text is none.
    #[arg(long, value_name = "TEXT", default_value = "You are a helpful assistant", allow_hyphen_values = true, help_heading = SAMPLING)]
    pub(crate) system: String,
    /// Give the model the prompt as it is: no markers of a chat but those that it spells out.
    #[arg(long, visible_alias = "raw-prompt", help_heading = SAMPLING)]
    pub(crate) raw: bool,
    /// Most tokens of an answer.
    #[arg(short = 'n', long, value_name = "N", default_value = "50000", help_heading = SAMPLING)]
    pub(crate) tokens: NonZeroUsize,
    /// 0 takes the likeliest token, 1 draws as the model says; up to 100.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = temperature, help_heading = SAMPLING)]
    pub(crate) temp: f32,
    /// Only the likeliest tokens that together have this probability; 1 is all.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = share, help_heading = SAMPLING)]
    pub(crate) top_p: f32,
    /// Only tokens with at least this share of the likeliest one's probability; 0 is all.
    #[arg(long, value_name = "F", default_value_t = 0.05, value_parser = share, help_heading = SAMPLING)]
    pub(crate) min_p: f32,
    /// Only so many of the likeliest tokens, up to 1024; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024), help_heading = SAMPLING)]
    pub(crate) top_k: u16,
    /// The same seed draws the same answer; 0 is another one every time.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SAMPLING)]
    pub(crate) seed: u64,

    /// Think before answering; the default.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"], help_heading = THINKING)]
    pub(crate) think: bool,
    /// Think as hard as the model can; plain thinking when the context is below 393216 tokens.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"], help_heading = THINKING)]
    pub(crate) think_max: bool,
    /// Answer at once.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"], help_heading = THINKING)]
    pub(crate) nothink: bool,

    /// Show what is in the file.
    #[arg(long, group = "look", help_heading = DIAGNOSTICS)]
    pub(crate) inspect: bool,
    /// Show the tokens of the prompt as it is written; no weights are looked at.
    #[arg(long, group = "look", help_heading = DIAGNOSTICS)]
    pub(crate) dump_tokens: bool,
    /// Write the logits after the prompt, as JSON.
    #[arg(long, value_name = "FILE", group = "look", help_heading = DIAGNOSTICS)]
    pub(crate) dump_logits: Option<PathBuf>,
    /// Write the likeliest answer with alternatives to each of its tokens, as JSON.
    #[arg(long, value_name = "FILE", group = "look", help_heading = DIAGNOSTICS)]
    pub(crate) dump_logprobs: Option<PathBuf>,
    /// How many alternatives, up to 128.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=128), requires = "dump_logprobs", help_heading = DIAGNOSTICS)]
    pub(crate) logprobs_top_k: u8,
    /// Decode N tokens and compare the logits with those of reading the same tokens at once; exit code 1 when the
    /// likeliest token differs.
    #[arg(long, value_name = "N", group = "look", help_heading = DIAGNOSTICS)]
    pub(crate) decode_consistency: Option<usize>,
    /// How well the model foretells the text of this file, after its first 32 tokens.
    #[arg(long, value_name = "FILE", group = "look", conflicts_with = "source", help_heading = DIAGNOSTICS)]
    pub(crate) perplexity_file: Option<PathBuf>,
}

impl Chat {
    /// Options of the engine.
    pub(crate) fn options(&self, prefill_rows: usize) -> Options {
        let mut options = Options::default();
        options.threads = self.threads;
        options.context = Some(self.context.get());
        options.prefill_rows = prefill_rows;
        if self.quality {
            options.precision = Precision::Exact;
        }
        options
    }

    /// How tokens of a vocabulary of `vocab_len` are drawn.
    pub(crate) fn sampler(&self, vocab_len: usize) -> Sampler {
        let seed = match self.seed {
            0 => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(1, |d| d.as_nanos() as u64),
            seed => seed,
        };
        Sampler {
            temperature: self.temp,
            top_p: self.top_p,
            min_p: self.min_p,
            top_k: self.top_k.into(),
            vocab_len,
            ..Sampler::seeded(seed)
        }
    }

    /// Instructions, if there are any.
    pub(crate) fn system(&self) -> Option<&str> {
        Some(self.system.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn thinking(&self) -> Thinking {
        if self.nothink {
            Thinking::Off
        } else if self.think_max {
            Thinking::Max
        } else {
            Thinking::On
        }
    }

    /// Whether it is about the prompt, not about an answer.
    pub(crate) fn needs_prompt(&self) -> bool {
        self.dump_tokens
            || self.dump_logits.is_some()
            || self.dump_logprobs.is_some()
            || self.decode_consistency.is_some()
    }
}
