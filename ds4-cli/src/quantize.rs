//! `ds4 quantize`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::forecast::Forecast;
use ds4_model::inspect::human_bytes;
use ds4_quant::quantize::{Importance, Quantize, Report};
use ds4_quant::recipe::Recipe;
use ds4_quant::{Imatrix, NonFinite, Pool};

use crate::args::{self, Encoding};
use crate::progress::Progress;

pub(crate) fn run(args: &args::Quantize) -> Result<()> {
    new_file(
        &args.model,
        args.output.as_deref(),
        &recipe(&args.recipe)?,
        &args.encoding,
        args.json,
    )
}

/// By `recipe` from `model` to `output`, or the forecast of it.
pub(crate) fn new_file(
    model: &Path,
    output: Option<&Path>,
    recipe: &Recipe,
    encoding: &Encoding,
    json: bool,
) -> Result<()> {
    let source = Gguf::open(model)?;
    let matrix = imatrix(encoding)?;
    let work = Quantize::new(&source, recipe, importance(&matrix))?;
    carry_out(&work, "quantize", output, encoding, json)
}

/// What was decided, into `output`; or the forecast of it. Ctrl-C removes what was written: a new start gives the same bytes.
pub(crate) fn carry_out(
    work: &Quantize<'_>,
    what: &'static str,
    output: Option<&Path>,
    encoding: &Encoding,
    json: bool,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let output = match output {
        Some(output) if !encoding.dry_run => output,
        _ => {
            let forecast = Forecast::of(work, encoding.bandwidth * 1e9);
            if json {
                writeln!(out, "{:#}", forecast.to_json())?;
            } else {
                writeln!(out, "{forecast}")?;
            }
            return Ok(());
        }
    };
    let pool = Pool::new(encoding.threads.count()?)?;
    let progress = Progress::new(what);
    let report = work.write(&pool, nonfinite(encoding), output, encoding.force, |p| {
        progress.at(p.tensor, p.done, p.total)
    })?;
    drop(progress);
    show(&mut out, &report)?;
    writeln!(
        out,
        "{}: {}, {:.3} bits a weight",
        output.display(),
        human_bytes(work.file_bytes()),
        work.bits_per_weight()
    )?;
    Ok(())
}

/// A named recipe, or the rules of a file.
pub(crate) fn recipe(path: &Path) -> Result<Recipe> {
    let shown = path.display().to_string();
    if Recipe::NAMES.contains(&&*shown) || !path.exists() {
        return Recipe::named(&shown).with_context(|| format!("there is no file {shown}"));
    }
    let text = fs::read_to_string(path).with_context(|| shown.clone())?;
    Recipe::from_toml(&text).context(shown)
}

/// The importance matrix that was asked for, and the name of its file.
pub(crate) fn imatrix(encoding: &Encoding) -> Result<Option<(Imatrix, String)>> {
    let Some(path) = &encoding.imatrix else {
        return Ok(None);
    };
    let name = path.display().to_string();
    // A missing file is a missing model file: the same code.
    let bytes = fs::read(path).map_err(|source| ds4_gguf::Error::Io {
        path: path.clone(),
        source,
    })?;
    let matrix = Imatrix::parse(bytes).with_context(|| name.clone())?;
    Ok(Some((matrix, name)))
}

pub(crate) fn importance(matrix: &Option<(Imatrix, String)>) -> Option<Importance<'_>> {
    matrix
        .as_ref()
        .map(|(matrix, file)| Importance { matrix, file })
}

pub(crate) fn nonfinite(encoding: &Encoding) -> NonFinite {
    if encoding.allow_nonfinite {
        NonFinite::Clamp
    } else {
        NonFinite::Refuse
    }
}

/// The tensors that changed, with their errors.
pub(crate) fn show(out: &mut impl Write, report: &Report) -> Result<()> {
    for changed in &report.tensors {
        writeln!(out, "{changed}")?;
    }
    let changed = report.tensors.len();
    writeln!(out, "{changed} tensors changed, {} copied", report.copied)?;
    Ok(())
}
