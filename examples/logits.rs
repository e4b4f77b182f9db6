//! Logits of every position of a token sequence, as raw 32-bit floats `[tokens, vocabulary]`, little endian.
//!
//! ```text
//! cargo run --release --example logits -- model.gguf --tokens 0,3054,17,42 --out logits.f32
//! ```
//! The result has the same bits whatever `--chunk` and `--threads` are.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use ds4_model::{Engine, Logits, NoTap, Options, Token};

#[derive(Parser)]
struct Args {
    /// The model.
    model: PathBuf,
    /// Token ids.
    #[arg(long, value_delimiter = ',', required = true)]
    tokens: Vec<Token>,
    /// Where the floats go.
    #[arg(long)]
    out: PathBuf,
    /// Tokens computed in one step.
    #[arg(long, default_value_t = 512)]
    chunk: usize,
    /// Threads [default: one a core].
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut options = Options::default();
    (options.prefill_rows, options.threads) = (args.chunk, args.threads);
    let engine =
        Engine::open(&args.model, options).with_context(|| args.model.display().to_string())?;
    let mut session = engine.session()?;

    let mut out =
        BufWriter::new(File::create(&args.out).with_context(|| args.out.display().to_string())?);
    let mut written = Ok(());
    session.run(&args.tokens, Logits::All, &mut NoTap, &mut |rows| {
        let mut write = || {
            rows.iter()
                .try_for_each(|logit| out.write_all(&logit.to_le_bytes()))
        };
        if written.is_ok() {
            written = write();
        }
    })?;
    written?;
    out.flush()?;
    println!(
        "{}: [{}, {}]",
        args.out.display(),
        args.tokens.len(),
        engine.config().vocab
    );
    Ok(())
}
