//! `ds4 edit`.

use std::io::Write;

use anyhow::Result;
use ds4_gguf::{Edit, Error, Gguf, Rewrite};

use crate::args;
use crate::progress::Progress;

pub(crate) fn run(args: &args::Edit) -> Result<()> {
    let source = Gguf::open(&args.model)?;
    // Out of the way first, then new names, then values.
    let removed = args.remove.iter().map(|key| Ok(Edit::remove(key)));
    let renamed = args.rename.iter().map(|text| Edit::rename(text));
    let set = args.set.iter().map(|text| Edit::set(text));
    let edits = removed
        .chain(renamed)
        .chain(set)
        .collect::<Result<Vec<_>, _>>()?;
    let edited = Rewrite::edited(&source, &edits)?;
    let mut out = std::io::stdout().lock();
    if args.dry_run {
        for (key, value) in edited.metadata().iter() {
            writeln!(out, "{key} = {value}")?;
        }
        return Ok(());
    }
    let (path, overwrite) = match &args.output {
        Some(output) => (output.clone(), args.force),
        None if source.shards().len() > 1 => {
            return Err(Error::Edit {
                text: args.model.display().to_string().into(),
                why: "the model is split; name an output, one file for all of it".into(),
            }
            .into());
        }
        // The file itself is replaced, not a link to it.
        None => (std::fs::canonicalize(&args.model)?, true),
    };
    let progress = Progress::new("edit");
    edited.write(&path, overwrite, |c| progress.at(c.tensor, c.done, c.total))?;
    drop(progress);
    writeln!(out, "{}: {} bytes", path.display(), edited.file_bytes())?;
    Ok(())
}
