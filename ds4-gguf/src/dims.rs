//! `Dims`: one to four extents of a tensor, fastest first, as GGUF stores them (`ne`).

use std::fmt;

/// The shape of a tensor in file order: `ne[0]` is the length of a row, contiguous in memory.
///
/// A weight that maps `in` values to `out` values is `[in, out]`; an expert tensor is `[in, out, experts]`.
/// Every extent is at least 1 and their product fits 63 bits.
///
/// ```
/// let dims = ds4_gguf::Dims::new(&[4096, 2048, 256]).unwrap();
/// assert_eq!((dims.cols(), dims.rows()), (4096, 2048 * 256));
/// assert_eq!(dims.to_string(), "4096 × 2048 × 256");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims {
    ne: [u64; 4],
    len: u8,
}

impl Dims {
    /// Most dimensions a tensor may have (`GGML_MAX_DIMS`).
    pub const MAX: usize = 4;

    /// The shape `ne`, fastest first; `None` unless it has 1 to 4 extents, all of them at least 1, with a product
    /// below 2⁶³.
    pub fn new(ne: &[u64]) -> Option<Self> {
        let len = u8::try_from(ne.len())
            .ok()
            .filter(|len| (1..=4).contains(len))?;
        let product = ne
            .iter()
            .try_fold(1u64, |product, &n| product.checked_mul(n))?;
        if product == 0 || product > i64::MAX as u64 {
            return None;
        }
        let mut all = [1; 4];
        all[..ne.len()].copy_from_slice(ne);
        Some(Self { ne: all, len })
    }

    /// The extents, fastest first.
    pub fn as_slice(&self) -> &[u64] {
        &self.ne[..usize::from(self.len)]
    }

    /// Extent `i`, 1 beyond the last.
    pub fn get(&self, i: usize) -> u64 {
        self.ne.get(i).copied().unwrap_or(1)
    }

    /// Weights in the tensor.
    pub fn elements(&self) -> u64 {
        self.ne.iter().product()
    }

    /// Weights in a row, `ne[0]`.
    pub fn cols(&self) -> u64 {
        self.ne[0]
    }

    /// Rows: the product of all extents but the first.
    pub fn rows(&self) -> u64 {
        self.ne[1..].iter().product()
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, n) in self.as_slice().iter().enumerate() {
            if i > 0 {
                f.write_str(" × ")?;
            }
            write!(f, "{n}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}
