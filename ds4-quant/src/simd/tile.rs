//! Many rows of activations: some matrix rows are expanded once into a tile, then meet every row of activations.
//!
//! ```text
//! tile   R matrix rows × 256 weights
//! slab   the tiles of 1024 columns, 11 KB for eight rows: stays in the first-level cache while the activations pass by
//! batch  rows of activations whose accumulators and codes stay in the second-level cache
//! ```

use crate::Matrix;
use crate::activations::QuantizedRow;
use crate::format::packed::Block;

/// Tiles of a slab.
pub(super) const SLAB: usize = 4;
/// Rows of activations of a batch.
const BATCH: usize = 256;

/// 256 weights of `R` matrix rows, which meet `C` rows of activations at a time.
pub(super) trait Tile<const R: usize, const C: usize>: Copy {
    /// The packed form.
    type Block: Block;
    /// Accumulators of a result.
    const CHAINS: usize;
    /// Weights that share a scale of the activations.
    const GROUP: usize;

    /// Nothing yet.
    fn empty() -> Self;

    /// Expand the 256 weights (fewer at the end of a row) in `rows`.
    ///
    /// # Safety
    /// The processor has the instructions of the implementation.
    unsafe fn pack(&mut self, rows: [&[Self::Block]; R]);

    /// Add this tile, number `k` of its slab, to the results of some rows of activations.
    ///
    /// * `acc`: `[C, CHAINS]` registers
    ///
    /// # Safety
    /// The processor has the instructions of the implementation.
    unsafe fn add(&self, k: usize, x: &[Part<'_>; C], acc: &mut [[f32; R]]);
}

/// A slab's part of a row of activations.
pub(super) struct Part<'x> {
    /// Codes of each 16 columns.
    pub(super) codes: &'x [[i8; 16]],
    /// Their sums, two at a time.
    pub(super) sums: &'x [[i16; 2]],
    /// One for each [`Tile::GROUP`].
    pub(super) scales: &'x [f32],
}

impl<'x> Part<'x> {
    /// Slab `s` of a row that has a scale for each `group` columns.
    fn new(x: QuantizedRow<'x>, s: usize, group: usize) -> Self {
        let from = 256 * SLAB * s;
        let to = x.codes.len().min(from + 256 * SLAB);
        Self {
            codes: x.codes[from..to].as_chunks().0,
            sums: x.sums[from / 16..to / 16].as_chunks().0,
            scales: &x.scales[from / group..to / group],
        }
    }
}

/// Any number of rows of activations with a matrix.
///
/// * `x`: gives row t · `y`: `[tokens]` slices of `[rows]`
///
/// # Safety
/// The processor has the instructions of the tile.
pub(super) unsafe fn rows<'x, T: Tile<R, C>, const R: usize, const C: usize>(
    w: Matrix<'_>,
    x: impl Fn(usize) -> QuantizedRow<'x>,
    y: &mut [&mut [f32]],
) {
    let blocks: &[T::Block] = bytemuck::cast_slice(w.bytes());
    let n = w.cols() / T::Block::LEN;
    let per_tile = 256 / T::Block::LEN;
    let mut slab = [T::empty(); SLAB];
    // The last rows of activations are repeated to fill their registers; what comes of it is not used.
    let mut acc = vec![[0.0; R]; BATCH.min(y.len().next_multiple_of(C)) * T::CHAINS];
    for (batch, y) in y.chunks_mut(BATCH).enumerate() {
        let tokens = y.len();
        for first in (0..w.rows()).step_by(R) {
            let have = R.min(w.rows() - first);
            acc.fill([0.0; R]);
            for (s, from) in (0..n).step_by(SLAB * per_tile).enumerate() {
                let tiles = (n - from).div_ceil(per_tile).min(SLAB);
                for (k, tile) in slab[..tiles].iter_mut().enumerate() {
                    let from = from + k * per_tile;
                    let to = n.min(from + per_tile);
                    let row = |r: usize| &blocks[(first + r.min(have - 1)) * n..][from..to];
                    // SAFETY: the contract is the same.
                    unsafe { tile.pack(std::array::from_fn(row)) };
                }
                for c in (0..tokens).step_by(C) {
                    let token = |i: usize| batch * BATCH + (c + i).min(tokens - 1);
                    let part = |i| Part::new(x(token(i)), s, T::GROUP);
                    let x = std::array::from_fn(part);
                    let acc = &mut acc[c * T::CHAINS..];
                    for (k, tile) in slab[..tiles].iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { tile.add(k, &x, acc) };
                    }
                }
            }
            for (acc, y) in acc.chunks_exact_mut(T::CHAINS).zip(y.iter_mut()) {
                y[first..][..have].copy_from_slice(&fold(acc)[..have]);
            }
        }
    }
}

/// The accumulators of `R` results, summed by halves as [`crate::accumulate::fold`] does.
fn fold<const R: usize>(acc: &mut [[f32; R]]) -> [f32; R] {
    let mut n = acc.len();
    while n > 1 {
        n /= 2;
        let (low, high) = acc[..2 * n].split_at_mut(n);
        for (low, high) in low.iter_mut().zip(high) {
            low.iter_mut().zip(high).for_each(|(l, h)| *l += *h);
        }
    }
    acc[0]
}
