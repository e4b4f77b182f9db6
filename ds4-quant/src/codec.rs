//! `Codec`: what one packed format can do, and the table from tensor type to codec.

use ds4_gguf::TensorType;

use crate::{Activations, Error, format};

/// One packed format: bytes ↔ numbers, and the product of a packed row with activations.
///
/// Implemented by zero-sized types; get one with [`codec`].
pub trait Codec: Send + Sync {
    /// The tensor type whose blocks this codec reads.
    fn ty(&self) -> TensorType;

    /// Expand whole blocks to numbers, bit for bit as the reference implementation of the format does.
    ///
    /// * `blocks`: `n · block_bytes` bytes · `out`: `[n · block_len]`
    ///
    /// # Errors
    /// [`Error::Length`] when the two lengths do not belong to the same number of blocks; nothing is written then.
    fn decode(&self, blocks: &[u8], out: &mut [f32]) -> Result<(), Error>;

    /// Pack numbers into blocks. `importance`, one value a column, says how much an error in that column costs.
    ///
    /// * `row`: `[n · block_len]` · `importance`: `[n · block_len]` · `blocks`: `n · block_bytes` bytes
    ///
    /// # Errors
    /// [`Error::DecodeOnly`] for a format without an encoder (no format of this crate is one). [`Error::Cols`] when `row` is
    /// not a whole number of blocks, [`Error::Length`] when `blocks` or `importance` do not fit it; nothing is written then,
    /// nor after [`Error::MissingImportance`], [`Error::NegativeImportance`] and [`Error::NonFinite`] (a weight or an
    /// importance). [`Error::OutOfRange`] when no scale of the format reaches a weight; `blocks` may be overwritten then.
    fn encode(
        &self,
        row: &[f32],
        importance: Option<&[f32]>,
        blocks: &mut [u8],
    ) -> Result<(), Error> {
        let _ = (row, importance, blocks);
        Err(Error::DecodeOnly { ty: self.ty() })
    }

    /// Check what [`Codec::decode`] takes on trust: scale bytes above 0x7e, which the formats of the ROCmFPX family declare
    /// invalid. Plain floats have nothing to check.
    ///
    /// # Errors
    /// [`Error::InvalidScale`] naming the first offending block and byte, [`Error::Length`] for a part of a block.
    fn validate(&self, blocks: &[u8]) -> Result<(), Error> {
        let _ = blocks;
        Ok(())
    }

    /// `Σ w[i]·x[row, i]`: one packed row against one row of activations, in plain scalar code.
    ///
    /// This is the specification of the arithmetic: [`crate::matmul`] gives these bits for every pair of rows,
    /// whatever the processor, the number of threads and the number of rows.
    ///
    /// # Panics
    /// When `blocks` is not one row of `x.cols()` weights, or `row` is not below `x.rows()`.
    fn dot(&self, blocks: &[u8], x: &Activations, row: usize) -> f32;
}

/// The codec of a tensor type; `None` for types without one.
pub fn codec(ty: TensorType) -> Option<&'static dyn Codec> {
    format::CODECS.iter().copied().find(|c| c.ty() == ty)
}
