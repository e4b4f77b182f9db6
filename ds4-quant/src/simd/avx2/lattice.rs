//! IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S in registers: points come from tables, signs from bits.
//!
//! The tables hold magnitude + offset; a minus sign turns o + m into o − m = 2·o − (o + m). Codes stay unsigned, and
//! the offset leaves by way of the sums of the activations.

use std::arch::x86_64::*;

use super::reg::{index, load, load_quarter};
use super::{Codes, Correction, Parts, Super};
use crate::codebook;
use crate::format::iq2_s::BlockIq2S;
use crate::format::iq2_xs::BlockIq2Xs;
use crate::format::iq2_xxs::BlockIq2Xxs;
use crate::format::iq3_s::BlockIq3S;
use crate::format::iq3_xxs::BlockIq3Xxs;

/// The largest magnitude of the IQ2 points.
const IQ2_OFFSET: i16 = 43;
/// The largest magnitude of the IQ3_XXS points.
const IQ3_XXS_OFFSET: i16 = 62;
/// The largest magnitude of the IQ3_S points.
const IQ3_S_OFFSET: i16 = 15;

/// Points as little-endian integers, every magnitude raised by `offset`.
macro_rules! raised {
    ($int:ty, $points:expr, $offset:expr) => {{
        const POINTS: usize = $points.len();
        const TABLE: [$int; POINTS] = {
            let mut table = [0; POINTS];
            let mut i = 0;
            while i < POINTS {
                let mut bytes = $points[i];
                let mut j = 0;
                while j < bytes.len() {
                    bytes[j] += $offset as u8;
                    j += 1;
                }
                table[i] = <$int>::from_le_bytes(bytes);
                i += 1;
            }
            table
        };
        TABLE
    }};
}

static IQ2_XXS: [i64; 256] = raised!(i64, codebook::IQ2_XXS, IQ2_OFFSET);
static IQ2_XS: [i64; 512] = raised!(i64, codebook::IQ2_XS, IQ2_OFFSET);
static IQ2_S: [i64; 1024] = raised!(i64, codebook::IQ2_S, IQ2_OFFSET);
static IQ3_XXS: [i32; 256] = raised!(i32, codebook::IQ3_XXS, IQ3_XXS_OFFSET);
static IQ3_S: [i32; 512] = raised!(i32, codebook::IQ3_S, IQ3_S_OFFSET);

/// Sign bytes for 256 weights. Register `half[i]` holds the same 16 bytes twice: those of weights 128i..128i+128.
pub(in crate::simd) struct Signs {
    half: [__m256i; 2],
    bytes: __m256i,
}

impl Signs {
    /// From 32 sign bytes in order.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(bytes: __m256i) -> Self {
        Self {
            half: [
                _mm256_permute2x128_si256::<0x00>(bytes, bytes),
                _mm256_permute2x128_si256::<0x11>(bytes, bytes),
            ],
            bytes,
        }
    }

    /// From seven bits in each byte: the eighth makes the number of ones even.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn even(seven: __m256i) -> Self {
        // 0x80 for the nibbles with an odd number of ones.
        const O: i8 = -128;
        let odd = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            0, O, O, 0, O, 0, 0, O, O, 0, 0, O, 0, O, O, 0,
        ));
        let nibble = _mm256_xor_si256(seven, _mm256_srli_epi16::<4>(seven));
        let parity = _mm256_shuffle_epi8(odd, _mm256_and_si256(nibble, _mm256_set1_epi8(15)));
        Self::new(_mm256_or_si256(seven, parity))
    }

    /// From the low 28 bits of eight double words, seven for each 8 weights.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four_sevens(words: __m256i) -> Self {
        let low = _mm256_and_si256(words, _mm256_set1_epi32(0x3fff));
        let high = _mm256_and_si256(
            _mm256_slli_epi32::<2>(words),
            _mm256_set1_epi32(0x3fff_0000),
        );
        let pairs = _mm256_or_si256(low, high);
        // Doubling the upper seven bits of each word moves them to the next byte.
        let upper = _mm256_and_si256(pairs, _mm256_set1_epi16(0x3f80));
        Self::even(_mm256_add_epi16(pairs, upper))
    }

    /// Turn the codes of weights 32c..32c+32 that carry a minus sign into `2·offset − code`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn apply(&self, c: usize, codes: __m256i, offset: i16) -> __m256i {
        let byte = (4 * (c % 4)) as i8;
        let [b0, b1, b2, b3] = [byte, byte + 1, byte + 2, byte + 3];
        let spread = _mm256_setr_epi8(
            b0, b0, b0, b0, b0, b0, b0, b0, b1, b1, b1, b1, b1, b1, b1, b1, //
            b2, b2, b2, b2, b2, b2, b2, b2, b3, b3, b3, b3, b3, b3, b3, b3,
        );
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        let signs = _mm256_and_si256(_mm256_shuffle_epi8(self.half[c / 4], spread), bit);
        let minus = _mm256_cmpeq_epi8(signs, bit);
        let turned = _mm256_sub_epi8(_mm256_set1_epi8(2 * offset as i8), codes);
        _mm256_blendv_epi8(codes, turned, minus)
    }
}

