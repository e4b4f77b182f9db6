//! Lanes as one AVX2 register each.
//!
//! Values of these types come only from an [`Avx2`], and an [`Avx2`] only from a processor that has the
//! instructions, so holding a value is the proof that its operations may run.
#![expect(
    unsafe_code,
    reason = "AVX2 instructions, guarded by a token that only detection hands out"
)]

use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Sub};

use super::{Float, Int, LANES, Lanes, Mask, Work};

/// Proof that this processor has AVX2, and F16C, which came before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Eight `f32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F(__m256);

/// Eight `u32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct U(__m256i);

/// Eight answers, all ones or all zeros a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct M(__m256);

/// An instruction on values of this file, whose existence proves AVX2.
macro_rules! avx2 {
    ($instruction:expr) => {{
        // SAFETY: register-to-register AVX2 instruction; a value of this file exists, hence so does AVX2.
        unsafe { $instruction }
    }};
}

impl Avx2 {
    /// The token, where the processor has both.
    pub(crate) fn detect() -> Option<Self> {
        let both = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        both.then_some(Self(()))
    }

    /// Run `work` compiled for AVX2.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Out {
        #[target_feature(enable = "avx2,f16c")]
        fn compiled_for_avx2<W: Work>(lanes: Avx2, work: W) -> W::Out {
            work.run(lanes)
        }
        // SAFETY: `self` exists, so the processor has AVX2 and F16C.
        unsafe { compiled_for_avx2(self, work) }
    }
}

impl Lanes for Avx2 {
    type F = F;
    type M = M;
    type U = U;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        F(avx2!(_mm256_set1_ps(x)))
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> F {
        // SAFETY: `x` is 32 readable bytes and the load has no alignment; AVX2 as `self` exists.
        F(unsafe { _mm256_loadu_ps(x.as_ptr()) })
    }

    #[inline(always)]
    fn splat_int(self, x: u32) -> U {
        U(avx2!(_mm256_set1_epi32(x as i32)))
    }

    #[inline(always)]
    fn load_int(self, x: &[u32; LANES]) -> U {
        // SAFETY: `x` is 32 readable bytes and the load has no alignment; AVX2 as `self` exists.
        U(unsafe { _mm256_loadu_si256(x.as_ptr().cast()) })
    }

    #[inline(always)]
    fn load_words(self, x: &[u16; LANES]) -> U {
        // SAFETY: `x` is 16 readable bytes and the load has no alignment; AVX2 as `self` exists.
        let words = unsafe { _mm_loadu_si128(x.as_ptr().cast()) };
        U(avx2!(_mm256_cvtepu16_epi32(words)))
    }

    #[inline(always)]
    fn transpose(self, r: [F; LANES]) -> [F; LANES] {
        macro_rules! low {
            ($i:expr, $j:expr) => {
                avx2!(_mm256_unpacklo_ps(r[$i].0, r[$j].0))
            };
        }
        macro_rules! high {
            ($i:expr, $j:expr) => {
                avx2!(_mm256_unpackhi_ps(r[$i].0, r[$j].0))
            };
        }
        let (l01, h01, l23, h23) = (low!(0, 1), high!(0, 1), low!(2, 3), high!(2, 3));
        let (l45, h45, l67, h67) = (low!(4, 5), high!(4, 5), low!(6, 7), high!(6, 7));
        let top = [
            avx2!(_mm256_shuffle_ps::<0x44>(l01, l23)),
            avx2!(_mm256_shuffle_ps::<0xee>(l01, l23)),
            avx2!(_mm256_shuffle_ps::<0x44>(h01, h23)),
            avx2!(_mm256_shuffle_ps::<0xee>(h01, h23)),
        ];
        let end = [
            avx2!(_mm256_shuffle_ps::<0x44>(l45, l67)),
            avx2!(_mm256_shuffle_ps::<0xee>(l45, l67)),
            avx2!(_mm256_shuffle_ps::<0x44>(h45, h67)),
            avx2!(_mm256_shuffle_ps::<0xee>(h45, h67)),
        ];
        [
            F(avx2!(_mm256_permute2f128_ps::<0x20>(top[0], end[0]))),
            F(avx2!(_mm256_permute2f128_ps::<0x20>(top[1], end[1]))),
            F(avx2!(_mm256_permute2f128_ps::<0x20>(top[2], end[2]))),
            F(avx2!(_mm256_permute2f128_ps::<0x20>(top[3], end[3]))),
            F(avx2!(_mm256_permute2f128_ps::<0x31>(top[0], end[0]))),
            F(avx2!(_mm256_permute2f128_ps::<0x31>(top[1], end[1]))),
            F(avx2!(_mm256_permute2f128_ps::<0x31>(top[2], end[2]))),
            F(avx2!(_mm256_permute2f128_ps::<0x31>(top[3], end[3]))),
        ]
    }

