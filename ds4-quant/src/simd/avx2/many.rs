//! Many rows of activations: tiles of eight matrix rows for [`crate::simd::tile`].
//!
//! Register s of a tile holds weights 4s..4s+4 of each of its rows, so lane = matrix row: there are no sums across
//! lanes, and four bytes of activations are broadcast to all of them.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::few::{padded, pairs};
use super::reg::{load, load_floats, store, store_floats, transpose};
use super::{Correction, Scales, Small, Super};
use crate::accumulate::{SMALL_CHAINS, SUPER_CHAINS};
use crate::simd::tile::{Part, Tile};

/// Matrix rows of a tile.
pub(in crate::simd) const ROWS: usize = 8;
/// Rows of activations that share the loads of a tile.
const COLUMNS: usize = 4;

/// Chunk `c` of eight rows to registers 8c..8c+8 of a tile.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave(rows: &[[u8; 32]; ROWS], to: &mut [[u8; 32]]) {
    let rows = rows.each_ref().map(|row| load(row));
    for (to, v) in to.iter_mut().zip(transpose(rows)) {
        store(to, v);
    }
}

/// Four registers of codes with [`COLUMNS`] rows of activations: sums of pairs of products gather in words as long as
/// the format's span allows, then meet `$scale` and join `$sum`. The activations are `$x[column][$at]`.
macro_rules! four_steps {
    ($format:ty, $codes:expr, $x:expr, $at:expr, $scale:expr, $sum:expr) => {{
        let (codes, scale): (&[[u8; 32]; 4], _) = ($codes, $scale);
        let mut x = [&[[0; 4]; 4]; COLUMNS];
        for c in 0..COLUMNS {
            x[c] = bytemuck::must_cast_ref(&$x[c][$at]);
        }
        let mut p = [_mm256_setzero_si256(); COLUMNS];
        four_steps!(@step 0, $format, codes, x, p, scale, $sum);
        four_steps!(@step 1, $format, codes, x, p, scale, $sum);
        four_steps!(@step 2, $format, codes, x, p, scale, $sum);
        four_steps!(@step 3, $format, codes, x, p, scale, $sum);
    }};
    (@step $i:literal, $format:ty, $codes:ident, $x:ident, $p:ident, $scale:ident, $sum:expr) => {
        let q = load(&$codes[$i]);
        for c in 0..COLUMNS {
            let four: [i8; 4] = $x[c][$i];
            let next = pairs(<$format>::CODES, q, _mm256_set1_epi32(bytemuck::must_cast(four)));
            let first = $i % <$format>::SPAN == 0;
            $p[c] = if first { next } else { _mm256_add_epi16($p[c], next) };
            if ($i + 1) % <$format>::SPAN == 0 {
                $sum[c] = _mm256_add_epi32($sum[c], _mm256_madd_epi16($p[c], $scale));
            }
        }
    };
}

/// A tile of 256-weight blocks.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(in crate::simd) struct SuperTile<B> {
    pub(in crate::simd) codes: [[u8; 32]; 64],
    /// The scale of group g as two equal words a row.
    pub(in crate::simd) scale: [[u8; 32]; 16],
    /// The minima of groups 2l and 2l + 1 as two words a row.
    pub(in crate::simd) min: [[u8; 32]; 8],
    pub(in crate::simd) d: [f32; 8],
    pub(in crate::simd) dmin: [f32; 8],
    format: PhantomData<B>,
}

/// Which group of 16 weights each lane of the two halves of [`super::Parts::scale`] belongs to, words doubled.
const SCALE_ORDER: [[usize; 8]; 2] = [[0, 2, 4, 6, 1, 3, 5, 7], [8, 10, 12, 14, 9, 11, 13, 15]];

impl<B: Super> Tile<ROWS, COLUMNS> for SuperTile<B> {
    type Block = B;
    const CHAINS: usize = SUPER_CHAINS;
    const GROUP: usize = 256;

