//! `ds4 requant`.

use std::cell::OnceCell;
use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use ds4_gguf::Gguf;
use ds4_model::forecast::Forecast;
use ds4_model::inspect::human_bytes;
use ds4_quant::quantize::Quantize;
use ds4_quant::requant::{Requant, RequantError, Stage, requant_file, resume_file};
use ds4_quant::{Pool, QuantizeError};

use crate::args;
use crate::progress::Progress;
use crate::quantize::{imatrix, importance, new_file, nonfinite, recipe, show};

pub(crate) fn run(args: &args::Requant) -> Result<()> {
    let path = args.model.display().to_string();
    let named = |error| match error {
        // These name a file.
        RequantError::Open { .. }
        | RequantError::Busy { .. }
        | RequantError::Quantize(QuantizeError::Gguf(_)) => anyhow::Error::new(error),
        other => anyhow::Error::new(other).context(path.clone()),
    };
    let encoding = &args.encoding;
    let mut out = std::io::stdout().lock();
    if args.resume {
        let pool = Pool::new(encoding.threads.count()?)?;
        let report = resume_file(&args.model, &pool, stages()).map_err(named)?;
        show(&mut out, &report)?;
        return Ok(writeln!(out, "{path}: finished")?);
    }
    let recipe = recipe(&args.recipe)?;
    if !args.in_place {
        drop(out);
        return new_file(
            &args.model,
            args.output.as_deref(),
            &recipe,
            encoding,
            false,
        );
    }
    let matrix = imatrix(encoding)?;
    if encoding.dry_run {
        let source = Gguf::open(&args.model)?;
        let work = Quantize::new(&source, &recipe, importance(&matrix))?;
        writeln!(out, "{}", Forecast::of(&work, encoding.bandwidth * 1e9))?;
        let requant = Requant::new(&source, &recipe, importance(&matrix), nonfinite(encoding));
        return sizes(&mut out, &requant.map_err(named)?);
    }
    let pool = Pool::new(encoding.threads.count()?)?;
    let (requant, report) = requant_file(
        &args.model,
        &recipe,
        importance(&matrix),
        nonfinite(encoding),
        &pool,
        stages(),
    )
    .map_err(named)?;
    show(&mut out, &report)?;
    sizes(&mut out, &requant)
}

/// A bar for each stage.
fn stages() -> impl FnMut(Stage, ds4_quant::quantize::Progress<'_>) -> ControlFlow<()> {
    let (check, write) = (OnceCell::new(), OnceCell::new());
    move |stage, p| {
        let bar: &Progress = match stage {
            Stage::Check => check.get_or_init(|| Progress::new("check")),
            _ => write.get_or_init(|| Progress::new("requant")),
        };
        bar.at(p.tensor, p.done, p.total)
    }
}

/// What changes on the disk.
fn sizes(out: &mut impl Write, requant: &Requant) -> Result<()> {
    let (before, after) = requant.file_bytes();
    writeln!(
        out,
        "in place: {} → {}, journal {}",
        human_bytes(before),
        human_bytes(after),
        human_bytes(requant.journal_bytes())
    )?;
    for key in requant.unrecorded() {
        writeln!(
            out,
            "not recorded: {key}, the old header has no room for it"
        )?;
    }
    Ok(())
}
