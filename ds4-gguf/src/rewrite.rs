//! `Rewrite`: the tensors of an open model, byte for byte, in a new file with the metadata one wants.
//!
//! [`Rewrite::merge`] makes one file of a split model; with other metadata a model is edited. Metadata lie before the data, so a
//! file cannot be edited in place: it is copied and replaced.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::{Edit, Error, Gguf, Metadata, NewFile, Plan, Writer, shard};

/// Bytes copied at a time.
const CHUNK: usize = 8 << 20;

/// How far a copy has come.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// The tensor at hand.
    pub tensor: &'a str,
    /// Bytes of tensors that are written.
    pub done: u64,
    /// Bytes of all tensors.
    pub total: u64,
}

/// A copy that is planned and not yet written.
///
/// ```
/// use std::ops::ControlFlow;
/// use ds4_gguf::{Edit, Gguf, Metadata, Plan, Rewrite, TensorType, Writer};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("edited.gguf");
/// let mut plan = Plan::new(Metadata::new())?;
/// plan.add("a", &[2], TensorType::F32)?;
/// let mut writer = Writer::new(Vec::new(), plan)?;
/// writer.tensor("a", &[1; 8])?;
/// let model = Gguf::from_vec(writer.finish()?)?;
///
/// let mut metadata = model.metadata().clone();
/// Edit::set("general.name=string:mine")?.apply(&mut metadata)?;
/// Rewrite::new(&model, metadata)?.write(&path, false, |_| ControlFlow::Continue(()))?;
/// let edited = Gguf::from_vec(std::fs::read(&path)?)?;
/// assert_eq!(edited.metadata().get::<&str>("general.name")?, "mine");
/// assert_eq!(edited.tensor("a")?.bytes, [1; 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rewrite<'a> {
    source: &'a Gguf,
    tensors: Range<usize>,
    plan: Plan,
    file_bytes: u64,
}

impl<'a> Rewrite<'a> {
    /// All tensors of `source`, with these metadata.
    ///
    /// # Errors
    /// [`Error::Unwritable`] when the metadata cannot be written, or a tensor's type has no known size.
    pub fn new(source: &'a Gguf, metadata: Metadata) -> Result<Self, Error> {
        Self::of(source, 0..source.tensors().len(), metadata)
    }

    /// All tensors of `source`, with its metadata after `edits`, one after the other.
    ///
    /// # Errors
    /// As [`Edit::apply`]; [`Error::Edit`] when what comes out cannot be written, such as an alignment that is none;
    /// [`Error::Unwritable`] when `source` as it is cannot.
    pub fn edited(source: &'a Gguf, edits: &[Edit]) -> Result<Self, Error> {
        // So that what cannot be written afterwards is the fault of an edit.
        Self::new(source, source.metadata().clone())?;
        let mut metadata = source.metadata().clone();
        edits
            .iter()
            .try_for_each(|edit| edit.apply(&mut metadata))?;
        Self::new(source, metadata).map_err(|error| match error {
            Error::Unwritable { what, why } => Error::Edit {
                text: what,
                why: format!("cannot be written: {why}").into(),
            },
            other => other,
        })
    }

    /// All of `source` in one file, without the keys that say how it is split.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn merge(source: &'a Gguf) -> Result<Self, Error> {
        let mut metadata = source.metadata().clone();
        shard::forget(&mut metadata);
        Self::new(source, metadata)
    }

    /// Some tensors of `source`, by their place in its table.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of(
        source: &'a Gguf,
        tensors: Range<usize>,
        metadata: Metadata,
    ) -> Result<Self, Error> {
        let mut plan = Plan::new(metadata)?;
        for info in &source.tensors()[tensors.clone()] {
            plan.add(&info.name, info.dims.as_slice(), info.ty)?;
        }
        Ok(Self {
            source,
            tensors,
            file_bytes: plan.file_bytes()?,
            plan,
        })
    }

    /// The metadata of the result.
    pub fn metadata(&self) -> &Metadata {
        self.plan.metadata()
    }

    /// Exact size of the result in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of the tensors.
    pub(crate) fn tensor_bytes(&self) -> u64 {
        let infos = &self.source.tensors()[self.tensors.clone()];
        infos.iter().map(|info| info.extent.bytes).sum()
    }

    /// Write the file by way of a partial one: see [`NewFile`]. `path` may be a file of the source. `on` hears of every
    /// chunk and stops the copy with [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Those of [`NewFile`]; [`Error::File`] when it cannot be written, [`Error::Stopped`]. `path` is as it was then.
    pub fn write(
        &self,
        path: &Path,
        overwrite: bool,
        on: impl FnMut(Copied<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut done = 0;
        self.copy(path, overwrite, &mut done, self.tensor_bytes(), on)?
            .publish()
    }

    /// Write a file that has not its name yet; `done` of `total` bytes of a larger work were copied before.
    pub(crate) fn copy(
        &self,
        path: &Path,
        overwrite: bool,
        done: &mut u64,
        total: u64,
        mut on: impl FnMut(Copied<'_>) -> ControlFlow<()>,
    ) -> Result<NewFile, Error> {
        let named = |error| match error {
            Error::Write(source) => Error::File {
                doing: "write",
                path: path.to_owned(),
                source,
            },
            other => other,
        };
        let file = NewFile::create(path, overwrite)?;
        let mut writer = Writer::new(file, self.plan.clone()).map_err(named)?;
        for index in self.tensors.clone() {
            let tensor = self.source.tensor_at(index);
            for chunk in tensor.bytes.chunks(CHUNK) {
                let copied = Copied {
                    tensor: &tensor.info.name,
                    done: *done,
                    total,
                };
                if on(copied).is_break() {
                    return Err(Error::Stopped);
                }
                writer.write(chunk).map_err(named)?;
                *done += chunk.len() as u64;
            }
        }
        writer.finish().map_err(named)
    }
}
