//! NEON: products of bytes, 16 at a time. Every aarch64 processor has it.

use std::arch::aarch64::*;

use crate::accumulate::Products;

/// [`Products`] in NEON.
pub(crate) struct Neon;

impl Products for Neon {
    #[inline]
    fn sum(q: &[i8; 16], x: &[i8; 16]) -> i32 {
        let (q, x) = (load(q), load(x));
        // SAFETY: NEON is part of the architecture's baseline.
        unsafe { sum(q, x) }
    }
}

#[inline]
fn load(bytes: &[i8; 16]) -> int8x16_t {
    // SAFETY: the reference covers the 16 bytes read.
    unsafe { vld1q_s8(bytes.as_ptr()) }
}

/// A product of two bytes fits a word, a sum of two of them a double word.
#[inline]
#[target_feature(enable = "neon")]
fn sum(q: int8x16_t, x: int8x16_t) -> i32 {
    let low = vmull_s8(vget_low_s8(q), vget_low_s8(x));
    let sums = vpaddlq_s16(low);
    vaddvq_s32(vpadalq_s16(sums, vmull_high_s8(q, x)))
}
