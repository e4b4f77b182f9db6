//! Q4_0: 32 four-bit codes under one scale; 18 bytes for 32 weights, 4.5 bits each.
//!
//! ```text
//! byte 0..2    d      f16, little endian
//! byte 2..18   qs[j]  low nibble: code j, high nibble: code j + 16       w = d · (code − 8)
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q4_0`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::{Scale, SmallBlock};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ4_0 {
    pub(crate) d: [u8; 2],
    pub(crate) qs: [u8; 16],
}
const _: () = assert!(size_of::<BlockQ4_0>() == 18 && align_of::<BlockQ4_0>() == 1);

/// Sixteen bytes of nibbles as 32 codes: the low ones, then the high ones.
pub(crate) fn nibbles(qs: &[u8; 16]) -> [u8; 32] {
    std::array::from_fn(|i| if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 })
}

impl BlockQ4_0 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(f16::from_le_bytes(self.d).to_f32()),
            q: nibbles(&self.qs).map(|c| c as i8 - 8),
        }
    }
}

impl Block for BlockQ4_0 {
    const TY: TensorType = TensorType::Q4_0;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (w, c) in out.iter_mut().zip(nibbles(&self.qs)) {
            *w = d * (f32::from(c) - 8.0);
        }
    }
}
