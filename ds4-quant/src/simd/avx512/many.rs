//! Tiles of sixteen rows: lane = matrix row, four weights of each row in its lane.
//!
//! VNNI adds four products of an unsigned and a signed byte to a double word at once and cannot overflow here, so
//! signed codes simply become unsigned by 128, which the sums of the activations take off again.

use std::arch::x86_64::*;

use crate::accumulate::{SMALL_CHAINS, SUPER_CHAINS};
use crate::simd::avx2::many::{ROWS as HALF, SmallTile, SuperTile};
use crate::simd::avx2::reg::{load, load_floats};
use crate::simd::avx2::{Codes, Correction, Small, Super};
use crate::simd::tile::{Part, Tile};

/// Matrix rows of a tile.
const ROWS: usize = 2 * HALF;
/// Rows of activations that share the loads of a tile.
const COLUMNS: usize = 8;
/// What makes a signed code unsigned.
const SIGN: i32 = 128;

/// Two registers side by side.
#[inline]
#[target_feature(enable = "avx512f")]
fn join(low: &[u8; 32], high: &[u8; 32]) -> __m512i {
    join_halves(load(low), load(high))
}

/// Two registers side by side.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn join_halves(low: __m256i, high: __m256i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Two registers of floats side by side.
#[inline]
#[target_feature(enable = "avx512f")]
fn join_floats(low: &[f32; 8], high: &[f32; 8]) -> __m512 {
    let low = _mm512_castps_pd(_mm512_castps256_ps512(load_floats(low)));
    let high = _mm256_castps_pd(load_floats(high));
    _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, high))
}

/// Codes as unsigned bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn unsigned(codes: Codes, q: __m512i) -> __m512i {
    match codes {
        Codes::Unsigned => q,
        Codes::Signed => {
            _mm512_xor_si512(q, _mm512_set1_epi32(i32::from_ne_bytes([SIGN as u8; 4])))
        }
    }
}

/// `acc ← acc + dx · t`.
#[inline]
#[target_feature(enable = "avx512f")]
fn chain(acc: &mut [f32; ROWS], dx: f32, t: __m512) {
    // SAFETY: the reference covers the 64 bytes read.
    let before = unsafe { _mm512_loadu_ps(acc.as_ptr()) };
    let after = _mm512_fmadd_ps(_mm512_set1_ps(dx), t, before);
    // SAFETY: the reference covers the 64 bytes written.
    unsafe { _mm512_storeu_ps(acc.as_mut_ptr(), after) };
}

/// The four groups of four codes among sixteen.
#[inline]
fn quads(codes: &[i8; 16]) -> &[[i8; 4]; 4] {
    bytemuck::must_cast_ref(codes)
}

/// A tile of 256-weight blocks.
#[derive(Clone, Copy)]
pub(super) struct SuperPair<B>([SuperTile<B>; 2]);

impl<B: Super> Tile<ROWS, COLUMNS> for SuperPair<B> {
    type Block = B;
    const CHAINS: usize = SUPER_CHAINS;
    const GROUP: usize = 256;

    fn empty() -> Self {
        Self([SuperTile::empty(); 2])
    }

    unsafe fn pack(&mut self, rows: [&[B]; ROWS]) {
        for (tile, rows) in self.0.iter_mut().zip(rows.as_chunks().0) {
            // SAFETY: this function has the same contract and more.
            unsafe { tile.pack(*rows) };
        }
    }