/// Four points of eight.
#[inline]
#[target_feature(enable = "avx2")]
fn points8(p: [i64; 4]) -> __m256i {
    _mm256_setr_epi64x(p[0], p[1], p[2], p[3])
}

/// Eight points of four.
#[inline]
#[target_feature(enable = "avx2")]
fn points4(p: [i32; 8]) -> __m256i {
    _mm256_setr_epi32(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])
}

/// Parts from the scales of each 32 weights as words.
#[inline]
#[target_feature(enable = "avx2")]
fn parts_by_32(scale: __m128i, offset: i16) -> Parts {
    let twice = _mm256_setr_m128i(
        _mm_unpacklo_epi16(scale, scale),
        _mm_unpackhi_epi16(scale, scale),
    );
    Parts {
        scale: _mm256_broadcastsi128_si256(scale),
        min: _mm256_mullo_epi16(twice, _mm256_set1_epi16(offset)),
    }
}

/// `2·nibble + 1` of the top nibble of eight double words, as words in order.
#[inline]
#[target_feature(enable = "avx2")]
fn top_nibbles(words: __m256i) -> __m128i {
    // Bit 27 falls on the bit that is set anyway.
    let odd = _mm256_or_si256(_mm256_srli_epi32::<27>(words), _mm256_set1_epi32(1));
    _mm_packs_epi32(
        _mm256_castsi256_si128(odd),
        _mm256_extracti128_si256::<1>(odd),
    )
}

/// Parts from nibbles for each 16 weights, low nibble first.
#[inline]
#[target_feature(enable = "avx2")]
fn parts_by_16(sc: &[u8; 8]) -> Parts {
    let (sc, low) = (load_quarter(sc), _mm_set1_epi8(15));
    let even = _mm_and_si128(sc, low);
    let odd = _mm_and_si128(_mm_srli_epi16::<4>(sc), low);
    let scale = |nibbles: __m128i| {
        let words = _mm256_cvtepu8_epi16(nibbles);
        _mm256_add_epi16(_mm256_add_epi16(words, words), _mm256_set1_epi16(1))
    };
    Parts {
        scale: scale(_mm_unpacklo_epi64(even, odd)),
        min: _mm256_mullo_epi16(
            scale(_mm_unpacklo_epi8(even, odd)),
            _mm256_set1_epi16(IQ2_OFFSET),
        ),
    }
}

impl BlockIq2Xxs {
    /// The second words of the eight pairs.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn signs_scales(&self) -> __m256i {
        let bytes: &[u8; 64] = bytemuck::cast_ref(&self.groups);
        let (halves, _) = bytes.as_chunks();
        let first = _mm256_castsi256_ps(load(&halves[0]));
        let last = _mm256_castsi256_ps(load(&halves[1]));
        let mixed = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(first, last));
        _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
    }
}

impl Super for BlockIq2Xxs {
    const CODES: Codes = Codes::Unsigned;
    const MIRROR: i16 = IQ2_OFFSET;
    const SPAN: usize = 1;
    const CORRECTION: Correction = Correction::Offset;
    const FACTOR: f32 = 0.125;
    type Open = Signs;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        Signs::four_sevens(self.signs_scales())
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, signs: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        let points = unsafe { self.points::<C>(signs) };
        signs.apply(C, points, IQ2_OFFSET)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, _: &Self::Open) -> __m256i {
        points8([0, 1, 2, 3].map(|l| IQ2_XXS[index(&self.groups[C][l])]))
    }

    #[inline]
    unsafe fn minus(signs: &Self::Open) -> __m256i {
        signs.bytes
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        parts_by_32(top_nibbles(self.signs_scales()), IQ2_OFFSET)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}

