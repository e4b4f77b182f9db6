//! Q8_0: 32 signed bytes under one scale; 34 bytes for 32 weights, 8.5 bits each.
//!
//! ```text
//! byte 0..2    d     f16, little endian
//! byte 2..34   q[i]  i8                      w[i] = d · q[i]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q8_0`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::{Scale, SmallBlock};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ8_0 {
    pub(crate) d: [u8; 2],
    pub(crate) q: [i8; 32],
}
const _: () = assert!(size_of::<BlockQ8_0>() == 34 && align_of::<BlockQ8_0>() == 1);

impl BlockQ8_0 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(f16::from_le_bytes(self.d).to_f32()),
            q: self.q,
        }
    }
}

impl Block for BlockQ8_0 {
    const TY: TensorType = TensorType::Q8_0;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (w, &q) in out.iter_mut().zip(&self.q) {
            *w = d * f32::from(q);
        }
    }
}
