//! ROCmFP3 (id 104): levels 0, ±1, ±2, ±4, a scale byte for each 16 weights.

use ds4_gguf::TensorType;

use super::rocm::{BLOCK, Levels};
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct RocmFp3;

impl Levels for RocmFp3 {
    const TY: TensorType = TensorType::RocmFp3;
    const ENDS: [f32; 2] = [-4.0, 4.0];

    #[inline(always)]
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F {
        let a = q.abs();
        let mut level = lanes.splat(0.0);
        for (middle, step) in [(0.5, 1.0), (1.5, 1.0), (3.0, 2.0)] {
            level = level.replace(a.gt(lanes.splat(middle)), level + lanes.splat(step));
        }
        level.copysign(q)
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
