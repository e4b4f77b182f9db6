//! Registers: loads and stores of arrays, and the sums that end every product.

use std::arch::x86_64::*;

/// 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// 32 signed bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_codes(codes: &[i8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read.
    unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) }
}

/// 16 words.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_words(words: &[i16; 16]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes read.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_floats(floats: &[f32; 8]) -> __m256 {
    // SAFETY: the reference covers the 32 bytes read.
    unsafe { _mm256_loadu_ps(floats.as_ptr()) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers the 16 bytes read.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 8 bytes, zeros above.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_quarter(bytes: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

/// A byte as an index. Plain loads of neighbouring bytes would be merged into a vector, and taking them out of it again
/// costs more than loading each.
#[inline(always)]
pub(crate) fn index(byte: &u8) -> usize {
    // SAFETY: the reference covers the byte read.
    usize::from(unsafe { std::ptr::read_volatile(byte) })
}

/// Store 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store(to: &mut [u8; 32], v: __m256i) {
    // SAFETY: the reference covers the 32 bytes written.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
}

/// Store 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_floats(to: &mut [f32; 8], v: __m256) {
    // SAFETY: the reference covers the 32 bytes written.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
}

/// 4 floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_four(floats: &[f32; 4]) -> __m128 {
    // SAFETY: the reference covers the 16 bytes read.
    unsafe { _mm_loadu_ps(floats.as_ptr()) }
}

/// Bytes ahead of its use at which packed data is asked for: covers the latency of memory, and pages, where the
/// processor's own prefetching stops.
const AHEAD: usize = 2048;

/// Ask for what will be in the place of `blocks` after [`AHEAD`] bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn prefetch<B>(blocks: &[B]) {
    let from: *const i8 = blocks.as_ptr().cast();
    for at in (0..size_of_val(blocks)).step_by(64) {
        #[allow(
            unused_unsafe,
            reason = "a safe function since a later release than the oldest supported"
        )]
        // SAFETY: a prefetch has no effect on memory and does not fault, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + at));
        }
    }
}

/// Four half floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(crate) fn halves4(h: [[u8; 2]; 4]) -> __m128 {
    let h = h.map(i16::from_le_bytes);
    _mm_cvtph_ps(_mm_setr_epi16(h[0], h[1], h[2], h[3], 0, 0, 0, 0))
}

/// Eight half floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(crate) fn halves8(h: [[u8; 2]; 8]) -> __m256 {
    let h = h.map(i16::from_le_bytes);
    _mm256_cvtph_ps(_mm_setr_epi16(
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7],
    ))
}

/// The sums of the eight lanes of each of four registers.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sums4(v: [__m256i; 4]) -> __m128i {
    let s = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256::<1>(s))
}

/// The sums of the lower four lanes of each of eight registers, and of the upper four.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn half_sums8(v: [__m256i; 8]) -> [__m256i; 2] {
    let a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    let b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    [
        _mm256_permute2x128_si256::<0x20>(a, b),
        _mm256_permute2x128_si256::<0x31>(a, b),
    ]
}

/// Lane l plus lane l + 2, then + 1: the order of [`crate::accumulate::fold`].
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn fold4(v: __m128) -> f32 {
    let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
}

/// Lane l plus lane l + 4, then + 2, then + 1: the order of [`crate::accumulate::fold`].
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn fold8(v: __m256) -> f32 {
    fold4(_mm_add_ps(
        _mm256_castps256_ps128(v),
        _mm256_extractf128_ps::<1>(v),
    ))
}

/// 4 × 4 floats: lane r of result s is lane s of row r.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose4(rows: [__m128; 4]) -> [__m128; 4] {
    let [a, b, c, d] = rows;
    let (ab0, ab1) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
    let (cd0, cd1) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
    [
        _mm_movelh_ps(ab0, cd0),
        _mm_movehl_ps(cd0, ab0),
        _mm_movelh_ps(ab1, cd1),
        _mm_movehl_ps(cd1, ab1),
    ]
}

/// The four lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn lanes(v: __m128) -> [f32; 4] {
    bytemuck::must_cast(v)
}

/// 8 × 8 double words: lane r of result s is lane s of row r.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    let pairs = |x, y| (_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
    let ((ab0, ab1), (cd0, cd1)) = (pairs(a, b), pairs(c, d));
    let ((ef0, ef1), (gh0, gh1)) = (pairs(e, f), pairs(g, h));
    let quads = |x, y| (_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y));
    let ((s0, s1), (s2, s3)) = (quads(ab0, cd0), quads(ab1, cd1));
    let ((t0, t1), (t2, t3)) = (quads(ef0, gh0), quads(ef1, gh1));
    let low = |x, y| _mm256_permute2x128_si256::<0x20>(x, y);
    let high = |x, y| _mm256_permute2x128_si256::<0x31>(x, y);
    [
        low(s0, t0),
        low(s1, t1),
        low(s2, t2),
        low(s3, t3),
        high(s0, t0),
        high(s1, t1),
        high(s2, t2),
        high(s3, t3),
    ]
}

/// Shift words right; with a constant `by` this is one instruction.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn right(v: __m256i, by: usize) -> __m256i {
    _mm256_srl_epi16(v, _mm_cvtsi64_si128(by as i64))
}

/// Shift words left; with a constant `by` this is one instruction.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn left(v: __m256i, by: usize) -> __m256i {
    _mm256_sll_epi16(v, _mm_cvtsi64_si128(by as i64))
}
