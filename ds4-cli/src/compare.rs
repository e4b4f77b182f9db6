//! `ds4 compare`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_model::compare::{self, TextOptions};
use ds4_model::{Engine, Options};
use ds4_quant::Pool;

use crate::imatrix::{special, text};
use crate::progress::Progress;
use crate::{args, quantize};

/// Tokens whose logits are in memory at a time.
const ROWS: usize = 32;

pub(crate) fn run(args: &args::Compare) -> Result<()> {
    let (a, b) = (quantize::open(&args.first)?, quantize::open(&args.second)?);
    let progress = Progress::counting("weights");
    let tensors = compare::tensors(&a, &b, &Pool::new(args.threads)?, |name, done, total| {
        progress.at(name, done, total)
    })?;
    drop(progress);
    let said = args
        .text
        .as_deref()
        .map(|path| read(args, path))
        .transpose()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut json = tensors.to_json();
        if let Some(said) = said {
            json["text"] = said.to_json();
        }
        writeln!(out, "{json:#}")?;
    } else {
        write!(out, "{tensors}")?;
        if let Some(said) = said {
            write!(out, "{said}")?;
        }
    }
    Ok(())
}

fn read(args: &args::Compare, path: &Path) -> Result<compare::Text> {
    let text = text(path)?;
    let engine = |path: &Path| {
        let mut options = Options::default();
        options.threads = args.threads;
        options.context = Some(args.chunk.get());
        options.prefill_rows = ROWS;
        Engine::open(path, options).with_context(|| path.display().to_string())
    };
    let (a, b) = (engine(&args.first)?, engine(&args.second)?);
    let mut options = TextOptions::default();
    options.chunk = args.chunk.get();
    options.chunks = args.chunks.map(Into::into);
    options.special = special(args.special);
    let progress = Progress::counting("text");
    Ok(compare::text(&a, &b, &text, &options, |done, total| {
        progress.at("", done as u64, total as u64)
    })?)
}
