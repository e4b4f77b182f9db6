//! `ds4 compare`.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use ds4_gguf::Gguf;
use ds4_model::Error;
use ds4_model::compare::{self, CompareError};
use ds4_quant::Pool;

use crate::args;
use crate::progress::Progress;
use crate::reading::text;

pub(crate) fn run(args: &args::Compare) -> Result<()> {
    let (a, b) = (Gguf::open(&args.first)?, Gguf::open(&args.second)?);
    let progress = Progress::counting("weights");
    let tensors = compare::tensors(
        &a,
        &b,
        &Pool::new(args.reading.threads.count()?)?,
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
    let engine = |gguf, path| args.reading.engine(gguf, path, compare::ROWS);
    let (a, b) = (engine(a, &args.first)?, engine(b, &args.second)?);
    let reading = args.reading.reading();
    let progress = Progress::counting("text");
    let said = compare::text(&a, &b, &text, &reading, |done, total| {
        progress.at("", done as u64, total as u64)
    });
    said.map_err(|error| match error {
        CompareError::Model(Error::Text { .. }) => {
            anyhow::Error::new(error).context(path.display().to_string())
        }
        other => other.into(),
    })
}
