//! How a model reads a text: what `imatrix` and `compare` share.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Options};

use crate::threads::Threads;

#[derive(clap::Args)]
pub(crate) struct Reading {
    /// Tokens of a piece, at least 2; each is read from an empty timeline.
    #[arg(long, default_value = "512", value_parser = piece)]
    chunk: usize,
    /// Most pieces to read.
    #[arg(long)]
    chunks: Option<NonZeroUsize>,
    /// Take control tokens that the text spells out as control tokens.
    #[arg(long)]
    special: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

fn piece(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(tokens) if tokens >= ds4_model::Reading::LEAST => Ok(tokens),
        _ => Err("expected a number of tokens, at least 2".to_owned()),
    }
}

impl Reading {
    /// The model at `path`, with a context of one piece; at most `prefill_rows` tokens are computed in one step.
    pub(crate) fn engine(&self, gguf: Gguf, path: &Path, prefill_rows: usize) -> Result<Engine> {
        let mut options = Options::default();
        options.threads = self.threads.count()?;
        options.context = Some(self.chunk);
        options.prefill_rows = prefill_rows;
        Engine::from_gguf(gguf, options).with_context(|| path.display().to_string())
    }

    /// As the library has it.
    pub(crate) fn reading(&self) -> ds4_model::Reading {
        let mut reading = ds4_model::Reading::default();
        reading.chunk = self.chunk;
        reading.chunks = self.chunks.map(Into::into);
        if self.special {
            reading.special = Special::All;
        }
        reading
    }
}

/// A text to read.
pub(crate) fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
