//! ROCmFP2 (id 107) in its three layouts: levels ±1, ±4 and −1, 0, 1, 2 with a scale byte for each 16 weights, and
//! `code · s − o` with a scale and an offset byte for all 32.

use ds4_gguf::TensorType;

use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct TwoScale;
pub(crate) struct S40;

impl Levels for TwoScale {
    const TY: TensorType = TensorType::RocmFp2TwoScale;
    const ENDS: [f32; 2] = [-1.0, 2.0];
    const SYMMETRIC: bool = false;
    const SILENT_CODE: f32 = 1.0;

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        let mut level = lanes.splat(-1.0);
        for middle in [-0.5, 0.5, 1.5] {
            level = level.replace(q.gt(lanes.splat(middle)), level + lanes.splat(1.0));
        }
        level
    }

    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        level + lanes.splat(1.0)
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        pack_two_bits(codes, &mut block[..8]);
        block[8..].copy_from_slice(scales);
    }
}

impl Levels for S40 {
    const TY: TensorType = TensorType::RocmFp2S40;
    const ENDS: [f32; 2] = [-4.0, 4.0];
    /// There is no level 0: below ±1 every larger scale is worse.
    const STILL: f32 = 1.0;

    /// Zero has a sign here too.
    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        let far = q.gt(lanes.splat(2.5));
        lanes.splat(1.0).replace(far, lanes.splat(4.0))
    }

    /// −4, −1, 1, 4 to 0, 1, 2, 3.
    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        let mut code = lanes.splat(0.0);
        for level_below in [-4.0, 0.0, 1.0] {
            code = code.replace(level.gt(lanes.splat(level_below)), code + lanes.splat(1.0));
        }
        code
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        TwoScale::pack(codes, scales, block);
    }
}

/// A stream of two-bit codes.
pub(super) fn pack_two_bits(codes: &[u8; BLOCK], stream: &mut [u8]) {
    for (byte, codes) in stream.iter_mut().zip(codes.as_chunks::<4>().0) {
        *byte = codes.iter().rev().fold(0, |bits, &code| bits << 2 | code);
    }
}