    fn empty() -> Self {
        Self {
            codes: [[0; 32]; 64],
            scale: [[0; 32]; 16],
            min: [[0; 32]; 8],
            d: [0.0; 8],
            dmin: [0.0; 8],
            format: PhantomData,
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn pack(&mut self, rows: [&[B]; ROWS]) {
        let mut codes = [[[0; 32]; ROWS]; 8];
        let mut scale = [[[0; 32]; ROWS]; 2];
        let mut min = [[0; 32]; ROWS];
        for (r, row) in rows.iter().enumerate() {
            let block = &row[0];
            // SAFETY: this function has the same contract.
            let open = unsafe { block.open() };
            macro_rules! chunks {
                ($($c:literal)*) => {$(
                    // SAFETY: as above.
                    store(&mut codes[$c][r], unsafe { block.codes::<$c>(&open) });
                )*};
            }
            chunks!(0 1 2 3 4 5 6 7);
            // SAFETY: as above.
            let parts = unsafe { block.parts() };
            store(
                &mut scale[0][r],
                _mm256_unpacklo_epi16(parts.scale, parts.scale),
            );
            store(
                &mut scale[1][r],
                _mm256_unpackhi_epi16(parts.scale, parts.scale),
            );
            store(&mut min[r], parts.min);
        }
        for (codes, to) in codes.iter().zip(self.codes.as_chunks_mut::<8>().0) {
            interleave(codes, to);
        }
        for (scale, order) in scale.iter().zip(SCALE_ORDER) {
            let mut to = [[0; 32]; 8];
            interleave(scale, &mut to);
            for (scale, g) in to.into_iter().zip(order) {
                self.scale[g] = scale;
            }
        }
        interleave(&min, &mut self.min);
        let halves = |h: [[u8; 2]; ROWS]| super::reg::halves8(h);
        let d = _mm256_mul_ps(
            halves(rows.map(|row| row[0].d())),
            _mm256_set1_ps(B::FACTOR),
        );
        store_floats(&mut self.d, d);
        store_floats(&mut self.dmin, halves(rows.map(|row| row[0].dmin())));
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add(&self, k: usize, x: &[Part<'_>; COLUMNS], acc: &mut [[f32; 8]]) {
        const WHOLE: &str = "the row holds the whole tile";
        let mut codes = [&[[0; 16]; 16]; COLUMNS];
        let mut sums = [&[[0; 2]; 8]; COLUMNS];
        for c in 0..COLUMNS {
            codes[c] = x[c].codes[16 * k..].first_chunk().expect(WHOLE);
            sums[c] = x[c].sums[8 * k..].first_chunk().expect(WHOLE);
        }
        let mut s = [_mm256_setzero_si256(); COLUMNS];
        for (g, (quad, scale)) in self.codes.as_chunks().0.iter().zip(&self.scale).enumerate() {
            four_steps!(B, quad, codes, g, load(scale), s);
        }
        let mut m = [_mm256_setzero_si256(); COLUMNS];
        if B::CORRECTION != Correction::None {
            for (l, min) in self.min.iter().enumerate() {
                let min = load(min);
                for c in 0..COLUMNS {
                    let sums = _mm256_set1_epi32(bytemuck::must_cast(sums[c][l]));
                    m[c] = _mm256_add_epi32(m[c], _mm256_madd_epi16(min, sums));
                }
            }
        }
        let (d, dmin) = (load_floats(&self.d), load_floats(&self.dmin));
        for c in 0..COLUMNS {
            if B::CORRECTION == Correction::Offset {
                s[c] = _mm256_sub_epi32(s[c], m[c]);
            }
            let mut t = _mm256_mul_ps(d, _mm256_cvtepi32_ps(s[c]));
            if B::CORRECTION == Correction::Minimum {
                t = _mm256_fnmadd_ps(dmin, _mm256_cvtepi32_ps(m[c]), t);
            }
            let acc = &mut acc[SUPER_CHAINS * c + k % SUPER_CHAINS];
            let dx = _mm256_set1_ps(x[c].scales[k]);
            store_floats(acc, _mm256_fmadd_ps(dx, t, load_floats(acc)));
        }
    }
}

/// A tile of 32-weight blocks.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(in crate::simd) struct SmallTile<B> {
    pub(in crate::simd) codes: [[u8; 32]; 64],
    /// Scales of block b, or of its first half.
    pub(in crate::simd) d: [[f32; 8]; 8],
    /// Scales of the second half of block b, or its offset.
    pub(in crate::simd) d1: [[f32; 8]; 8],
    /// 32-weight blocks in this tile.
    pub(in crate::simd) blocks: usize,
    format: PhantomData<B>,
}

impl<B: Small> Tile<ROWS, COLUMNS> for SmallTile<B> {
    type Block = B;
    const CHAINS: usize = SMALL_CHAINS;
    const GROUP: usize = 32;

    fn empty() -> Self {
        Self {
            codes: [[0; 32]; 64],
            d: [[0.0; 8]; 8],
            d1: [[0.0; 8]; 8],
            blocks: 0,
            format: PhantomData,
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn pack(&mut self, rows: [&[B]; ROWS]) {
        let mut codes = [[[0; 32]; ROWS]; 8];
        let mut d = [[[0; 32]; ROWS]; 2];
        for (r, row) in rows.iter().enumerate() {
            let group: [B; 8] = padded(row);
            let group = &group[..256 / B::LEN];
            macro_rules! chunks {
                ($($k:literal)*) => {$(
                    // SAFETY: this function has the same contract.
                    store(&mut codes[$k][r], unsafe { B::codes(group, $k) });
                )*};
            }
            chunks!(0 1 2 3 4 5 6 7);
            // SAFETY: as above.
            match unsafe { B::scales(group) } {
                Scales::One(one) => store(&mut d[0][r], _mm256_castps_si256(one)),
                Scales::Halves(first, second) | Scales::Affine(first, second) => {
                    store(&mut d[0][r], _mm256_castps_si256(first));
                    store(&mut d[1][r], _mm256_castps_si256(second));
                }
            }
        }
        for (codes, to) in codes.iter().zip(self.codes.as_chunks_mut::<8>().0) {
            interleave(codes, to);
        }
        interleave(&d[0], bytemuck::cast_mut::<_, [[u8; 32]; 8]>(&mut self.d));
        interleave(&d[1], bytemuck::cast_mut::<_, [[u8; 32]; 8]>(&mut self.d1));
        self.blocks = rows[0].len() * B::LEN / 32;
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add(&self, k: usize, x: &[Part<'_>; COLUMNS], acc: &mut [[f32; 8]]) {
        let ones = _mm256_set1_epi16(1);
        let mut codes = [[[0; 16]; 0].as_slice(); COLUMNS];
        for c in 0..COLUMNS {
            codes[c] = &x[c].codes[16 * k..];
        }
        // A loop of known length would be unrolled, and its registers spilled.
        let halves = std::hint::black_box(2);
        let blocks = self
            .codes
            .as_chunks::<8>()
            .0
            .iter()
            .zip(self.d.iter().zip(&self.d1));
        for (b, (quads, (d, d1))) in blocks.enumerate().take(self.blocks) {
            let mut s = [[_mm256_setzero_si256(); COLUMNS]; 2];
            for (h, quad) in quads.as_chunks().0.iter().enumerate().take(halves) {
                let mut sum = [_mm256_setzero_si256(); COLUMNS];
                four_steps!(B, quad, codes, 2 * b + h, ones, sum);
                s[h] = sum;
            }
            let (d, d1) = (load_floats(d), load_floats(d1));
            let w = match (B::HALVES, B::AFFINE) {
                (true, _) => Scales::Halves(d, d1),
                (false, true) => Scales::Affine(d, d1),
                (false, false) => Scales::One(d),
            };
            for c in 0..COLUMNS {
                let sums = _mm256_set1_epi32(bytemuck::must_cast(x[c].sums[8 * k + b]));
                let t = w.term(s[0][c], s[1][c], sums, B::OFFSET);
                let acc = &mut acc[SMALL_CHAINS * c + b];
                let dx = _mm256_set1_ps(x[c].scales[8 * k + b]);
                store_floats(acc, _mm256_fmadd_ps(dx, t, load_floats(acc)));
            }
        }
    }
}
