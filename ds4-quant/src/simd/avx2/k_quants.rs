//! Q3_K, Q4_K, Q5_K, Q6_K in registers: shifts and masks, the upper bits put on top.

use std::arch::x86_64::*;

use super::q2_k::{even_odd, two_bits};
use super::reg::{load, load_half, load_quarter};
use super::{Codes, Correction, Parts, Super};
use crate::format::q3_k::BlockQ3K;
use crate::format::q4_k::{BlockQ4K, scales_mins};
use crate::format::q5_k::BlockQ5K;
use crate::format::q6_k::BlockQ6K;

/// Bit `at` of every byte, moved to bit `to`.
macro_rules! bit {
    ($v:expr, $at:literal, $to:literal) => {{
        const UP: i32 = if $to > $at { $to - $at } else { 0 };
        const DOWN: i32 = if $at > $to { $at - $to } else { 0 };
        let moved = _mm256_srli_epi16::<DOWN>(_mm256_slli_epi16::<UP>($v));
        _mm256_and_si256(moved, _mm256_set1_epi8(1 << $to))
    }};
}

/// Every one of eight bits of the bytes, moved to bit `to`.
macro_rules! bits {
    ($v:expr, $to:literal) => {
        [
            bit!($v, 0, $to),
            bit!($v, 1, $to),
            bit!($v, 2, $to),
            bit!($v, 3, $to),
            bit!($v, 4, $to),
            bit!($v, 5, $to),
            bit!($v, 6, $to),
            bit!($v, 7, $to),
        ]
    };
}

#[inline]
#[target_feature(enable = "avx2")]
fn or(a: [__m256i; 8], b: [__m256i; 8]) -> [__m256i; 8] {
    std::array::from_fn(|c| _mm256_or_si256(a[c], b[c]))
}

/// The low nibbles of 32 bytes, then the high ones, four times.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(qs: &[u8; 128]) -> [__m256i; 8] {
    let low = _mm256_set1_epi8(15);
    std::array::from_fn(|c| {
        let v = load(&qs.as_chunks().0[c / 2]);
        let v = if c % 2 == 0 {
            v
        } else {
            _mm256_srli_epi16::<4>(v)
        };
        _mm256_and_si256(v, low)
    })
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
    const CORRECTION: Correction = Correction::Offset;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(&self) -> [__m256i; 8] {
        or(two_bits(&self.qs), bits!(load(&self.hmask), 2))
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
    const CORRECTION: Correction = Correction::Minimum;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(&self) -> [__m256i; 8] {
        nibbles(&self.qs)
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
    const CORRECTION: Correction = Correction::Minimum;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(&self) -> [__m256i; 8] {
        or(nibbles(&self.qs), bits!(load(&self.qh), 4))
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
    const CORRECTION: Correction = Correction::Offset;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(&self) -> [__m256i; 8] {
        let (low, high) = (_mm256_set1_epi8(15), _mm256_set1_epi8(0x30));
        std::array::from_fn(|c| {
            let (h, k) = (c / 4, c % 4);
            let ql = load(&self.ql.as_chunks().0[2 * h + k % 2]);
            let qh = load(&self.qh.as_chunks().0[h]);
            let ql = if k < 2 {
                ql
            } else {
                _mm256_srli_epi16::<4>(ql)
            };
            let qh = match k {
                0 => _mm256_slli_epi16::<4>(qh),
                1 => _mm256_slli_epi16::<2>(qh),
                2 => qh,
                _ => _mm256_srli_epi16::<2>(qh),
            };
            _mm256_or_si256(_mm256_and_si256(ql, low), _mm256_and_si256(qh, high))
        })
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
