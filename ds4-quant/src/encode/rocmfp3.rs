//! ROCmFP3 (id 104): levels 0, ±1, ±2, ±4, a scale byte for each 16 weights.

use ds4_gguf::TensorType;

use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmFp3;

impl Levels for RocmFp3 {
    const TY: TensorType = TensorType::RocmFp3;
    const ENDS: [f32; 2] = [-4.0, 4.0];

    /// Midpoints go to the smaller; `ceil` of a difference that is exact where it matters.
    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        let small = (q - lanes.splat(0.5)).ceil().min(lanes.splat(2.0));
        small.replace(q.gt(lanes.splat(3.0)), lanes.splat(4.0))
    }

    #[inline(always)]
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F {
        let code = level.abs().min(lanes.splat(3.0));
        code.replace(level.lt(lanes.splat(0.0)), code + lanes.splat(4.0))
    }

    /// A stream of three-bit codes, then the scales.
    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]) {
        let (stream, e) = block.split_at_mut(12);
        for (bytes, codes) in stream
            .as_chunks_mut::<3>()
            .0
            .iter_mut()
            .zip(codes.as_chunks::<8>().0)
        {
            let bits = codes
                .iter()
                .rev()
                .fold(0u32, |bits, &code| bits << 3 | u32::from(code));
            bytes.copy_from_slice(&bits.to_le_bytes()[..3]);
        }
        e.copy_from_slice(scales);
    }
}
