//! ROCmFP6 (id 102): levels −31..31, a scale byte for each 16 weights. Code 32, which readers disagree on, is never
//! written.

use ds4_gguf::TensorType;

use super::q8_0::round_half_away;
use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmFp6;

impl Levels for RocmFp6 {
    const TY: TensorType = TensorType::RocmFp6;
    const ENDS: [f32; 2] = [-31.0, 31.0];

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        round_half_away(lanes, q.min(lanes.splat(31.0)))
    }

    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        let size = level.abs();
        size.replace(level.lt(lanes.splat(0.0)), size + lanes.splat(32.0))
    }

    /// A stream of six-bit codes, then the scales.
    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        let (stream, e) = block.split_at_mut(24);
        for (bytes, codes) in stream
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .zip(codes.as_chunks::<4>().0)
        {
            let bits = codes
                .iter()
                .rev()
                .fold(0u32, |bits, &code| bits << 6 | u32::from(code));
            bytes.copy_from_slice(&bits.to_le_bytes()[..3]);
        }
        e.copy_from_slice(scales);
    }
}