    #[target_feature(enable = "avx512f,avx512vnni,avx2,fma,f16c")]
    unsafe fn add(&self, k: usize, x: &[Part<'_>; COLUMNS], acc: &mut [[f32; ROWS]]) {
        let [low, high] = &self.0;
        let mut s = [_mm512_setzero_si512(); COLUMNS];
        for g in 0..16 {
            let mut sum = [_mm512_setzero_si512(); COLUMNS];
            for i in 0..4 {
                let q = join(&low.codes[4 * g + i], &high.codes[4 * g + i]);
                let q = unsigned(B::CODES, q);
                for c in 0..COLUMNS {
                    let four = quads(&x[c].codes[16 * k + g])[i];
                    let four = _mm512_set1_epi32(bytemuck::must_cast(four));
                    sum[c] = _mm512_dpbusd_epi32(sum[c], q, four);
                }
            }
            // Two equal words a lane; the upper one with its sign.
            let scale = _mm512_srai_epi32::<16>(join(&low.scale[g], &high.scale[g]));
            for c in 0..COLUMNS {
                if B::CODES == Codes::Signed {
                    let excess = SIGN * i32::from(x[c].sums[8 * k + g / 2][g % 2]);
                    sum[c] = _mm512_sub_epi32(sum[c], _mm512_set1_epi32(excess));
                }
                s[c] = _mm512_add_epi32(s[c], _mm512_mullo_epi32(sum[c], scale));
            }
        }
        let mut m = [_mm512_setzero_si512(); COLUMNS];
        if B::CORRECTION != Correction::None {
            for l in 0..8 {
                let min = join(&low.min[l], &high.min[l]);
                for c in 0..COLUMNS {
                    let sums = _mm512_set1_epi32(bytemuck::must_cast(x[c].sums[8 * k + l]));
                    m[c] = _mm512_dpwssd_epi32(m[c], min, sums);
                }
            }
        }
        let d = join_floats(&low.d, &high.d);
        let dmin = join_floats(&low.dmin, &high.dmin);
        for c in 0..COLUMNS {
            if B::CORRECTION == Correction::Offset {
                s[c] = _mm512_sub_epi32(s[c], m[c]);
            }
            let mut t = _mm512_mul_ps(d, _mm512_cvtepi32_ps(s[c]));
            if B::CORRECTION == Correction::Minimum {
                t = _mm512_fnmadd_ps(dmin, _mm512_cvtepi32_ps(m[c]), t);
            }
            chain(
                &mut acc[SUPER_CHAINS * c + k % SUPER_CHAINS],
                x[c].scales[k],
                t,
            );
        }
    }
}

/// A tile of 32-weight blocks.
#[derive(Clone, Copy)]
pub(super) struct SmallPair<B>([SmallTile<B>; 2]);

impl<B: Small> Tile<ROWS, COLUMNS> for SmallPair<B> {
    type Block = B;
    const CHAINS: usize = SMALL_CHAINS;
    const GROUP: usize = 32;

    fn empty() -> Self {
        Self([SmallTile::empty(); 2])
    }

    unsafe fn pack(&mut self, rows: [&[B]; ROWS]) {
        for (tile, rows) in self.0.iter_mut().zip(rows.as_chunks().0) {
            // SAFETY: this function has the same contract and more.
            unsafe { tile.pack(*rows) };
        }
    }

    #[target_feature(enable = "avx512f,avx512vnni,avx2,fma,f16c")]
    unsafe fn add(&self, k: usize, x: &[Part<'_>; COLUMNS], acc: &mut [[f32; ROWS]]) {
        let [low, high] = &self.0;
        let offset = match B::CODES {
            Codes::Unsigned => i32::from(B::OFFSET),
            Codes::Signed => SIGN,
        };
        for b in 0..low.blocks {
            let mut t = [_mm512_setzero_ps(); COLUMNS];
            let mut sum = [_mm512_setzero_si512(); COLUMNS];
            for h in 0..2 {
                for c in 0..COLUMNS {
                    let excess = offset * i32::from(x[c].sums[8 * k + b][h]);
                    sum[c] = _mm512_sub_epi32(sum[c], _mm512_set1_epi32(excess));
                }
                for i in 0..4 {
                    let at = 8 * b + 4 * h + i;
                    let q = unsigned(B::CODES, join(&low.codes[at], &high.codes[at]));
                    for c in 0..COLUMNS {
                        let four = quads(&x[c].codes[16 * k + 2 * b + h])[i];
                        let four = _mm512_set1_epi32(bytemuck::must_cast(four));
                        sum[c] = _mm512_dpbusd_epi32(sum[c], q, four);
                    }
                }
                if !B::HALVES && h == 0 {
                    continue;
                }
                let d = if B::HALVES && h == 1 {
                    join_floats(&low.d1[b], &high.d1[b])
                } else {
                    join_floats(&low.d[b], &high.d[b])
                };
                for c in 0..COLUMNS {
                    let sum = std::mem::replace(&mut sum[c], _mm512_setzero_si512());
                    let sum = _mm512_cvtepi32_ps(sum);
                    t[c] = if B::HALVES && h == 1 {
                        _mm512_fmadd_ps(d, sum, t[c])
                    } else {
                        _mm512_mul_ps(d, sum)
                    };
                }
            }
            if B::AFFINE {
                let subtracted = join_floats(&low.d1[b], &high.d1[b]);
                for c in 0..COLUMNS {
                    let [first, last] = x[c].sums[8 * k + b].map(i32::from);
                    let sum = _mm512_set1_ps((first + last) as f32);
                    t[c] = _mm512_fnmadd_ps(subtracted, sum, t[c]);
                }
            }
            for c in 0..COLUMNS {
                chain(&mut acc[SMALL_CHAINS * c + b], x[c].scales[8 * k + b], t[c]);
            }
        }
    }
}
