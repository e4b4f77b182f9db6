//! Files of a checkpoint: regular ones, and those that are read whole of bounded size.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConvertError;

/// Most bytes of a file beside the weights; the largest known, a tokenizer, has 10 MB.
const MAX_TEXT: u64 = 256 << 20;

/// Open a regular file; with it, how many bytes it has.
///
/// # Errors
/// [`ConvertError::NotAFile`] for a folder, a pipe or a device: these have no length, and never end or make a reader
/// wait.
pub(super) fn regular(path: &Path) -> Result<(File, u64), ConvertError> {
    let io = |source| ConvertError::Io {
        path: path.to_owned(),
        source,
    };
    let regular = |facts: &fs::Metadata| match facts.is_file() {
        true => Ok(()),
        false => Err(ConvertError::NotAFile {
            path: path.to_owned(),
        }),
    };
    // Before it is opened too: to open a pipe is to wait for its writer.
    regular(&fs::metadata(path).map_err(io)?)?;
    let file = File::open(path).map_err(io)?;
    let facts = file.metadata().map_err(io)?;
    regular(&facts)?;
    Ok((file, facts.len()))
}

/// The text of a file; `None` where there is none.
pub(super) fn text(path: &Path) -> Result<Option<String>, ConvertError> {
    match regular(path) {
        Ok((file, len)) => bounded(path, file, len, MAX_TEXT).map(Some),
        Err(ConvertError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A JSON file as `T`; `None` where there is none.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ConvertError> {
    let Some(text) = text(path)? else {
        return Ok(None);
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|source| ConvertError::Json {
            path: path.to_owned(),
            source,
        })
}

/// All of `file`, which says that it has `len` bytes and may have more by now: at most `most`.
fn bounded(path: &Path, file: impl Read, len: u64, most: u64) -> Result<String, ConvertError> {
    let large = |found| ConvertError::Large {
        path: path.to_owned(),
        found,
        most,
    };
    if len > most {
        return Err(large(len));
    }
    let mut text = String::new();
    let read = file.take(most + 1).read_to_string(&mut text);
    read.map_err(|source| ConvertError::Io {
        path: path.to_owned(),
        source,
    })?;
    match text.len() as u64 {
        found if found > most => Err(large(found)),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_grow_are_read_as_far_as_files_may_be_long() {
        let path = Path::new("config.json");
        let read = |len| bounded(path, std::io::repeat(b' '), len, 1000).unwrap_err();
        for (len, found) in [(1001, 1001), (7, 1001)] {
            let error = read(len);
            assert!(
                matches!(error, ConvertError::Large { found: f, most: 1000, .. } if f == found),
                "{error}"
            );
        }
        let whole = bounded(path, &[b' '; 1000][..], 1000, 1000).unwrap();
        assert_eq!(whole.len(), 1000);
    }
}
