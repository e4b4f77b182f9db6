//! `Source`: where the tensors of a quantization come from.

use std::fmt;
use std::ops::Range;

use ds4_gguf::{Gguf, Metadata, TensorInfo};

/// What a source can fail with: an error of its own crate.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Tensors in rows of a [`ds4_gguf::TensorType`], read a few rows at a time.
///
/// An open [`Gguf`] is one. A reader of another kind of file says what each of its tensors looks like as rows of blocks
/// and hands them out in that form.
pub trait Source: fmt::Debug + Sync {
    /// Metadata of the result, before the keys that say how it was quantized.
    fn metadata(&self) -> &Metadata;

    /// The tensors, in the order of the result. Extents need not be places in a file; their lengths must be right.
    fn tensors(&self) -> &[TensorInfo];

    /// Rows `rows` of tensor `index` of [`Self::tensors`], packed: as many bytes as the rows have, from `buffer` (which may
    /// hold anything and be resized) or from memory of the source. Rows of a stack of experts count through all experts.
    ///
    /// # Errors
    /// Whatever keeps the source from reading them.
    fn rows<'a>(
        &'a self,
        index: usize,
        rows: Range<usize>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError>;

    /// Whether weights that keep their type may be copied without a look at their values. Where not, floats are read as
    /// all others are and scales of MXFP4 blocks are looked at, so that a number that is not finite is found; in a source
    /// that is not trusted the scale 255 is NaN. Blocks of other types are copied all the same.
    fn is_trusted(&self) -> bool;

    /// The first tensor whose blocks have no known size: its name, the id of its type, and why.
    fn unsupported(&self) -> Option<(Box<str>, u32, Box<str>)> {
        None
    }
}

impl Source for Gguf {
    fn metadata(&self) -> &Metadata {
        self.metadata()
    }

    fn tensors(&self) -> &[TensorInfo] {
        self.tensors()
    }

    fn rows<'a>(
        &'a self,
        index: usize,
        rows: Range<usize>,
        _buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let tensor = self.tensor_at(index);
        let row = tensor.bytes.len() / tensor.info.dims.rows() as usize;
        Ok(&tensor.bytes[rows.start * row..rows.end * row])
    }

    fn is_trusted(&self) -> bool {
        true
    }

    fn unsupported(&self) -> Option<(Box<str>, u32, Box<str>)> {
        let tensors = self.unsupported_tensors();
        let first = tensors.first()?;
        Some((first.name.into(), first.id, first.reason.to_string().into()))
    }
}