    #[inline(always)]
    fn bytes(self, q: [U; 4]) -> [u8; 4 * LANES] {
        let [low, high] = words(q);
        bytemuck::cast(in_order(avx2!(_mm256_packus_epi16(low, high))))
    }

    #[inline(always)]
    fn signed_bytes(self, q: [U; 4]) -> [i8; 4 * LANES] {
        let [low, high] = words(q);
        bytemuck::cast(in_order(avx2!(_mm256_packs_epi16(low, high))))
    }
}

/// Four times eight integers, saturated to 16 bits; a pack works in each half of a register by itself.
#[inline(always)]
fn words(q: [U; 4]) -> [__m256i; 2] {
    [
        avx2!(_mm256_packs_epi32(q[0].0, q[1].0)),
        avx2!(_mm256_packs_epi32(q[2].0, q[3].0)),
    ]
}

/// Bytes that went through two packs back in their order.
#[inline(always)]
fn in_order(bytes: __m256i) -> __m256i {
    let order = avx2!(_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    avx2!(_mm256_permutevar8x32_epi32(bytes, order))
}

impl F {
    /// The integers of the lanes, saturated to 16 bits.
    #[inline(always)]
    fn to_words(self) -> __m128i {
        let int = self.to_int().0;
        let low = avx2!(_mm256_castsi256_si128(int));
        let high = avx2!(_mm256_extracti128_si256::<1>(int));
        avx2!(_mm_packs_epi32(low, high))
    }
}

impl Add for F {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self(avx2!(_mm256_add_ps(self.0, b.0)))
    }
}

impl Sub for F {
    type Output = Self;
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self(avx2!(_mm256_sub_ps(self.0, b.0)))
    }
}

impl Mul for F {
    type Output = Self;
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self(avx2!(_mm256_mul_ps(self.0, b.0)))
    }
}

impl Div for F {
    type Output = Self;
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Self(avx2!(_mm256_div_ps(self.0, b.0)))
    }
}

impl Float for F {
    type Mask = M;
    type Int = U;

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        Self(avx2!(_mm256_min_ps(self.0, b.0)))
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self(avx2!(_mm256_max_ps(self.0, b.0)))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let sign = avx2!(_mm256_set1_ps(-0.0));
        Self(avx2!(_mm256_andnot_ps(sign, self.0)))
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let bit = avx2!(_mm256_set1_ps(-0.0));
        let sign = avx2!(_mm256_and_ps(bit, sign.0));
        Self(avx2!(_mm256_or_ps(self.abs().0, sign)))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(avx2!(_mm256_sqrt_ps(self.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        Self(avx2!(_mm256_round_ps::<
            { _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC },
        >(self.0)))
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        Self(avx2!(_mm256_round_ps::<
            { _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC },
        >(self.0)))
    }

    #[inline(always)]
    fn floor(self) -> Self {
        Self(avx2!(_mm256_round_ps::<
            { _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC },
        >(self.0)))
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        Self(avx2!(_mm256_round_ps::<
            { _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC },
        >(self.0)))
    }

    #[inline(always)]
    fn lt(self, b: Self) -> M {
        M(avx2!(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, b.0)))
    }

    #[inline(always)]
    fn gt(self, b: Self) -> M {
        M(avx2!(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, b.0)))
    }

    #[inline(always)]
    fn ge(self, b: Self) -> M {
        M(avx2!(_mm256_cmp_ps::<_CMP_GE_OQ>(self.0, b.0)))
    }

