//! `ds4 imatrix`.

use std::io::Write;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ds4_gguf::{Gguf, NewFile};
use ds4_model::imatrix::{CollectOptions, Collected};
use ds4_model::{Engine, Error};

use crate::args;
use crate::exit::Usage;
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
    let file = NewFile::create(&args.output, args.force)?;
    let collected = Collected::over(&engine, &text, &options, |done, total| {
        progress.at("", done as u64, total as u64)
    });
    drop(progress);
    let work = Work {
        model: &args.model,
        text: &args.text,
        output: &args.output,
    };
    work.finish(collected, file, args.legacy)
}

/// The options of antirez/ds4's program for the same work.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Dataset {
    /// Collect importance over the prompts of this file, each behind a line `===== DS4_IMATRIX_PROMPT`.
    #[arg(
        long,
        value_name = "FILE",
        group = "look",
        conflicts_with = "source",
        requires = "imatrix_out"
    )]
    pub(crate) imatrix_dataset: Option<PathBuf>,
    /// The new file, of the older kind (.dat); it is replaced.
    #[arg(long, value_name = "FILE", requires = "imatrix_dataset")]
    imatrix_out: Option<PathBuf>,
    /// Most prompts.
    #[arg(long, value_name = "N", requires = "imatrix_dataset")]
    imatrix_max_prompts: Option<usize>,
    /// Most tokens of all prompts.
    #[arg(long, value_name = "N", requires = "imatrix_dataset")]
    imatrix_max_tokens: Option<usize>,
}

impl Dataset {
    /// Do that, where it was asked for.
    pub(crate) fn run(
        &self,
        model: &Path,
        open: impl FnOnce() -> Result<Engine>,
    ) -> Option<Result<()>> {
        let Some((dataset, output)) = self.imatrix_dataset.as_ref().zip(self.imatrix_out.as_ref())
        else {
            // The parser lets this pass beside a prompt, which cannot stand beside a data set.
            let alone = self.imatrix_out.is_some()
                || self.imatrix_max_prompts.is_some()
                || self.imatrix_max_tokens.is_some();
            let wrong = "--imatrix-out and its limits need --imatrix-dataset FILE, and no prompt";
            return alone.then(|| Err(Usage(wrong.to_owned()).into()));
        };
        let work = Work {
            model,
            text: dataset,
            output,
        };
        Some(self.collect(&work, open))
    }

    fn collect(&self, work: &Work<'_>, open: impl FnOnce() -> Result<Engine>) -> Result<()> {
        let text = text(work.text)?;
        let file = NewFile::create(work.output, true)?;
        let engine = open()?;
        let progress = Progress::counting("imatrix");
        let most = |limit: Option<usize>| limit.unwrap_or(usize::MAX);
        let (prompts, tokens) = (
            most(self.imatrix_max_prompts),
            most(self.imatrix_max_tokens),
        );
        let collected = Collected::over_prompts(&engine, &text, prompts, tokens, |done, total| {
            progress.at("", done as u64, total as u64)
        });
        drop(progress);
        work.finish(collected, file, true)
    }
}

/// Whose importance, over what, and where it goes.
struct Work<'w> {
    model: &'w Path,
    text: &'w Path,
    output: &'w Path,
}

impl Work<'_> {
    /// Write what was collected.
    fn finish(
        &self,
        collected: Result<Collected, Error>,
        mut file: NewFile,
        legacy: bool,
    ) -> Result<()> {
        let collected = collected.map_err(|error| {
            let short = matches!(error, Error::Text { .. });
            let file = if short { self.text } else { self.model };
            anyhow::Error::new(error).context(file.display().to_string())
        })?;
        let dataset = self.text.display().to_string();
        let write = |source| ds4_gguf::Error::File {
            doing: "write",
            path: self.output.to_owned(),
            source,
        };
        if legacy {
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
            self.output.display(),
            collected.tokens()
        )?;
        if collected.is_complete() {
            return Ok(());
        }
        let (done, total) = (collected.tokens(), collected.total());
        let kept = || format!("{} has what was measured", self.output.display());
        Err(Error::Stopped { done, total }).with_context(kept)
    }
}
