//! Few rows of activations with 256-weight blocks: 64 codes a register, signs as masks.

use std::arch::x86_64::*;

use super::many::join_halves;
use crate::accumulate::SUPER_CHAINS;
use crate::simd::avx2::few::{Avx2, Sums, SuperStep, Terms};
use crate::simd::avx2::{Codes, Parts, Super};

/// [`Terms`] in AVX-512. Formats of signed codes stay with AVX2: there is no wider form of its change of signs.
pub(super) struct Avx512;

/// For each 64 weights, which word of [`crate::simd::avx2::Parts::scale`] belongs to each pair of products.
static SPREAD: [[i16; 32]; 4] = {
    let mut spread = [[0; 32]; 4];
    let mut i = 0;
    while i < 4 * 32 {
        let (chunk, sixteen) = (2 * (i / 32) + i % 32 / 16, i / 8 % 2);
        spread[i / 32][i % 32] = (8 * sixteen + chunk) as i16;
        i += 1;
    }
    spread
};

#[inline]
#[target_feature(enable = "avx512f")]
fn load_wide<T: bytemuck::Pod>(from: &[T]) -> __m512i {
    assert!(size_of_val(from) == 64);
    // SAFETY: the reference covers the 64 bytes read.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

impl Terms for Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn of<B: Super, const N: usize>(
        four: [&B; SUPER_CHAINS],
        x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    ) -> [__m128; N] {
        if B::CODES == Codes::Signed {
            // SAFETY: this function has the same contract and more.
            return unsafe { Avx2::of(four, x) };
        }
        let mut sums = Sums::new();
        for (k, block) in four.into_iter().enumerate() {
            // SAFETY: as above.
            let parts = unsafe { block.parts() };
            sums.put::<B>(k, products(block, &parts, x, k), &parts, x);
        }
        sums.terms(four)
    }
}

/// `Σ scale · code · x` over the k-th of four blocks, spread over eight lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn products<B: Super, const N: usize>(
    block: &B,
    parts: &Parts,
    x: &[[SuperStep<'_>; SUPER_CHAINS]; N],
    k: usize,
) -> [__m256i; N] {
    // SAFETY: this function is compiled for, and called with, more than the features asked for.
    let open = unsafe { block.open() };
    // SAFETY: as above.
    let minus: [u64; 4] = bytemuck::must_cast(unsafe { B::minus(&open) });
    let scale = _mm512_castsi256_si512(parts.scale);
    let mirror = _mm512_set1_epi8(2 * B::MIRROR as i8);
    let mut sum = [_mm512_setzero_si512(); N];
    macro_rules! chunks {
        ($($c:literal: $low:literal $high:literal),*) => {$(
            // SAFETY: as above.
            let low = unsafe { block.points::<$low>(&open) };
            // SAFETY: as above.
            let high = unsafe { block.points::<$high>(&open) };
            let mut q = join_halves(low, high);
            if B::MIRROR != 0 {
                q = _mm512_mask_sub_epi8(q, minus[$c], mirror, q);
            }
            let scales = _mm512_permutexvar_epi16(load_wide(&SPREAD[$c]), scale);
            for c in 0..N {
                let x = load_wide(&x[c][k].codes[64 * $c..64 * $c + 64]);
                sum[c] = _mm512_dpwssd_epi32(sum[c], _mm512_maddubs_epi16(q, x), scales);
            }
        )*};
    }
    chunks!(0: 0 1, 1: 2 3, 2: 4 5, 3: 6 7);
    let mut halves = [_mm256_setzero_si256(); N];
    for c in 0..N {
        halves[c] = _mm256_add_epi32(
            _mm512_castsi512_si256(sum[c]),
            _mm512_extracti64x4_epi64::<1>(sum[c]),
        );
    }
    halves
}
