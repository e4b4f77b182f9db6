//! ROCmFP4 (ids 100 and 101): levels 0, ±1, ±2, ±3, ±4, ±6, ±8, ±10; a scale byte for 16 weights, or for all 32.

use ds4_gguf::TensorType;

use super::q4_0::pack_halves;
use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmFp4;
pub(crate) struct RocmFp4Fast;

impl Levels for RocmFp4 {
    const TY: TensorType = TensorType::RocmFp4;
    const ENDS: [f32; 2] = [-10.0, 10.0];

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        level(lanes, q)
    }

    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        code(lanes, level)
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        pack_halves(codes, &mut block[..16]);
        block[16..].copy_from_slice(scales);
    }
}

impl Levels for RocmFp4Fast {
    const TY: TensorType = TensorType::RocmFp4Fast;
    const ENDS: [f32; 2] = RocmFp4::ENDS;

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        level(lanes, q)
    }

    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        code(lanes, level)
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        RocmFp4::pack(codes, scales, block);
    }
}

/// Up to 3.5 the nearest integer, above it the nearest even one, midpoints to the smaller: both as `ceil` of a
/// difference that is exact where it matters.
#[inline(always)]
fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
    let half = lanes.splat(0.5);
    let ones = (q - half).ceil();
    let twos = (q * half - half).ceil();
    let level = ones.replace(q.gt(lanes.splat(3.5)), twos + twos);
    level.min(lanes.splat(10.0))
}

#[inline(always)]
fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
    let size = level.abs();
    let upper = size.gt(lanes.splat(4.0));
    let code = size.replace(upper, size * lanes.splat(0.5) + lanes.splat(2.0));
    code.replace(level.lt(lanes.splat(0.0)), code + lanes.splat(8.0))
}
