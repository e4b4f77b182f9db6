//! `ds4 inspect`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use ds4_gguf::Gguf;
use ds4_model::inspect::Report;

use crate::args::Inspect;

pub(crate) fn run(args: &Inspect) -> Result<()> {
    show(&args.files, args.json)
}

/// A report on each of `files`.
pub(crate) fn show(files: &[PathBuf], json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for path in files {
        let gguf = Gguf::open(path)?;
        let report = Report::of(&gguf);
        if json {
            writeln!(out, "{:#}", report.to_json())?;
        } else {
            writeln!(out, "{report}")?;
        }
    }
    Ok(())
}
