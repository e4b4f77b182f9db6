//! How a model reads a text: what `imatrix` and `compare` share.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_model::Options;
use ds4_model::tokenizer::Special;

#[derive(clap::Args)]
pub(crate) struct Reading {
    /// Tokens of a piece; each is read from an empty timeline.
    #[arg(long, default_value = "512")]
    pub(crate) chunk: NonZeroUsize,
    /// Most pieces to read.
    #[arg(long)]
    chunks: Option<NonZeroUsize>,
    /// Take control tokens that the text spells out as control tokens.
    #[arg(long)]
    special: bool,
    /// Threads; 0 is one a core.
    #[arg(short, long, default_value_t = 0, env = crate::env::THREADS, hide_env_values = true)]
    pub(crate) threads: usize,
}

impl Reading {
    /// Options of an engine whose context is one piece.
    pub(crate) fn engine(&self, prefill_rows: usize) -> Options {
        let mut options = Options::default();
        options.threads = self.threads;
        options.context = Some(self.chunk.get());
        options.prefill_rows = prefill_rows;
        options
    }

    pub(crate) fn chunks(&self) -> Option<usize> {
        self.chunks.map(Into::into)
    }

    pub(crate) fn special(&self) -> Special {
        if self.special {
            Special::All
        } else {
            Special::None
        }
    }
}

/// A text to read.
pub(crate) fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
