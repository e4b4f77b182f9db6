//! `Matrix`: packed weights with a checked shape.

use ds4_gguf::TensorType;

use crate::{Error, codec};

/// Packed weights `[rows, cols]`: rows of whole blocks, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    ty: TensorType,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// View bytes as a matrix.
    ///
    /// * `bytes`: `rows` rows of `cols / block_len · block_bytes` bytes, as in [`ds4_gguf::Tensor::bytes`]; there `rows` and
    ///   `cols` are [`ds4_gguf::Dims::rows`] and [`ds4_gguf::Dims::cols`]
    ///
    /// # Errors
    /// [`Error::NoCodec`] for a type without one, [`Error::Cols`] when a row is not a whole number of blocks,
    /// [`Error::Length`] when `bytes` is not exactly `rows` such rows, [`Error::TooLarge`] when that overflows.
    pub fn new(ty: TensorType, rows: usize, cols: usize, bytes: &'a [u8]) -> Result<Self, Error> {
        codec(ty).ok_or(Error::NoCodec { ty })?;
        let block = ty.block_len();
        if !cols.is_multiple_of(block) {
            return Err(Error::Cols { ty, cols, block });
        }
        let want = (cols / block)
            .checked_mul(ty.block_bytes())
            .and_then(|row| row.checked_mul(rows))
            .ok_or(Error::TooLarge {
                what: "a matrix",
                rows,
                cols,
            })?;
        if bytes.len() != want {
            return Err(Error::Length {
                what: "packed matrix bytes",
                got: bytes.len(),
                want,
            });
        }
        Ok(Self {
            ty,
            rows,
            cols,
            bytes,
        })
    }

    /// The type of the blocks.
    pub fn ty(&self) -> TensorType {
        self.ty
    }

    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The packed bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        row_bytes(self.ty, self.cols)
    }

    /// Rows `from..to`, packed.
    ///
    /// # Panics
    /// When the range is not within `rows`.
    pub fn part(&self, from: usize, to: usize) -> Matrix<'a> {
        let n = self.row_bytes();
        Matrix {
            rows: to - from,
            bytes: &self.bytes[from * n..to * n],
            ..*self
        }
    }
}

/// Bytes of a row of `cols` weights, a whole number of blocks.
pub(crate) fn row_bytes(ty: TensorType, cols: usize) -> usize {
    cols / ty.block_len() * ty.block_bytes()
}
