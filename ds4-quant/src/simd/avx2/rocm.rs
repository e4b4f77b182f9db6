//! ROCmFP2, ROCmFP3, ROCmFP4, ROCmFP6, ROCmFP8, ROCmI4 in registers: bit streams spread to bytes, levels from tables.

use std::arch::x86_64::*;

use super::nibbles::{look_up, split};
use super::reg::{load_codes, load_floats, load_half, load_quarter};
use super::{Codes, Scales, Small};
use crate::codebook::ue4m3;
use crate::format::rocmfp2::{BlockAffine, BlockS40, BlockTwoScale, TwoBits};
use crate::format::rocmfp3::{self, BlockRocmFp3};
use crate::format::rocmfp4::{self, BlockRocmFp4, BlockRocmFp4Fast};
use crate::format::rocmfp6::BlockRocmFp6;
use crate::format::rocmfp8::BlockRocmFp8;
use crate::format::rocmi4::BlockRocmI4;

/// A table of levels with an offset that makes them all ≥ 0, to 16 entries.
const fn raised<const N: usize>(levels: [i8; N], offset: i16) -> [i8; 16] {
    let mut table = [0; 16];
    let mut i = 0;
    while i < N {
        table[i] = levels[i] + offset as i8;
        i += 1;
    }
    table
}

/// Both scales of eight blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(e: [[u8; 2]; 8]) -> Scales {
    Scales::Halves(
        load_floats(&e.map(|[first, _]| ue4m3(first))),
        load_floats(&e.map(|[_, last]| ue4m3(last))),
    )
}

/// The scale of eight blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn one(e: [u8; 8]) -> Scales {
    Scales::One(load_floats(&e.map(ue4m3)))
}

/// Eight bytes as 32 codes of two bits: one byte a lane, its four codes moved to the four bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn two_bits(block: &TwoBits) -> __m256i {
    let t = _mm256_cvtepu8_epi32(load_quarter(&block.qs));
    let t = _mm256_or_si256(t, _mm256_slli_epi32::<12>(t));
    let t = _mm256_or_si256(t, _mm256_slli_epi32::<6>(t));
    _mm256_and_si256(t, _mm256_set1_epi8(3))
}

impl Small for BlockTwoScale {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 4;
    const OFFSET: i16 = 1;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        two_bits(&group[k].0)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        halves(std::array::from_fn(|k| group[k].0.e))
    }
}

impl Small for BlockS40 {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 4;
    const OFFSET: i16 = 4;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        const LEVELS: [i8; 16] = raised([-4, -1, 1, 4], BlockS40::OFFSET);
        look_up(&LEVELS, two_bits(&group[k].0))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        halves(std::array::from_fn(|k| group[k].0.e))
    }
}

impl Small for BlockAffine {
    const CODES: Codes = Codes::Unsigned;
    const AFFINE: bool = true;
    const SPAN: usize = 4;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        two_bits(&group[k].0)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        Scales::Affine(
            load_floats(&std::array::from_fn(|k| ue4m3(group[k].0.e[0]))),
            load_floats(&std::array::from_fn(|k| ue4m3(group[k].0.e[1]))),
        )
    }
}

impl Small for BlockRocmFp3 {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 4;
    const OFFSET: i16 = 4;

    /// Twelve bits a lane, its four codes moved to the four bytes by way of pairs.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        const LEVELS: [i8; 16] = raised(rocmfp3::LEVELS, BlockRocmFp3::OFFSET);
        let [a, b, c] = bytemuck::must_cast::<_, [i32; 3]>(group[k].qs);
        let stream = _mm256_broadcastsi128_si256(_mm_setr_epi32(a, b, c, 0));
        // Lane 2i takes bytes 3i and 3i + 1, lane 2i + 1 bytes 3i + 1 and 3i + 2, four bits in.
        let order = _mm256_setr_epi8(
            0, 1, -1, -1, 1, 2, -1, -1, 3, 4, -1, -1, 4, 5, -1, -1, //
            6, 7, -1, -1, 7, 8, -1, -1, 9, 10, -1, -1, 10, 11, -1, -1,
        );
        let in_bits = _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4);
        let t = _mm256_srlv_epi32(_mm256_shuffle_epi8(stream, order), in_bits);
        let t = _mm256_or_si256(t, _mm256_slli_epi32::<10>(t));
        let t = _mm256_and_si256(t, _mm256_set1_epi16(0x3f));
        let t = _mm256_or_si256(t, _mm256_slli_epi32::<5>(t));
        look_up(&LEVELS, _mm256_and_si256(t, _mm256_set1_epi8(7)))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        halves(std::array::from_fn(|k| group[k].e))
    }
}

/// Values of ROCmFP4 codes plus their offset.
const FP4: [i8; 16] = raised(rocmfp4::LEVELS, BlockRocmFp4::OFFSET);

impl Small for BlockRocmFp4 {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 4;
    const OFFSET: i16 = 10;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        look_up(&FP4, split(&group[k].qs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        halves(std::array::from_fn(|k| group[k].e))
    }
}

impl Small for BlockRocmFp4Fast {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const OFFSET: i16 = BlockRocmFp4::OFFSET;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        look_up(&FP4, split(&group[k].qs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        one(std::array::from_fn(|k| group[k].e))
    }
}

impl Small for BlockRocmFp6 {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 2;
    const OFFSET: i16 = 32;

    /// Twenty-four bits a lane, its four codes moved to the four bytes by way of pairs; then sign and magnitude.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        const WHOLE: &str = "24 bytes hold 16 from the start and from the eighth";
        let qs = &group[k].qs;
        let low = load_half(qs.first_chunk().expect(WHOLE));
        let high = load_half(qs.last_chunk().expect(WHOLE));
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        let order = _mm256_setr_epi8(
            0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, //
            4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1,
        );
        let t = _mm256_shuffle_epi8(both, order);
        let up = _mm256_and_si256(_mm256_slli_epi32::<4>(t), _mm256_set1_epi32(0x0fff_0000));
        let t = _mm256_or_si256(_mm256_and_si256(t, _mm256_set1_epi32(0xfff)), up);
        let up = _mm256_and_si256(_mm256_slli_epi16::<2>(t), _mm256_set1_epi16(0x3f00));
        let code = _mm256_or_si256(_mm256_and_si256(t, _mm256_set1_epi16(0x3f)), up);
        // Level + 32: code + 32 below 32, 0 for 32, 64 − code above.
        let edge = _mm256_set1_epi8(32);
        let plus = _mm256_add_epi8(code, edge);
        let minus = _mm256_sub_epi8(_mm256_set1_epi8(64), code);
        let minus = _mm256_andnot_si256(_mm256_cmpeq_epi8(code, edge), minus);
        _mm256_blendv_epi8(minus, plus, _mm256_cmpgt_epi8(edge, code))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        halves(std::array::from_fn(|k| group[k].e))
    }
}

impl Small for BlockRocmFp8 {
    const CODES: Codes = Codes::Signed;
    const SPAN: usize = 1;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        load_codes(&group[k].q)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        one(std::array::from_fn(|k| group[k].e))
    }
}

impl Small for BlockRocmI4 {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const OFFSET: i16 = 8;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        _mm256_xor_si256(split(&group[k].qs), _mm256_set1_epi8(8))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        one(std::array::from_fn(|k| group[k].e))
    }
}
