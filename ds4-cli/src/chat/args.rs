//! The command line of `ds4` without a command.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ds4_model::Sampler;

use crate::imatrix::Dataset;
use crate::running::Running;
use crate::sampling::Sampling;
use crate::thinking::{Thinking, ThinkingFlags};

const RUNTIME: &str = "Model and runtime";
const SAMPLING: &str = "Prompt and sampling";
const THINKING: &str = "Thinking";
const DIAGNOSTICS: &str = "Diagnostics";

#[derive(clap::Args, Debug)]
pub(crate) struct Chat {
    #[command(flatten, next_help_heading = RUNTIME)]
    pub(crate) running: Running,
    /// Longest conversation in tokens, answers included; more than the model can is what it can.
    #[arg(short, long = "ctx", value_name = "N", default_value = "32768", help_heading = RUNTIME)]
    pub(crate) context: NonZeroUsize,

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
    #[command(flatten, next_help_heading = SAMPLING)]
    pub(crate) sampling: Sampling,
    #[command(flatten, next_help_heading = THINKING)]
    pub(crate) thinking: ThinkingFlags,

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
    #[command(flatten, next_help_heading = DIAGNOSTICS)]
    pub(crate) dataset: Dataset,
    /// Write which routed experts of each layer the answers used, and how often the same ones, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "look", help_heading = DIAGNOSTICS)]
    pub(crate) expert_profile: Option<PathBuf>,
}

impl Chat {
    /// How tokens of a vocabulary of `vocab_len` are drawn.
    pub(crate) fn sampler(&self, vocab_len: usize) -> Sampler {
        self.sampling.sampler(1.0, self.sampling.seed(), vocab_len)
    }

    /// Instructions, if there are any.
    pub(crate) fn system(&self) -> Option<&str> {
        Some(self.system.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn thinking(&self) -> Thinking {
        self.thinking.asked().unwrap_or_default()
    }

    /// Whether it is about the prompt, not about an answer.
    pub(crate) fn needs_prompt(&self) -> bool {
        self.dump_tokens
            || self.dump_logits.is_some()
            || self.dump_logprobs.is_some()
            || self.decode_consistency.is_some()
    }
}
