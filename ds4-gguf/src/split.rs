//! `Split`: a model as several files, named and keyed as llama.cpp's tools do.
//!
//! ```text
//! PREFIX-00001-of-00003.gguf    all metadata, the first tensors
//! PREFIX-00002-of-00003.gguf    tensors in the order of the table
//! every file: split.no u16, split.count u16, split.tensors.count i32
//! ```
//! Source: ggml-org/llama.cpp:tools/gguf-split/gguf-split.cpp.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use crate::directory::ALIGNMENT_KEY;
use crate::new_file::sync_name;
use crate::rewrite::{Copied, Rewrite};
use crate::shard::{COUNT, INDEX, MAX_COUNT, TENSORS};
use crate::{Error, Gguf, Metadata, SealedFile};

/// What a file of a split model may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of tensors, padding included; a larger tensor has a file of its own. The header comes on top.
    Bytes(u64),
    /// Tensors.
    Tensors(u64),
}

/// A model in parts, planned and not yet written.
///
/// ```
/// use ds4_gguf::{Gguf, Limit, Metadata, Plan, Split, TensorType, Writer};
/// # use std::ops::ControlFlow;
/// # let folder = tempfile::tempdir()?;
/// let mut plan = Plan::new(Metadata::new())?;
/// plan.add("a", &[2], TensorType::F32)?;
/// plan.add("b", &[2], TensorType::F32)?;
/// let mut writer = Writer::new(Vec::new(), plan)?;
/// writer.write(&[1; 8])?;
/// writer.write(&[2; 8])?;
/// let model = Gguf::from_vec(writer.finish()?)?;
///
/// let split = Split::new(&model, Limit::Tensors(1))?;
/// let files = split.write(&folder.path().join("m"), false, |_| ControlFlow::Continue(()))?;
/// assert!(files[1].ends_with("m-00002-of-00002.gguf")); // any of them opens all
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Split<'a> {
    parts: Vec<Rewrite<'a>>,
}

impl<'a> Split<'a> {
    /// Cut `source`, split or not, into parts.
    ///
    /// # Errors
    /// [`Error::Unwritable`] when it has no tensors, or as for [`Rewrite::new`]; [`Error::Parts`] when there would be more
    /// than 65535 files.
    pub fn new(source: &'a Gguf, limit: Limit) -> Result<Self, Error> {
        let ranges = cut(source, limit);
        let count = ranges.len() as u64;
        if count == 0 {
            return Err(Error::Unwritable {
                what: "a split model".into(),
                why: "there are no tensors".into(),
            });
        }
        if count > MAX_COUNT {
            return Err(Error::Parts {
                found: count,
                most: MAX_COUNT,
            });
        }
        let tensors = source.tensors().len();
        let parts = (0u16..)
            .zip(ranges)
            .map(|(index, range)| {
                let mut metadata = if index == 0 {
                    source.metadata().clone()
                } else {
                    Metadata::new()
                };
                // Offsets of every part follow it.
                if let Some(alignment) = source.metadata().value(ALIGNMENT_KEY) {
                    metadata.set(ALIGNMENT_KEY, alignment.clone());
                }
                metadata.set(INDEX, index);
                metadata.set(COUNT, count as u16);
                metadata.set(TENSORS, tensors as i32);
                Rewrite::of(source, range, metadata)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { parts })
    }

    /// The names of the files, and their exact sizes in bytes. `prefix`: the path up to `-00001-of-…`.
    pub fn files(&self, prefix: &Path) -> Vec<(PathBuf, u64)> {
        let count = self.parts.len();
        let name = |i: usize| {
            let mut name = prefix.as_os_str().to_owned();
            name.push(format!("-{:05}-of-{count:05}.gguf", i + 1));
            PathBuf::from(name)
        };
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(i, part)| (name(i), part.file_bytes()))
            .collect()
    }

    /// Write them all; none has its name before all are complete. Returns the names. One file is open at a time, however
    /// many there are.
    ///
    /// # Errors
    /// As [`Rewrite::write`], and [`Error::Busy`] when another process has begun one of them meanwhile. A failure while the names are given can leave the last of them: such a set does not open.
    pub fn write(
        &self,
        prefix: &Path,
        overwrite: bool,
        mut on: impl FnMut(Copied<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<PathBuf>, Error> {
        let paths: Vec<PathBuf> = self
            .files(prefix)
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        let total = self.parts.iter().map(Rewrite::tensor_bytes).sum();
        let mut done = 0;
        let files = self
            .parts
            .iter()
            .zip(&paths)
            .map(|(part, path)| {
                part.copy(path, overwrite, &mut done, total, &mut on)?
                    .seal()
            })
            .collect::<Result<Vec<SealedFile>, _>>()?;
        // The first file, which opens the model, comes last, and after a power loss too.
        let mut files = files.into_iter();
        let first = files.next();
        files.try_for_each(SealedFile::name)?;
        if let (Some(first), Some(path)) = (first, paths.first()) {
            sync_name(path)?;
            first.publish()?;
        }
        Ok(paths)
    }
}

/// Which tensors each file has.
fn cut(source: &Gguf, limit: Limit) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0u64;
    for (i, info) in source.tensors().iter().enumerate() {
        let padded = info.extent.bytes.next_multiple_of(source.alignment());
        let fits = match (ranges.last(), limit) {
            (None, _) => false,
            (Some(_), Limit::Bytes(most)) => bytes.saturating_add(padded) <= most,
            (Some(range), Limit::Tensors(most)) => (range.len() as u64) < most,
        };
        match ranges.last_mut() {
            Some(range) if fits => range.end = i + 1,
            _ => {
                ranges.push(i..i + 1);
                bytes = 0;
            }
        }
        bytes = bytes.saturating_add(padded);
    }
    ranges
}
