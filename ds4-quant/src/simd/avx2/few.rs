//! Few rows of activations: packed blocks are expanded in registers and used at once.
//!
//! 256-weight blocks go four matrix rows at a time, 32-weight blocks eight blocks of a row at a time, so that the
//! sums across lanes and the float chains are shared.

use std::arch::x86_64::*;

use super::reg::{
    fold8, half_sums8, halves4, load_codes, load_floats, load_words, store_four, sums4,
};
use super::{Codes, Correction, Parts, Scales, Small, Super};
use crate::Matrix;
use crate::activations::QuantizedRow;

/// Matrix rows that share one chain register.
const ROWS: usize = 4;

/// Up to `N` rows of activations with a matrix of 256-weight blocks.
///
/// * `x`: `N` rows · `y`: `N` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn super_rows<B: Super, const N: usize>(
    w: Matrix<'_>,
    x: [QuantizedRow<'_>; N],
    y: &mut [&mut [f32]],
) {
    let blocks: &[B] = bytemuck::cast_slice(w.bytes());
    let n = w.cols() / 256;
    if n == 0 {
        return y.iter_mut().for_each(|y| y.fill(0.0));
    }
    for first in (0..w.rows()).step_by(ROWS) {
        let left = w.rows() - first;
        let rows: [&[B]; ROWS] =
            std::array::from_fn(|r| &blocks[(first + r.min(left - 1)) * n..][..n]);
        let mut acc = [_mm_setzero_ps(); N];
        for b in 0..n {
            let mut s = [[_mm256_setzero_si256(); ROWS]; N];
            let mut m = [[_mm256_setzero_si256(); ROWS]; N];
            let four: [&B; ROWS] = std::array::from_fn(|r| &rows[r][b]);
            for (r, block) in four.into_iter().enumerate() {
                // SAFETY: this function is compiled for, and called with, the same features.
                let codes = unsafe { block.codes() };
                // SAFETY: as above.
                let parts = unsafe { block.parts() };
                for c in 0..N {
                    s[c][r] = products::<B>(&codes, &parts, &x[c].codes[256 * b..][..256]);
                    if B::CORRECTION != Correction::None {
                        let sums = x[c].sums[16 * b..].first_chunk().expect("16 sums a block");
                        m[c][r] = _mm256_madd_epi16(load_words(sums), parts.min);
                    }
                }
            }
            let d = _mm_mul_ps(halves4(four.map(B::d)), _mm_set1_ps(B::FACTOR));
            for c in 0..N {
                if B::CORRECTION == Correction::Offset {
                    for (s, m) in s[c].iter_mut().zip(m[c]) {
                        *s = _mm256_sub_epi32(*s, m);
                    }
                }
                let mut t = _mm_mul_ps(d, _mm_cvtepi32_ps(sums4(s[c])));
                if B::CORRECTION == Correction::Minimum {
                    let dmin = halves4(four.map(B::dmin));
                    t = _mm_fnmadd_ps(dmin, _mm_cvtepi32_ps(sums4(m[c])), t);
                }
                acc[c] = _mm_fmadd_ps(_mm_set1_ps(x[c].scales[b]), t, acc[c]);
            }
        }
        for (acc, y) in acc.into_iter().zip(y.iter_mut()) {
            let mut four = [0.0; ROWS];
            store_four(&mut four, acc);
            let y = &mut y[first..];
            let n = ROWS.min(left);
            y[..n].copy_from_slice(&four[..n]);
        }
    }
}

/// `Σ scale · code · x` over 256 weights, spread over the lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn products<B: Super>(codes: &[__m256i; 8], parts: &Parts, x: &[i8]) -> __m256i {
    let mut sum = _mm256_setzero_si256();
    for (c, (&q, x)) in codes.iter().zip(x.as_chunks().0).enumerate() {
        let at = (2 * c + (2 * c + 1) * 256) as i16;
        let scale = _mm256_shuffle_epi8(parts.scale, _mm256_set1_epi16(at));
        let pairs = pairs(B::CODES, q, load_codes(x));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scale));
    }
    sum
}

/// Products of bytes, summed in pairs.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs(codes: Codes, q: __m256i, x: __m256i) -> __m256i {
    match codes {
        Codes::Unsigned => _mm256_maddubs_epi16(q, x),
        Codes::Signed => _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q)),
    }
}

/// 32-weight blocks in one step.
const STEP: usize = 8;

