//! How a model is opened and run: the flags that `ds4-bench`, `ds4-eval` and `ds4-agent` share, and what all programs take for
//! a backend, a temperature, a probability.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::{Engine, Options, Precision};

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Running {
    /// The model.
    #[arg(short, long, value_name = "FILE", default_value = "ds4flash.gguf")]
    pub(crate) model: PathBuf,
    /// Threads, at most 1024; 0 is one a core.
    #[arg(short, long, default_value_t = 0, value_parser = crate::args::threads, env = crate::env::THREADS, hide_env_values = true)]
    pub(crate) threads: usize,
    /// Tokens of a prompt computed in one step.
    #[arg(long, default_value = "512")]
    prefill_chunk: NonZeroUsize,
    /// Exact products instead of fast ones.
    #[arg(long)]
    quality: bool,
    /// Read all weights once before anything else, so that no page is waited for later.
    #[arg(long)]
    warm_weights: bool,
    /// Where to compute: cpu or auto.
    #[arg(long, default_value = "auto", value_parser = backend)]
    backend: String,
    /// The processor, which is also the default.
    #[arg(long, conflicts_with = "backend")]
    cpu: bool,
}

/// A backend that this build has.
pub(crate) fn backend(name: &str) -> Result<String, String> {
    match name {
        "cpu" | "auto" => Ok(name.to_owned()),
        _ => Err("this build computes on the processor alone; expected cpu or auto".to_owned()),
    }
}

fn within(text: &str, most: f32) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(n) if (0.0..=most).contains(&n) => Ok(n),
        _ => Err(format!("expected a number from 0 to {most}")),
    }
}

/// A temperature on a command line.
pub(crate) fn temperature(text: &str) -> Result<f32, String> {
    within(text, 100.0)
}

/// A probability on a command line.
pub(crate) fn share(text: &str) -> Result<f32, String> {
    within(text, 1.0)
}

impl Running {
    /// Open the model for timelines of up to `context` tokens; `None`: as long as it can.
    ///
    /// # Errors
    /// Those of [`Engine::open`], with the file's name.
    pub(crate) fn open(&self, context: Option<usize>) -> Result<Engine> {
        let mut options = Options::default();
        options.threads = self.threads;
        options.prefill_rows = self.prefill_chunk.get();
        options.context = context;
        if self.quality {
            options.precision = Precision::Exact;
        }
        let name = || format!("cannot open {}", self.model.display());
        let gguf = Gguf::open(&self.model).with_context(name)?;
        let engine = Engine::from_gguf(gguf, options).with_context(name)?;
        if self.warm_weights {
            engine.weights().warm(|_, _| ControlFlow::Continue(()));
        }
        Ok(engine)
    }
}
