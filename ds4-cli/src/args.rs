//! The command line of `ds4`.

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