/// Up to `N` rows of activations with a matrix of 32-weight blocks.
///
/// * `x`: `N` rows · `y`: `N` slices of `[rows]`
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn small_rows<B: Small, const N: usize>(
    w: Matrix<'_>,
    x: [QuantizedRow<'_>; N],
    y: &mut [&mut [f32]],
) {
    let blocks: &[B] = bytemuck::cast_slice(w.bytes());
    let (n, per_step) = (w.cols() / B::LEN, 32 * STEP / B::LEN);
    let tails = x.map(Tail::new);
    for r in 0..w.rows() {
        let row = &blocks[r * n..][..n];
        let steps = row.chunks_exact(per_step);
        let rest = steps.remainder();
        let mut acc = [_mm256_setzero_ps(); N];
        for (i, group) in steps.enumerate() {
            let terms = terms(group, x.map(|x| x.step(i)));
            for c in 0..N {
                let dx = x[c].scales[STEP * i..]
                    .first_chunk()
                    .expect("8 scales a step");
                acc[c] = _mm256_fmadd_ps(load_floats(dx), terms[c], acc[c]);
            }
        }
        if !rest.is_empty() {
            let mut group = [B::zeroed(); STEP];
            group[..rest.len()].copy_from_slice(rest);
            let terms = terms(&group[..per_step], tails.each_ref().map(Tail::step));
            for c in 0..N {
                let next = _mm256_fmadd_ps(load_floats(&tails[c].scales), terms[c], acc[c]);
                acc[c] = _mm256_blendv_ps(acc[c], next, load_floats(&tails[c].mask));
            }
        }
        for (acc, y) in acc.into_iter().zip(y.iter_mut()) {
            y[r] = fold8(acc);
        }
    }
}

/// What eight blocks of a row of activations bring: `[256]` codes, `[16]` sums.
#[derive(Clone, Copy)]
struct Step<'a> {
    codes: &'a [i8; 256],
    sums: &'a [i16; 16],
}

impl<'a> QuantizedRow<'a> {
    #[inline]
    fn step(&self, i: usize) -> Step<'a> {
        Step {
            codes: self.codes[256 * i..]
                .first_chunk()
                .expect("256 codes a step"),
            sums: self.sums[16 * i..].first_chunk().expect("16 sums a step"),
        }
    }
}

/// The last blocks of a row that are fewer than eight, zeros behind them.
struct Tail {
    codes: [i8; 256],
    sums: [i16; 16],
    scales: [f32; STEP],
    /// Sign bit set where there is a block.
    mask: [f32; STEP],
}

impl Tail {
    fn new(x: QuantizedRow<'_>) -> Self {
        fn copy<T: Copy, const N: usize>(to: &mut [T; N], from: &[T]) {
            to[..from.len()].copy_from_slice(from);
        }
        let mut tail = Self {
            codes: [0; 256],
            sums: [0; 16],
            scales: [0.0; STEP],
            mask: [0.0; STEP],
        };
        copy(&mut tail.codes, x.codes.as_chunks::<256>().1);
        copy(&mut tail.sums, x.sums.as_chunks::<16>().1);
        let scales = x.scales.as_chunks::<STEP>().1;
        copy(&mut tail.scales, scales);
        tail.mask[..scales.len()].fill(-1.0);
        tail
    }

    fn step(&self) -> Step<'_> {
        Step {
            codes: &self.codes,
            sums: &self.sums,
        }
    }
}

/// The weight's side `t` of eight blocks, for each row of activations.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn terms<B: Small, const N: usize>(group: &[B], x: [Step<'_>; N]) -> [__m256; N] {
    let ones = _mm256_set1_epi16(1);
    let mut v = [[_mm256_setzero_si256(); STEP]; N];
    for k in 0..STEP {
        // SAFETY: this function is compiled for, and called with, the same features.
        let q = unsafe { B::codes(group, k) };
        for c in 0..N {
            let x = x[c].codes.as_chunks::<32>().0;
            v[c][k] = _mm256_madd_epi16(pairs(B::CODES, q, load_codes(&x[k])), ones);
        }
    }
    // SAFETY: as above.
    let scales = unsafe { B::scales(group) };
    let mut t = [_mm256_setzero_ps(); N];
    for c in 0..N {
        let [mut low, mut high] = half_sums8(v[c]);
        let sums = load_words(x[c].sums);
        match scales {
            Scales::One(d) => {
                let mut all = _mm256_add_epi32(low, high);
                if B::OFFSET != 0 {
                    let offset = _mm256_madd_epi16(sums, _mm256_set1_epi16(B::OFFSET));
                    all = _mm256_sub_epi32(all, offset);
                }
                t[c] = _mm256_mul_ps(d, _mm256_cvtepi32_ps(all));
            }
            Scales::Halves(d0, d1) => {
                if B::OFFSET != 0 {
                    let even = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(sums));
                    let odd = _mm256_srai_epi32::<16>(sums);
                    let offset = _mm256_set1_epi32(i32::from(B::OFFSET));
                    low = _mm256_sub_epi32(low, _mm256_mullo_epi32(even, offset));
                    high = _mm256_sub_epi32(high, _mm256_mullo_epi32(odd, offset));
                }
                let first = _mm256_mul_ps(d0, _mm256_cvtepi32_ps(low));
                t[c] = _mm256_fmadd_ps(d1, _mm256_cvtepi32_ps(high), first);
            }
        }
    }
    t
}
