//! `ds4 imatrix`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::NewFile;
use ds4_model::Engine;
use ds4_model::imatrix::{CollectOptions, Collected};

use crate::args;
use crate::progress::Progress;
use crate::reading::text;

pub(crate) fn run(args: &args::Imatrix) -> Result<()> {
    let text = text(&args.text)?;
    let chunk = args.reading.chunk.get();
    let engine = Engine::open(&args.model, args.reading.engine(chunk.min(512)))
        .with_context(|| args.model.display().to_string())?;
    let mut options = CollectOptions::default();
    options.chunk = chunk;
    options.chunks = args.reading.chunks();
    options.output = args.output_matrix;
    options.special = args.reading.special();
    // Before the work: a name that is taken is no surprise for its end.
    let mut file = NewFile::create(&args.output, args.force)?;
    let progress = Progress::counting("imatrix");
    let collected = Collected::over(&engine, &text, &options, |done, total| {
        progress.at("", done as u64, total as u64)
    })?;
    drop(progress);
    let dataset = args.text.display().to_string();
    let write = |path: &Path, source| ds4_gguf::Error::File {
        doing: "write",
        path: path.to_owned(),
        source,
    };
    if args.legacy {
        collected
            .to_legacy(&mut file, &dataset)
            .map_err(|source| write(&args.output, source))?;
    } else {
        file = collected.to_gguf(file, &dataset)?;
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
    Ok(())
}
