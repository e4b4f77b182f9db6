//! How a model is opened and run: the flags that all programs but the server share, and what all programs take for
//! a backend, a temperature, a probability.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::{Engine, Options, Precision};

use crate::threads::Threads;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Running {
    /// The model.
    #[arg(short, long, value_name = "FILE", default_value = "ds4flash.gguf")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Tokens of a prompt computed in one step.
    #[arg(long, value_name = "N", default_value = "512")]
    pub(crate) prefill_chunk: NonZeroUsize,
    /// Compute with weights as they are and activations in single precision: slower, and exact.
    #[arg(long)]
    quality: bool,
    /// Bring all weights into memory first.
    #[arg(long)]
    pub(crate) warm_weights: bool,
    /// Where to compute: cpu or auto.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = backend)]
    backend: String,
    /// Compute on the processor, as this build always does.
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

/// What others may know of a path: the rest of it is about this machine.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

impl Running {
    /// Options of an engine for timelines of up to `context` tokens; `None`: as long as it can.
    ///
    /// # Errors
    /// Those of [`Threads::count`].
    pub(crate) fn options(&self, context: Option<usize>) -> Result<Options> {
        let mut options = Options::default();
        options.threads = self.threads.count()?;
        options.prefill_rows = self.prefill_chunk.get();
        options.context = context;
        if self.quality {
            options.precision = Precision::Exact;
        }
        Ok(options)
    }

    /// Open the model for timelines of up to `context` tokens; `None`: as long as it can.
    ///
    /// # Errors
    /// Those of [`Engine::open`], with the file's name, and of [`Self::options`].
    pub(crate) fn open(&self, context: Option<usize>) -> Result<Engine> {
        let options = self.options(context)?;
        let name = || format!("cannot open {}", self.model.display());
        let gguf = Gguf::open(&self.model).with_context(name)?;
        let engine = Engine::from_gguf(gguf, options).with_context(name)?;
        if self.warm_weights {
            engine.weights().warm(|_, _| ControlFlow::Continue(()));
        }
        Ok(engine)
    }
}
