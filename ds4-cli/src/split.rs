//! `ds4 split` and `ds4 merge`.

use std::io::Write;

use anyhow::Result;
use ds4_gguf::{Gguf, Limit, Rewrite, Split};

use crate::args;
use crate::progress::Progress;

pub(crate) fn split(args: &args::Split) -> Result<()> {
    let source = Gguf::open(&args.model)?;
    let limit = match (args.max_size, args.max_tensors) {
        (Some(bytes), _) => Limit::Bytes(bytes),
        (None, Some(tensors)) => Limit::Tensors(tensors.get()),
        (None, None) => Limit::Bytes(u64::MAX),
    };
    let split = Split::new(&source, limit)?;
    if !args.dry_run {
        let progress = Progress::new("split");
        split.write(&args.prefix, args.force, |c| {
            progress.at(c.tensor, c.done, c.total)
        })?;
    }
    let mut out = std::io::stdout().lock();
    for (path, bytes) in split.files(&args.prefix) {
        writeln!(out, "{}: {bytes} bytes", path.display())?;
    }
    Ok(())
}

pub(crate) fn merge(args: &args::Merge) -> Result<()> {
    let source = Gguf::open(&args.model)?;
    let merged = Rewrite::merge(&source)?;
    if !args.dry_run {
        let progress = Progress::new("merge");
        merged.write(&args.output, args.force, |c| {
            progress.at(c.tensor, c.done, c.total)
        })?;
    }
    let (path, bytes) = (args.output.display(), merged.file_bytes());
    writeln!(std::io::stdout().lock(), "{path}: {bytes} bytes")?;
    Ok(())
}
