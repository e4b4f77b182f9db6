//! ROCmFP8 (id 103): levels −127..127, one scale byte.
//!
//! Without importance the reference takes the byte nearest to `max|x| / 127`; here the best byte is searched in
//! either case, which only lowers the error.

use ds4_gguf::TensorType;

use super::q8_0::round_half_away;
use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmFp8;

impl Levels for RocmFp8 {
    const TY: TensorType = TensorType::RocmFp8;
    const ENDS: [f32; 2] = [-127.0, 127.0];

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        round_half_away(lanes, q.min(lanes.splat(127.0)))
    }

    /// The byte of a signed integer.
    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        level.replace(level.lt(lanes.splat(0.0)), level + lanes.splat(256.0))
    }

    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        block[..32].copy_from_slice(codes);
        block[32..].copy_from_slice(scales);
    }
}