    #[inline(always)]
    fn same(self, b: Self) -> M {
        M(avx2!(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, b.0)))
    }

    #[inline(always)]
    fn replace(self, mask: M, yes: Self) -> Self {
        Self(avx2!(_mm256_blendv_ps(self.0, yes.0, mask.0)))
    }

    #[inline(always)]
    fn to_int(self) -> U {
        U(avx2!(_mm256_cvtps_epi32(self.0)))
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; LANES] {
        let words = self.to_words();
        let bytes = avx2!(_mm_packus_epi16(words, words));
        avx2!(_mm_cvtsi128_si64(bytes)).to_le_bytes()
    }

    #[inline(always)]
    fn to_halves(self) -> [u16; LANES] {
        // SAFETY: register-to-register F16C instruction; a value of this file exists, hence so does F16C.
        let halves = unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0) };
        bytemuck::cast(halves)
    }

    #[inline(always)]
    fn smallest(self) -> f32 {
        let low = avx2!(_mm256_castps256_ps128(self.0));
        let high = avx2!(_mm256_extractf128_ps::<1>(self.0));
        let four = avx2!(_mm_min_ps(low, high));
        let upper = avx2!(_mm_movehl_ps(four, four));
        let two = avx2!(_mm_min_ps(four, upper));
        let odd = avx2!(_mm_movehdup_ps(two));
        let one = avx2!(_mm_min_ps(two, odd));
        avx2!(_mm_cvtss_f32(one))
    }

    #[inline(always)]
    fn lookup4(self, pick: U) -> Self {
        Self(avx2!(_mm256_permutevar_ps(self.0, pick.0)))
    }

    #[inline(always)]
    fn lookup8(self, pick: U) -> Self {
        Self(avx2!(_mm256_permutevar8x32_ps(self.0, pick.0)))
    }

    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: `out` is 32 writable bytes and the store has no alignment; AVX2 as `self` exists.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), self.0) };
        out
    }
}

impl BitAnd for M {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, b: Self) -> Self {
        Self(avx2!(_mm256_and_ps(self.0, b.0)))
    }
}

impl BitOr for M {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, b: Self) -> Self {
        Self(avx2!(_mm256_or_ps(self.0, b.0)))
    }
}

impl Mask for M {
    type Int = U;

    #[inline(always)]
    fn bit(self) -> U {
        let bits = avx2!(_mm256_castps_si256(self.0));
        U(avx2!(_mm256_srli_epi32::<31>(bits)))
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        avx2!(_mm256_movemask_ps(self.0)) as u32
    }

    #[inline(always)]
    fn any(self) -> bool {
        avx2!(_mm256_movemask_ps(self.0)) != 0
    }
}

impl Add for U {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self(avx2!(_mm256_add_epi32(self.0, b.0)))
    }
}

impl BitAnd for U {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, b: Self) -> Self {
        Self(avx2!(_mm256_and_si256(self.0, b.0)))
    }
}

impl BitOr for U {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, b: Self) -> Self {
        Self(avx2!(_mm256_or_si256(self.0, b.0)))
    }
}

impl BitXor for U {
    type Output = Self;
    #[inline(always)]
    fn bitxor(self, b: Self) -> Self {
        Self(avx2!(_mm256_xor_si256(self.0, b.0)))
    }
}

impl Int for U {
    type Float = F;
    type Mask = M;

    #[inline(always)]
    fn replace(self, mask: M, yes: Self) -> Self {
        let mask = avx2!(_mm256_castps_si256(mask.0));
        Self(avx2!(_mm256_blendv_epi8(self.0, yes.0, mask)))
    }

    #[inline(always)]
    fn more(self, mask: M) -> Self {
        let minus_one = avx2!(_mm256_castps_si256(mask.0));
        Self(avx2!(_mm256_sub_epi32(self.0, minus_one)))
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        let count = avx2!(_mm_cvtsi32_si128(bits as i32));
        Self(avx2!(_mm256_sll_epi32(self.0, count)))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        let count = avx2!(_mm_cvtsi32_si128(bits as i32));
        Self(avx2!(_mm256_srl_epi32(self.0, count)))
    }

    #[inline(always)]
    fn to_float(self) -> F {
        F(avx2!(_mm256_cvtepi32_ps(self.0)))
    }

    #[inline(always)]
    fn as_float_bits(self) -> F {
        F(avx2!(_mm256_castsi256_ps(self.0)))
    }

    #[inline(always)]
    fn to_array(self) -> [u32; LANES] {
        let mut out = [0; LANES];
        // SAFETY: `out` is 32 writable bytes and the store has no alignment; AVX2 as `self` exists.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), self.0) };
        out
    }
}
