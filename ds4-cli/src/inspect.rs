//! `ds4 inspect`.

use std::io::Write;

use anyhow::Result;
use ds4_gguf::Gguf;
use ds4_model::inspect::Report;

use crate::args::Inspect;

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for path in &args.files {
        let gguf = Gguf::open(path)?;
        let report = Report::of(&gguf);
        if args.json {
            writeln!(out, "{:#}", report.to_json())?;
        } else {
            writeln!(out, "{report}")?;
        }
    }
    Ok(())
}
