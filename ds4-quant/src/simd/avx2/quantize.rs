//! Rows of activations to signed bytes: the steps of the scalar form, eight numbers at a time.

use std::arch::x86_64::*;

use super::reg::{load_floats, store};

/// The absolute values as integers, which order like the numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn magnitudes(x: &[f32; 8]) -> __m256i {
    let bits = _mm256_castps_si256(load_floats(x));
    _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX))
}

/// The largest magnitude of some numbers; `None` when one is not finite.
#[inline]
#[target_feature(enable = "avx2")]
fn largest(x: &[[f32; 8]]) -> Option<f32> {
    let mut max = _mm256_setzero_si256();
    for x in x {
        max = _mm256_max_epu32(max, magnitudes(x));
    }
    let max = _mm_max_epu32(
        _mm256_castsi256_si128(max),
        _mm256_extracti128_si256::<1>(max),
    );
    let max = _mm_max_epu32(max, _mm_shuffle_epi32::<0b01_00_11_10>(max));
    let max = _mm_max_epu32(max, _mm_shuffle_epi32::<0b10_11_00_01>(max));
    let max = f32::from_bits(_mm_cvtsi128_si32(max) as u32);
    max.is_finite().then_some(max)
}

/// Four times eight integers as 32 bytes, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(q: [__m256i; 4]) -> __m256i {
    let words = [
        _mm256_packs_epi32(q[0], q[1]),
        _mm256_packs_epi32(q[2], q[3]),
    ];
    let bytes = _mm256_packs_epi16(words[0], words[1]);
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Sums of each 4 codes of 32.
#[inline]
#[target_feature(enable = "avx2")]
fn fours(q: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
}

/// Store 32 codes.
#[inline]
#[target_feature(enable = "avx2")]
fn put(codes: &mut [i8; 32], q: __m256i) {
    store(bytemuck::cast_mut(codes), q);
}

/// [`crate::activations::q8_k_row`].
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q8_k(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    let groups = x
        .as_chunks::<256>()
        .0
        .iter()
        .zip(codes.as_chunks_mut::<256>().0);
    let results = scales.iter_mut().zip(sums.as_chunks_mut::<16>().0);
    for ((x, codes), (d, sums)) in groups.zip(results) {
        let x = x.as_chunks::<8>().0;
        (*d, *sums) = (f32::NAN, [0; 16]);
        codes.fill(0);
        let Some(amax) = largest(x) else {
            continue;
        };
        let iscale = -127.0 / first_of(x, amax);
        if !iscale.is_finite() {
            *d = 0.0;
            continue;
        }
        *d = 1.0 / iscale;
        let scale = _mm256_set1_ps(iscale);
        let chunks = x
            .as_chunks::<4>()
            .0
            .iter()
            .zip(codes.as_chunks_mut::<32>().0);
        for ((x, codes), sums) in chunks.zip(sums.as_chunks_mut::<2>().0) {
            let mut q = [_mm256_setzero_si256(); 4];
            for (q, x) in q.iter_mut().zip(x) {
                *q = _mm256_cvtps_epi32(_mm256_mul_ps(scale, load_floats(x)));
            }
            let q = narrow(q);
            put(codes, q);
            *sums = half_sums(q);
        }
    }
}

/// The first number whose magnitude is `amax`; `amax` itself, not above zero, when nothing is larger than zero.
#[inline]
#[target_feature(enable = "avx2")]
fn first_of(x: &[[f32; 8]], amax: f32) -> f32 {
    let want = _mm256_set1_epi32(amax.to_bits() as i32);
    for x in x {
        let equal = _mm256_cmpeq_epi32(magnitudes(x), want);
        let mask = _mm256_movemask_ps(_mm256_castsi256_ps(equal));
        if mask != 0 {
            return x[mask.trailing_zeros() as usize];
        }
    }
    amax
}

/// The sums of the first and of the last 16 codes.
#[inline]
#[target_feature(enable = "avx2")]
fn half_sums(q: __m256i) -> [i16; 2] {
    let sums = fours(q);
    let pairs = _mm256_hadd_epi32(sums, sums);
    let sums = _mm256_hadd_epi32(pairs, pairs);
    let low = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums));
    let high = _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(sums));
    [low as i16, high as i16]
}

/// [`crate::activations::q8_0_row`].
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q8_0(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    let groups = x
        .as_chunks::<32>()
        .0
        .iter()
        .zip(codes.as_chunks_mut::<32>().0);
    let results = scales.iter_mut().zip(sums.as_chunks_mut::<2>().0);
    for ((x, codes), (d, sums)) in groups.zip(results) {
        let x = x.as_chunks::<8>().0;
        (*d, *sums) = (f32::NAN, [0; 2]);
        codes.fill(0);
        let Some(amax) = largest(x) else {
            continue;
        };
        let scale = amax / 127.0;
        let id = 1.0 / scale;
        if !id.is_finite() {
            *d = 0.0;
            continue;
        }
        let id = _mm256_set1_ps(id);
        let mut q = [_mm256_setzero_si256(); 4];
        for (q, x) in q.iter_mut().zip(x) {
            *q = _mm256_cvttps_epi32(round(_mm256_mul_ps(load_floats(x), id)));
        }
        let q = narrow(q);
        put(codes, q);
        *sums = half_sums(q);
        let half = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(scale));
        *d = _mm_cvtss_f32(_mm_cvtph_ps(half));
    }
}

/// To the nearest integer, halves away from zero.
#[inline]
#[target_feature(enable = "avx2")]
fn round(v: __m256) -> __m256 {
    let sign = _mm256_set1_ps(-0.0);
    let whole = _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(v);
    let rest = _mm256_andnot_ps(sign, _mm256_sub_ps(v, whole));
    let up = _mm256_cmp_ps::<_CMP_GE_OQ>(rest, _mm256_set1_ps(0.5));
    let one = _mm256_or_ps(_mm256_and_ps(v, sign), _mm256_set1_ps(1.0));
    _mm256_add_ps(whole, _mm256_and_ps(up, one))
}
