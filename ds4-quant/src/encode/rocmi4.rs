//! ROCmI4 (id 108): levels −8..7, one scale byte.

use ds4_gguf::TensorType;

use super::q4_0::pack_halves;
use super::rocm::{BLOCK, Levels};
use crate::search::nearest_in;
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmI4;

impl Levels for RocmI4 {
    const TY: TensorType = TensorType::RocmI4;
    const ENDS: [f32; 2] = [-8.0, 7.0];
    const SYMMETRIC: bool = false;

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        nearest_in(q, lanes.splat(-8.0), lanes.splat(7.0))
    }

    /// The nibble of a signed integer.
    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        level.replace(level.lt(lanes.splat(0.0)), level + lanes.splat(16.0))
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        pack_halves(codes, &mut block[..16]);
        block[16..].copy_from_slice(scales);
    }
}
