//! How a model is opened and run: the flags that `ds4-bench`, `ds4-eval` and `ds4-agent` share.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::{Engine, Options, Precision};

/// Bytes of a page: one byte of each is read to bring it into memory.
const PAGE: usize = 4096;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Running {
    /// The model.
    #[arg(short, long, value_name = "FILE", default_value = "ds4flash.gguf")]
    pub(crate) model: PathBuf,
    /// Threads; 0 is one a core [default: DS4_THREADS, else 0].
    #[arg(short, long)]
    threads: Option<usize>,
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
    #[command(flatten)]
    planned: Planned,
}

/// Flags of antirez/ds4 that are known here and refused, so that no script believes that they did something.
#[derive(clap::Args, Clone, Debug)]
struct Planned {
    #[arg(long, visible_alias = "hip", hide = true, value_parser = device, num_args = 0..=1, default_missing_value = "on")]
    rocm: Option<String>,
    #[arg(long, hide = true, value_parser = streaming, num_args = 0..=1, default_missing_value = "on")]
    ssd_streaming: Option<String>,
    #[arg(long, hide = true, value_parser = streaming, num_args = 0..=1, default_missing_value = "on")]
    ssd_streaming_cold: Option<String>,
    #[arg(long, hide = true, value_parser = streaming)]
    ssd_streaming_cache_experts: Option<String>,
    #[arg(long, hide = true, value_parser = streaming)]
    ssd_streaming_preload_experts: Option<String>,
    #[arg(long, hide = true, value_parser = streaming)]
    expert_profile: Option<String>,
    #[arg(long, hide = true, value_parser = drafting, num_args = 0..=1, default_missing_value = "on")]
    mtp: Option<String>,
    #[arg(long, hide = true, value_parser = drafting, num_args = 0..=1, default_missing_value = "on")]
    dspark: Option<String>,
    #[arg(long, hide = true, value_parser = drafting, num_args = 0..=1, default_missing_value = "on")]
    dspark_strict: Option<String>,
}

fn backend(name: &str) -> Result<String, String> {
    match name {
        "cpu" | "auto" => Ok(name.to_owned()),
        _ => Err("this build computes on the processor alone; expected cpu or auto".to_owned()),
    }
}

fn device(_: &str) -> Result<String, String> {
    Err("this build computes on the processor".to_owned())
}

fn streaming(_: &str) -> Result<String, String> {
    Err("this build has all weights in mapped memory".to_owned())
}

fn drafting(_: &str) -> Result<String, String> {
    Err("this build draws one token at a time".to_owned())
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

/// The command line, with the one-dash spelling `-sys` of `--system`, which clap does not know.
pub(crate) fn words(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Vec<OsString> {
    let spelled = |word: OsString| {
        if word == "-sys" {
            "--system".into()
        } else {
            word
        }
    };
    arguments.into_iter().map(|w| spelled(w.into())).collect()
}

impl Running {
    /// Threads, by flag or environment.
    ///
    /// # Errors
    /// When the variable is no number.
    pub(crate) fn threads(&self) -> Result<usize> {
        match (self.threads, std::env::var("DS4_THREADS")) {
            (Some(threads), _) => Ok(threads),
            (None, Ok(text)) => text
                .trim()
                .parse()
                .with_context(|| format!("DS4_THREADS is `{text}`, expected a number")),
            (None, Err(_)) => Ok(0),
        }
    }

    /// Open the model for timelines of up to `context` tokens; `None`: as long as it can.
    ///
    /// # Errors
    /// Those of [`Engine::open`], with the file's name.
    pub(crate) fn open(&self, context: Option<usize>) -> Result<Engine> {
        let mut options = Options::default();
        options.threads = self.threads()?;
        options.prefill_rows = self.prefill_chunk.get();
        options.context = context;
        if self.quality {
            options.precision = Precision::Exact;
        }
        let name = || format!("cannot open {}", self.model.display());
        let gguf = Gguf::open(&self.model).with_context(name)?;
        if self.warm_weights {
            warm(&gguf);
        }
        Engine::from_gguf(gguf, options).with_context(name)
    }
}

/// Touch every page of the weights.
fn warm(gguf: &Gguf) {
    let touched = (0..gguf.tensors().len()).flat_map(|i| {
        let bytes = gguf.tensor_at(i).bytes;
        bytes.iter().step_by(PAGE)
    });
    std::hint::black_box(touched.fold(0u8, |sum, byte| sum ^ byte));
}
