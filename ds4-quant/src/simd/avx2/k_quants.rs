//! Q3_K, Q4_K, Q5_K, Q6_K in registers: shifts and masks, the upper bits put on top.

use std::arch::x86_64::*;

use super::q2_k::{even_odd, two_bits, two_halves};
use super::reg::{left, load, load_half, load_quarter, right};
use super::{Codes, Correction, Parts, Super};
use crate::format::q3_k::BlockQ3K;
use crate::format::q4_k::{BlockQ4K, scales_mins};
use crate::format::q5_k::BlockQ5K;
use crate::format::q6_k::BlockQ6K;

/// Bit `at` of every byte, moved to bit `to`.
#[inline]
#[target_feature(enable = "avx2")]
fn bit(v: __m256i, at: usize, to: usize) -> __m256i {
    let moved = right(left(v, to.saturating_sub(at)), at.saturating_sub(to));
    _mm256_and_si256(moved, _mm256_set1_epi8(1 << to))
}

/// Chunk C of 256 nibbles; see [`crate::format::q4_k::nibbles`].
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles<const C: usize>(qs: &[u8; 128]) -> __m256i {
    let v = right(load(&qs.as_chunks().0[C / 2]), 4 * (C % 2));
    _mm256_and_si256(v, _mm256_set1_epi8(15))
}

/// Scale and minimum of each 32 weights.
#[inline]
#[target_feature(enable = "avx2")]
fn six_bit_parts(s: &[u8; 12]) -> Parts {
    let [scale, min] = scales_mins(s);
    let min = load_quarter(&min);
    Parts {
        scale: _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(load_quarter(&scale))),
        min: _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(min, min)),
    }
}

impl Super for BlockQ3K {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const CORRECTION: Correction = Correction::Offset;
    type Open = ([__m256i; 2], __m256i);

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        (two_halves(&self.qs), load(&self.hmask))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, (low, high): &Self::Open) -> __m256i {
        _mm256_or_si256(two_bits::<C>(low), bit(*high, C, 2))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let [low, high, top] = [0, 4, 8].map(|at| {
            u32::from_le_bytes(*self.s[at..].first_chunk().expect("twelve bytes of scales"))
        });
        let eight = _mm_set_epi32(0, 0, high as i32, low as i32);
        let low = _mm_unpacklo_epi64(eight, _mm_srli_epi16::<4>(eight));
        let low = _mm_and_si128(low, _mm_set1_epi8(15));
        let top = _mm_srlv_epi32(_mm_set1_epi32(top as i32), _mm_setr_epi32(0, 2, 4, 6));
        let top = _mm_slli_epi16::<4>(_mm_and_si128(top, _mm_set1_epi8(3)));
        let scale = _mm_sub_epi8(_mm_or_si128(low, top), _mm_set1_epi8(32));
        Parts {
            scale: _mm256_cvtepi8_epi16(even_odd(scale)),
            min: _mm256_slli_epi16::<2>(_mm256_cvtepi8_epi16(scale)),
        }
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}

impl Super for BlockQ4K {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const CORRECTION: Correction = Correction::Minimum;
    type Open = ();

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {}

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, (): &Self::Open) -> __m256i {
        nibbles::<C>(&self.qs)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        six_bit_parts(&self.s)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }

    fn dmin(&self) -> [u8; 2] {
        self.dmin
    }
}

impl Super for BlockQ5K {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const CORRECTION: Correction = Correction::Minimum;
    type Open = __m256i;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        load(&self.qh)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, high: &Self::Open) -> __m256i {
        _mm256_or_si256(nibbles::<C>(&self.qs), bit(*high, C, 4))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        six_bit_parts(&self.s)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }

    fn dmin(&self) -> [u8; 2] {
        self.dmin
    }
}

impl Super for BlockQ6K {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 2;
    const CORRECTION: Correction = Correction::Offset;
    type Open = [__m256i; 2];

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        two_halves(&self.qh)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, qh: &Self::Open) -> __m256i {
        let (h, k) = (C / 4, C % 4);
        let low = right(load(&self.ql.as_chunks().0[2 * h + k % 2]), 4 * (k / 2));
        let high = right(
            left(qh[h], 4usize.saturating_sub(2 * k)),
            (2 * k).saturating_sub(4),
        );
        _mm256_or_si256(
            _mm256_and_si256(low, _mm256_set1_epi8(15)),
            _mm256_and_si256(high, _mm256_set1_epi8(0x30)),
        )
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let scale = load_half(bytemuck::cast_ref(&self.sc));
        Parts {
            scale: _mm256_cvtepi8_epi16(even_odd(scale)),
            min: _mm256_slli_epi16::<5>(_mm256_cvtepi8_epi16(scale)),
        }
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}
