//! `ds4 compare`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::Engine;
use ds4_model::compare::{self, TextOptions};
use ds4_quant::Pool;

use crate::progress::Progress;
use crate::reading::text;
use crate::{args, quantize};

pub(crate) fn run(args: &args::Compare) -> Result<()> {
    let (a, b) = (quantize::open(&args.first)?, quantize::open(&args.second)?);
    let progress = Progress::counting("weights");
    let tensors = compare::tensors(
        &a,
        &b,
        &Pool::new(args.reading.threads)?,
        |name, done, total| progress.at(name, done, total),
    )?;
    drop(progress);
    let said = args
        .text
        .as_deref()
        .map(|path| read(args, [a, b], path))
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

fn read(args: &args::Compare, [a, b]: [Gguf; 2], path: &Path) -> Result<compare::Text> {
    let text = text(path)?;
    let engine = |gguf, path: &Path| {
        Engine::from_gguf(gguf, args.reading.engine(compare::ROWS))
            .with_context(|| path.display().to_string())
    };
    let (a, b) = (engine(a, &args.first)?, engine(b, &args.second)?);
    let mut options = TextOptions::default();
    options.chunk = args.reading.chunk.get();
    options.chunks = args.reading.chunks();
    options.special = args.reading.special();
    let progress = Progress::counting("text");
    Ok(compare::text(&a, &b, &text, &options, |done, total| {
        progress.at("", done as u64, total as u64)
    })?)
}
