//! Q2_K in registers: shifts and masks; scales and minima are nibbles.

use std::arch::x86_64::*;

use super::reg::{load, load_half, right};
use super::{Codes, Correction, Parts, Super};
use crate::format::q2_k::BlockQ2K;

/// Chunk C of 256 two-bit codes, whose bytes are `qs`; see [`crate::format::q2_k::two_bits`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn two_bits<const C: usize>(qs: &[__m256i; 2]) -> __m256i {
    let v = right(qs[C / 4], 2 * (C % 4));
    _mm256_and_si256(v, _mm256_set1_epi8(3))
}

/// The 64 bytes of two-bit codes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn two_halves(qs: &[u8; 64]) -> [__m256i; 2] {
    let (halves, _) = qs.as_chunks();
    [load(&halves[0]), load(&halves[1])]
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
    const SPAN: usize = 4;
    const CORRECTION: Correction = Correction::Minimum;
    type Open = [__m256i; 2];

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        two_halves(&self.qs)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, qs: &Self::Open) -> __m256i {
        two_bits::<C>(qs)
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
