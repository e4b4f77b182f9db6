//! The command line of `ds4`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

/// DeepSeek-V4 from GGUF files.
#[derive(clap::Parser)]
#[command(name = "ds4", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show what is in a GGUF: metadata, tensors, sizes, bytes a decoded token reads, what cannot be decoded.
    Inspect(Inspect),
    /// Measure tokens a second of prompt and answer, on token ids without meaning.
    Bench(Bench),
}

#[derive(clap::Args)]
pub(crate) struct Inspect {
    /// The files; the first part of a split model stands for all of them.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// One JSON document a file.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Bench {
    /// The model.
    #[arg(short, long)]
    pub(crate) model: PathBuf,
    /// Threads; 0 is one a core.
    #[arg(short, long, default_value_t = 0)]
    pub(crate) threads: usize,
    /// Tokens of the prompt.
    #[arg(short, long, default_value = "256")]
    pub(crate) prompt: NonZeroUsize,
    /// Tokens computed one by one after it.
    #[arg(short, long = "gen", default_value = "32")]
    pub(crate) generate: NonZeroUsize,
    /// A JSON document instead of two lines.
    #[arg(long)]
    pub(crate) json: bool,
}
