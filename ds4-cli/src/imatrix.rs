//! `ds4 imatrix`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::NewFile;
use ds4_model::imatrix::{CollectOptions, Collected};
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Options};

use crate::args;
use crate::progress::Progress;

pub(crate) fn run(args: &args::Imatrix) -> Result<()> {
    let text = text(&args.text)?;
    let mut options = Options::default();
    options.threads = args.threads;
    options.context = Some(args.chunk.get());
    options.prefill_rows = args.chunk.get().min(512);
    let engine =
        Engine::open(&args.model, options).with_context(|| args.model.display().to_string())?;
    let mut options = CollectOptions::default();
    options.chunk = args.chunk.get();
    options.chunks = args.chunks.map(Into::into);
    options.output = args.output_matrix;
    options.special = special(args.special);
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

/// A text to read.
pub(crate) fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

pub(crate) fn special(spelled: bool) -> Special {
    if spelled { Special::All } else { Special::None }
}
