//! The search of IQ4_NL and IQ4_XS: codes into sixteen fixed levels that are not evenly spaced.
//!
//! One scale a group of 32; trials place the extreme weight on −134 … −120 around the lowest level −127, and the
//! largest `(Σwvx)² / Σwv²` over the levels `v` so chosen wins.

use crate::codebook;
use crate::search::{SILENT, Tile, extremes};
use crate::simd::lanes::{Float, Int, Lanes, Mask};

/// Weights in a group.
pub(super) const GROUP: usize = 32;

/// The sixteen levels as a search tree over the midpoints between neighbours.
pub(super) struct Levels<L: Lanes> {
    lanes: L,
    /// Midpoints 7; 3 and 11; 1, 5, 9, 13; 0, 2, … 14.
    tree: [L::F; 4],
    low: L::F,
    high: L::F,
}

impl<L: Lanes> Levels<L> {
    #[inline(always)]
    pub(super) fn new(lanes: L) -> Self {
        let level = codebook::IQ4_NL.map(f32::from);
        let mut tree = [lanes.splat(0.0); 4];
        for (depth, node) in tree.iter_mut().enumerate() {
            let mut middles = [0.0; 8];
            for (i, middle) in middles.iter_mut().enumerate() {
                let width = 16 >> depth;
                let at = i % (1 << depth) * width + width / 2;
                *middle = 0.5 * (level[at - 1] + level[at]);
            }
            *node = lanes.load(&middles);
        }
        let (mut low, mut high) = ([0.0; 8], [0.0; 8]);
        low.copy_from_slice(&level[..8]);
        high.copy_from_slice(&level[8..]);
        Self {
            lanes,
            tree,
            low: lanes.load(&low),
            high: lanes.load(&high),
        }
    }

    /// Index of the level nearest to each `x`, the higher one at a midpoint.
    #[inline(always)]
    pub(super) fn index(&self, x: L::F) -> L::U {
        let mut index = x.ge(self.tree[0]).bit();
        for node in &self.tree[1..] {
            index = index + index + x.ge(node.lookup8(index)).bit();
        }
        index
    }

    /// The level nearest to each `x`.
    #[inline(always)]
    fn value(&self, x: L::F) -> L::F {
        let index = self.index(x);
        let upper = x.ge(self.tree[0]);
        self.low
            .lookup8(index)
            .replace(upper, self.high.lookup8(index))
    }

    /// The best scale of eight groups; 0 for a silent one.
    #[inline(always)]
    pub(super) fn fit(&self, x: &Tile<L, GROUP>, w: &Tile<L, GROUP>) -> L::F {
        let lanes = self.lanes;
        let zero = lanes.splat(0.0);
        let (largest, extreme) = extremes(lanes, x);
        let lowest = lanes.splat(f32::from(codebook::IQ4_NL[0]));
        let (mut scale, mut gain) = (zero, zero);
        for trial in -8..=7 {
            // The first one is taken even without gain.
            let inverse = if trial == -8 {
                lanes.splat(1.0) / ((zero - extreme) / lowest)
            } else {
                (lanes.splat(trial as f32) + lowest) / extreme
            };
            let (mut sum_qx, mut sum_q2) = (zero, zero);
            for i in 0..GROUP {
                let q = self.value(inverse * x[i]);
                let wq = w[i] * q;
                sum_qx = sum_qx + wq * x[i];
                sum_q2 = sum_q2 + wq * q;
            }
            let try_scale = sum_qx / sum_q2;
            if trial == -8 {
                scale = zero.replace(sum_q2.gt(zero), try_scale);
                gain = scale * sum_qx;
            } else {
                let better = sum_q2.gt(zero) & (sum_qx * sum_qx).gt(gain * sum_q2);
                scale = scale.replace(better, try_scale);
                gain = gain.replace(better, try_scale * sum_qx);
            }
        }
        scale.replace(largest.lt(lanes.splat(SILENT)), zero)
    }

    /// Codes of 32 weights times `inverse`, packed: weight `j` low and `j + 16` high in byte `j`.
    #[inline(always)]
    pub(super) fn pack(&self, inverse: f32, x: &[f32], bytes: &mut [u8]) {
        let inverse = self.lanes.splat(inverse);
        let mut codes = [0; GROUP];
        for (x, codes) in x.as_chunks().0.iter().zip(codes.as_chunks_mut().0) {
            *codes = self
                .index(inverse * self.lanes.load(x))
                .to_float()
                .to_bytes();
        }
        for (j, byte) in bytes.iter_mut().enumerate() {
            *byte = codes[j] | codes[j + 16] << 4;
        }
    }
}
