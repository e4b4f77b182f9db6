//! Q4_0, IQ4_NL, MXFP4, NVFP4, IQ4_XS in registers: split-half nibbles, as they are or into a table of 16.

use std::arch::x86_64::*;

use super::reg::{halves8, load_floats, load_half};
use super::{Codes, Correction, Parts, Scales, Small, Super};
use crate::codebook;
use crate::format::iq4_nl::BlockIq4Nl;
use crate::format::iq4_xs::BlockIq4Xs;
use crate::format::mxfp4::{BlockMxfp4, e8m0_half};
use crate::format::nvfp4::BlockNvfp4;
use crate::format::q4_0::BlockQ4_0;

/// 16 bytes as 32 codes: the low nibbles, then the high ones.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn split(qs: &[u8; 16]) -> __m256i {
    let low = load_half(qs);
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), _mm_srli_epi16::<4>(low));
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// The table's value for each code 0..16.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn look_up(table: &[i8; 16], codes: __m256i) -> __m256i {
    let table = load_half(bytemuck::cast_ref(table));
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), codes)
}

/// Values of E2M1 codes plus [`E2M1_OFFSET`].
const E2M1: [i8; 16] = {
    let mut table = codebook::E2M1;
    let mut i = 0;
    while i < 16 {
        table[i] += E2M1_OFFSET as i8;
        i += 1;
    }
    table
};
const E2M1_OFFSET: i16 = 12;

impl Small for BlockQ4_0 {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const OFFSET: i16 = 8;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        split(&group[k].qs)
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        Scales::One(halves8(std::array::from_fn(|k| group[k].d)))
    }
}

impl Small for BlockIq4Nl {
    const CODES: Codes = Codes::Signed;
    const SPAN: usize = 1;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        look_up(&codebook::IQ4_NL, split(&group[k].qs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        Scales::One(halves8(std::array::from_fn(|k| group[k].d)))
    }
}

impl Small for BlockMxfp4 {
    const CODES: Codes = Codes::Unsigned;
    const SPAN: usize = 4;
    const OFFSET: i16 = E2M1_OFFSET;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        look_up(&E2M1, split(&group[k].qs))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        Scales::One(load_floats(&std::array::from_fn(|k| e8m0_half(group[k].e))))
    }
}

impl Small for BlockNvfp4 {
    const CODES: Codes = Codes::Unsigned;
    const HALVES: bool = true;
    const SPAN: usize = 4;
    const OFFSET: i16 = E2M1_OFFSET;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes(group: &[Self], k: usize) -> __m256i {
        // Sub-blocks of 16: low nibbles of 8 bytes, then their high nibbles.
        let half = &group[k / 2].qs.as_chunks::<16>().0[k % 2];
        let order = _mm256_setr_epi8(
            0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1, //
            8, 9, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1,
        );
        let both = _mm256_broadcastsi128_si256(load_half(half));
        let low = _mm256_shuffle_epi8(both, order);
        let spread = _mm256_or_si256(low, _mm256_slli_si256::<8>(_mm256_srli_epi16::<4>(low)));
        look_up(&E2M1, _mm256_and_si256(spread, _mm256_set1_epi8(15)))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scales(group: &[Self]) -> Scales {
        let scale = |k: usize, half| group[k / 2].scales(k % 2)[half];
        Scales::Halves(
            load_floats(&std::array::from_fn(|k| scale(k, 0))),
            load_floats(&std::array::from_fn(|k| scale(k, 1))),
        )
    }
}

impl Super for BlockIq4Xs {
    const CODES: Codes = Codes::Signed;
    const SPAN: usize = 1;
    const CORRECTION: Correction = Correction::None;
    type Open = ();

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn open(&self) -> Self::Open {}

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn codes<const C: usize>(&self, (): &Self::Open) -> __m256i {
        look_up(&codebook::IQ4_NL, split(&self.qs[C]))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn parts(&self) -> Parts {
        let sl = _mm_cvtsi32_si128(i32::from_le_bytes(self.sl));
        let low = _mm_unpacklo_epi8(sl, _mm_srli_epi16::<4>(sl));
        let low = _mm_cvtepu8_epi16(_mm_and_si128(low, _mm_set1_epi8(15)));
        // Bits 2b, 2b+1 of sh come to bits 14, 15 of word b, then down to 4, 5.
        let sh = _mm_set1_epi16(i16::from_le_bytes(self.sh));
        let up = _mm_setr_epi16(1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1);
        let high = _mm_srli_epi16::<14>(_mm_mullo_epi16(sh, up));
        let scale = _mm_or_si128(low, _mm_slli_epi16::<4>(high));
        let scale = _mm_sub_epi16(scale, _mm_set1_epi16(32));
        Parts {
            scale: _mm256_broadcastsi128_si256(scale),
            min: _mm256_setzero_si256(),
        }
    }

    fn d(&self) -> [u8; 2] {
        self.d
    }
}
