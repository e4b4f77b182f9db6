//! The command line of `ds4-bench`.

use std::path::PathBuf;

use ds4_model::measure::{FrontierError, Frontiers, Growth};

use crate::running::Running;

/// Measure tokens a second of prompt and answer where the context grows.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "ds4-bench", version)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) running: Running,
    /// A text, read as it is.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["chat_prompt_file", "semantic_smoke", "decode_self_check"])]
    pub(crate) prompt_file: Option<PathBuf>,
    /// A text, read as one message of a chat without thinking.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt_file")]
    pub(crate) chat_prompt_file: Option<PathBuf>,
    /// Instructions before that message (also -sys).
    #[arg(long, value_name = "TEXT", requires = "chat_prompt_file")]
    pub(crate) system: Option<String>,
    /// First context to measure at, in tokens.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) ctx_start: usize,
    /// Last context to measure at.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub(crate) ctx_max: usize,
    /// Tokens from one to the next.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    step_incr: usize,
    /// More than 1: each is so many times the one before, rounded up, instead.
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    step_mul: f64,
    /// Tokens to have room for [default: ctx-max + gen-tokens + 1].
    #[arg(long, value_name = "N")]
    ctx_alloc: Option<usize>,
    /// Tokens drawn at each; 0 measures prompts alone.
    #[arg(
        short = 'n',
        long,
        visible_alias = "tokens",
        value_name = "N",
        default_value_t = 128
    )]
    pub(crate) gen_tokens: usize,
    /// Write the table to this file, instead of standard output; it is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write all that is known as JSON; it is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draw both speeds over the context; it is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the logits at each into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_frontier_logits_dir: Option<PathBuf>,
    /// Write which routed experts of each layer prompt and drawn tokens used, and how often the same ones, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) expert_profile: Option<PathBuf>,
    /// Most bytes of the copy of the session that brings it back [default: DS4_BENCH_SNAPSHOT_MAX_BYTES, else 1 GiB]; 0 goes
    /// back without one.
    #[arg(long, value_name = "N")]
    pub(crate) snapshot_max_bytes: Option<u64>,
    /// Show what was drawn, on standard error.
    #[arg(long)]
    pub(crate) show_output: bool,
    /// First ask what 2 + 2 is; a wrong answer is a failure.
    #[arg(long)]
    pub(crate) semantic_smoke: bool,
    /// Instead: draw tokens one by one and compare the logits with those of one step over all; a difference is a failure.
    #[arg(long)]
    pub(crate) decode_self_check: bool,
    /// Instead: read the prompt token by token after ctx-start, up to ctx-max, and compare what the model would have said
    /// at each with what it says when it reads them in one go; a difference is a failure.
    #[arg(long, conflicts_with = "decode_self_check")]
    pub(crate) teacher_force_control: bool,
    /// With that: the hash that its tokens must have.
    #[arg(long, value_name = "HASH", requires = "teacher_force_control", value_parser = fnv64)]
    pub(crate) teacher_force_expect_fnv64: Option<u64>,
}

fn fnv64(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected up to 16 hexadecimal digits".to_owned())
}

impl Args {
    /// Where to measure.
    pub(crate) fn frontiers(&self) -> Result<Frontiers, FrontierError> {
        let growth = if self.step_mul == 1.0 {
            Growth::By(self.step_incr)
        } else {
            Growth::Times(self.step_mul)
        };
        Frontiers::new(self.ctx_start, self.ctx_max, growth)
    }

    /// Tokens to have room for.
    pub(crate) fn context(&self) -> usize {
        let needed = self.ctx_max.saturating_add(self.gen_tokens);
        self.ctx_alloc.unwrap_or(needed.saturating_add(1))
    }
}