impl Super for BlockIq2Xs {
    const CODES: Codes = Codes::Unsigned;
    const MIRROR: i16 = IQ2_OFFSET;
    const SPAN: usize = 1;
    const CORRECTION: Correction = Correction::Offset;
    const FACTOR: f32 = 0.125;
    type Open = Signs;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        let bytes: &[u8; 64] = bytemuck::cast_ref(&self.q);
        let (halves, _) = bytes.as_chunks();
        let first = _mm256_srli_epi16::<9>(load(&halves[0]));
        let last = _mm256_srli_epi16::<9>(load(&halves[1]));
        let mixed = _mm256_packus_epi16(first, last);
        Signs::even(_mm256_permute4x64_epi64::<0b11_01_10_00>(mixed))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, signs: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        let points = unsafe { self.points::<C>(signs) };
        signs.apply(C, points, IQ2_OFFSET)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, _: &Self::Open) -> __m256i {
        points8(
            [0, 1, 2, 3].map(|l| IQ2_XS[usize::from(u16::from_le_bytes(self.q[4 * C + l]) & 511)]),
        )
    }

    #[inline]
    unsafe fn minus(signs: &Self::Open) -> __m256i {
        signs.bytes
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        parts_by_16(&self.sc)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}

impl Super for BlockIq2S {
    const CODES: Codes = Codes::Unsigned;
    const MIRROR: i16 = IQ2_OFFSET;
    const SPAN: usize = 1;
    const CORRECTION: Correction = Correction::Offset;
    const FACTOR: f32 = 0.125;
    type Open = Signs;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        Signs::new(load(&self.signs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, signs: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        let points = unsafe { self.points::<C>(signs) };
        signs.apply(C, points, IQ2_OFFSET)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, _: &Self::Open) -> __m256i {
        points8([0, 1, 2, 3].map(|l| IQ2_S[self.index(4 * C + l)]))
    }

    #[inline]
    unsafe fn minus(signs: &Self::Open) -> __m256i {
        signs.bytes
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        parts_by_16(&self.sc)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}

impl Super for BlockIq3Xxs {
    const CODES: Codes = Codes::Unsigned;
    const MIRROR: i16 = IQ3_XXS_OFFSET;
    const SPAN: usize = 1;
    const CORRECTION: Correction = Correction::Offset;
    const FACTOR: f32 = 0.25;
    type Open = Signs;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        Signs::four_sevens(load(bytemuck::cast_ref(&self.ss)))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, signs: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        let points = unsafe { self.points::<C>(signs) };
        signs.apply(C, points, IQ3_XXS_OFFSET)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, _: &Self::Open) -> __m256i {
        points4([0, 1, 2, 3, 4, 5, 6, 7].map(|l| IQ3_XXS[index(&self.qs[8 * C + l])]))
    }

    #[inline]
    unsafe fn minus(signs: &Self::Open) -> __m256i {
        signs.bytes
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let words = load(bytemuck::cast_ref(&self.ss));
        parts_by_32(top_nibbles(words), IQ3_XXS_OFFSET)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}

impl Super for BlockIq3S {
    const CODES: Codes = Codes::Unsigned;
    const MIRROR: i16 = IQ3_S_OFFSET;
    const SPAN: usize = 4;
    const CORRECTION: Correction = Correction::Offset;
    type Open = Signs;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {
        Signs::new(load(&self.signs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, signs: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        let points = unsafe { self.points::<C>(signs) };
        signs.apply(C, points, IQ3_S_OFFSET)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, _: &Self::Open) -> __m256i {
        points4([0, 1, 2, 3, 4, 5, 6, 7].map(|l| IQ3_S[self.index(8 * C + l)]))
    }

    #[inline]
    unsafe fn minus(signs: &Self::Open) -> __m256i {
        signs.bytes
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let sc = _mm_cvtsi32_si128(i32::from_le_bytes(self.sc));
        let nibbles = _mm_unpacklo_epi8(sc, _mm_srli_epi16::<4>(sc));
        let words = _mm_cvtepu8_epi16(_mm_and_si128(nibbles, _mm_set1_epi8(15)));
        let scale = _mm_add_epi16(_mm_add_epi16(words, words), _mm_set1_epi16(1));
        parts_by_32(scale, IQ3_S_OFFSET)
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}
