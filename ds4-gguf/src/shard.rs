//! Split models: `model-00001-of-00003.gguf` and its siblings, opened as one directory.
//!
//! ```text
//! key                    type   meaning
//! split.count            u16    files of the model
//! split.no               u16    index of this file, from 0
//! split.tensors.count    i32    tensors of all files together
//! ```
//! The first file carries the model's metadata; every file lists its own tensors.
//! Source: ggml-org/llama.cpp:tools/gguf-split, src/llama-arch.cpp (`LLM_KV_SPLIT_*`).

#[cfg(feature = "mmap")]
use std::ffi::OsStr;
use std::path::Path;
#[cfg(feature = "mmap")]
use std::path::PathBuf;

use crate::bytes::Bytes;
use crate::directory::Directory;
use crate::error::{FileName, Malformed};
use crate::{Error, Metadata};

/// Most files a model may be split into: the key is 16 bits wide.
pub(crate) const MAX_COUNT: u64 = 65_535;

pub(crate) const COUNT: &str = "split.count";
pub(crate) const INDEX: &str = "split.no";
pub(crate) const TENSORS: &str = "split.tensors.count";

/// One file of a model.
#[derive(Clone, Debug)]
pub struct Shard {
    pub(crate) file: FileName,
    pub(crate) bytes: Bytes,
}

impl Shard {
    /// Where it lies; `None` for bytes in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.file {
            FileName::Path(path) => Some(path),
            FileName::Memory(_) => None,
        }
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Number of files of the model that `metadata` belongs to; 1 when it is not split.
pub(crate) fn count(metadata: &Metadata, file: &FileName) -> Result<u64, Error> {
    let bad = |found| {
        let expected = format!("an integer from 1 to {MAX_COUNT}").into();
        Malformed::Key {
            key: COUNT.into(),
            expected,
            found,
        }
        .within(file)
    };
    match metadata.try_find::<u64>(COUNT) {
        Ok(None) => Ok(1),
        Ok(Some(count @ 1..=MAX_COUNT)) => Ok(count),
        // llama.cpp's reader takes 0 for "not split" as well.
        Ok(Some(0)) => Ok(1),
        Ok(Some(count)) => Err(bad(count.to_string().into())),
        Err(Error::KeyType { found, .. }) => Err(bad(found)),
        Err(other) => Err(other),
    }
}

/// The paths of all `count` files, from that of one of them.
#[cfg(feature = "mmap")]
pub(crate) fn siblings(
    path: &Path,
    metadata: &Metadata,
    count: u64,
) -> Result<Vec<PathBuf>, Error> {
    let index = metadata.find::<u64>(INDEX).unwrap_or(0);
    let stem = path
        .file_name()
        .and_then(|name| stem(name, count))
        .ok_or_else(|| Error::ShardName {
            file: FileName::Path(path.to_owned()),
            index,
            count,
        })?;
    let paths: Vec<PathBuf> = (1..=count)
        .map(|part| {
            let mut name = stem.to_owned();
            name.push(format!("-{part:05}-of-{count:05}.gguf"));
            path.with_file_name(name)
        })
        .collect();
    let missing: Vec<PathBuf> = paths
        .iter()
        .filter(|path| !path.exists())
        .cloned()
        .collect();
    if missing.is_empty() {
        Ok(paths)
    } else {
        Err(Error::MissingShards { count, missing })
    }
}

/// The part of `name` before `-00001-of-00003.gguf`; `None` when it does not end so with this `count`.
#[cfg(feature = "mmap")]
fn stem(name: &OsStr, count: u64) -> Option<&OsStr> {
    let rest = name
        .as_encoded_bytes()
        .strip_suffix(format!("-of-{count:05}.gguf").as_bytes())?;
    let dash = rest.iter().rposition(|&byte| byte == b'-')?;
    let part = str::from_utf8(&rest[dash + 1..]).ok()?;
    let number: u64 = part.parse().ok()?;
    (part.len() >= 5
        && part.bytes().all(|byte| byte.is_ascii_digit())
        && (1..=count).contains(&number))
    .then_some(())?;
    os_str(&rest[..dash])
}

/// What is left of a name of any bytes.
#[cfg(all(feature = "mmap", unix))]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// What is left of a name in Unicode.
#[cfg(all(feature = "mmap", not(unix)))]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    str::from_utf8(bytes).ok().map(OsStr::new)
}

/// Take out the keys that say which part of a split model a file is: the model is whole once it is open.
pub(crate) fn forget(metadata: &mut Metadata) {
    for key in [COUNT, INDEX, TENSORS] {
        metadata.remove(key);
    }
}

/// Every file says what its place implies, and the tables add up.
pub(crate) fn check(shards: &[Shard], directories: &[Directory]) -> Result<(), Error> {
    let count = shards.len() as u64;
    let mismatch = |shard: &Shard, key, expected: u64, metadata: &Metadata| Error::ShardMismatch {
        file: shard.file.clone(),
        key,
        expected: expected.to_string().into(),
        found: metadata
            .value(key)
            .map_or_else(|| "no such key".into(), |value| value.to_string().into()),
    };
    for (index, (shard, directory)) in (0u64..).zip(shards.iter().zip(directories)) {
        for (key, expected) in [(COUNT, count), (INDEX, index)] {
            if directory.metadata.find::<u64>(key) != Some(expected) {
                return Err(mismatch(shard, key, expected, &directory.metadata));
            }
        }
    }
    let tensors = directories
        .iter()
        .map(|directory| directory.entries.len() as u64)
        .sum();
    for (shard, directory) in shards.iter().zip(directories) {
        if directory.metadata.value(TENSORS).is_some()
            && directory.metadata.find::<u64>(TENSORS) != Some(tensors)
        {
            return Err(mismatch(shard, TENSORS, tensors, &directory.metadata));
        }
    }
    Ok(())
}
