//! `ds4 imatrix`.

use std::io::Write;

use anyhow::{Context, Result};
use ds4_gguf::{Gguf, NewFile};
use ds4_model::Error;
use ds4_model::imatrix::{CollectOptions, Collected};

use crate::args;
use crate::progress::Progress;
use crate::reading::text;

pub(crate) fn run(args: &args::Imatrix) -> Result<()> {
    let text = text(&args.text)?;
    let mut options = CollectOptions::default();
    options.reading = args.reading.reading();
    options.output = args.output_matrix;
    let rows = options.reading.chunk.min(512);
    let engine = args
        .reading
        .engine(Gguf::open(&args.model)?, &args.model, rows)?;
    let progress = Progress::counting("imatrix");
    // Before the work: a name that is taken is no surprise for its end.
    let mut file = NewFile::create(&args.output, args.force)?;
    let collected = Collected::over(&engine, &text, &options, |done, total| {
        progress.at("", done as u64, total as u64)
    });
    let collected = collected.map_err(|error| {
        let short = matches!(error, Error::Text { .. });
        let file = if short { &args.text } else { &args.model };
        anyhow::Error::new(error).context(file.display().to_string())
    })?;
    drop(progress);
    let dataset = args.text.display().to_string();
    let write = |source| ds4_gguf::Error::File {
        doing: "write",
        path: args.output.clone(),
        source,
    };
    if args.legacy {
        collected.to_legacy(&mut file, &dataset).map_err(write)?;
    } else {
        let written = collected.to_gguf(file, &dataset);
        file = written.map_err(|error| match error {
            ds4_gguf::Error::Write(source) => write(source),
            other => other,
        })?;
    }
    file.publish()?;
    let mut errors = std::io::stderr().lock();
    for unreached in collected.unreached() {
        writeln!(
            errors,
            "warning: {unreached}; all their columns count the same"
        )?;
    }
    let matrices: usize = collected.entries().iter().map(|e| e.tensors.len()).sum();
    writeln!(
        std::io::stdout(),
        "{}: {matrices} matrices, {} tokens",
        args.output.display(),
        collected.tokens()
    )?;
    if collected.is_complete() {
        return Ok(());
    }
    let (done, total) = (collected.tokens(), collected.total());
    let kept = || format!("{} has what was measured", args.output.display());
    Err(Error::Stopped { done, total }).with_context(kept)
}
