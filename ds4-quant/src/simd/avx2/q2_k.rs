//! Q2_K in registers: shifts and masks; scales and minima are nibbles.

use std::arch::x86_64::*;

use super::reg::{load, load_half};
use super::{Codes, Correction, Parts, Super};
use crate::format::q2_k::BlockQ2K;

/// 256 two-bit codes, 32 a register; see [`crate::format::q2_k::two_bits`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn two_bits(qs: &[u8; 64]) -> [__m256i; 8] {
    let three = _mm256_set1_epi8(3);
    let [a, b] = [0, 1].map(|h| load(&qs.as_chunks().0[h]));
    [
        _mm256_and_si256(a, three),
        _mm256_and_si256(_mm256_srli_epi16::<2>(a), three),
        _mm256_and_si256(_mm256_srli_epi16::<4>(a), three),
        _mm256_and_si256(_mm256_srli_epi16::<6>(a), three),
        _mm256_and_si256(b, three),
        _mm256_and_si256(_mm256_srli_epi16::<2>(b), three),
        _mm256_and_si256(_mm256_srli_epi16::<4>(b), three),
        _mm256_and_si256(_mm256_srli_epi16::<6>(b), three),
    ]
}

/// Even bytes, then odd bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn even_odd(bytes: __m128i) -> __m128i {
    let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    _mm_shuffle_epi8(bytes, order)
}

impl Super for BlockQ2K {
    const CODES: Codes = Codes::Unsigned;
    const CORRECTION: Correction = Correction::Minimum;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(&self) -> [__m256i; 8] {
        two_bits(&self.qs)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let (sc, low) = (load_half(&self.sc), _mm_set1_epi8(15));
        let min = _mm_and_si128(_mm_srli_epi16::<4>(sc), low);
        Parts {
            scale: _mm256_cvtepu8_epi16(even_odd(_mm_and_si128(sc, low))),
            min: _mm256_cvtepu8_epi16(min),
        }
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }

    fn dmin(&self) -> [u8; 2] {
        self.dmin
    }
}
