//! Q5_K: 256 five-bit codes, six-bit scale and minimum for each 32; 176 bytes, 5.5 bits a weight.
//!
//! ```text
//! byte 0..2      d       f16
//! byte 2..4      dmin    f16
//! byte 4..16     s       eight scales and eight minima, as in Q4_K
//! byte 16..48    qh      bit 4 of weight 32j + l: bit j of qh[l]
//! byte 48..176   qs      low four bits as in Q4_K
//!                                        w = d · scale · code − dmin · minimum
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q5_K`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use super::q4_k::{nibbles, scales_mins};
use crate::accumulate::SuperBlock;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ5K {
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
    pub(crate) s: [u8; 12],
    pub(crate) qh: [u8; 32],
    pub(crate) qs: [u8; 128],
}
const _: () = assert!(size_of::<BlockQ5K>() == 176 && align_of::<BlockQ5K>() == 1);

impl BlockQ5K {
    fn expand(&self) -> SuperBlock {
        let [scale, min] = scales_mins(&self.s);
        let low = nibbles(&self.qs);
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: f16::from_le_bytes(self.dmin).to_f32(),
            scale: std::array::from_fn(|g| i16::from(scale[g / 2])),
            min: std::array::from_fn(|g| i16::from(min[g / 2])),
            q: std::array::from_fn(|i| (low[i] | (self.qh[i % 32] >> (i / 32) & 1) << 4) as i8),
        }
    }
}

impl Block for BlockQ5K {
    const TY: TensorType = TensorType::Q5K;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: true,
    };

    fn decode(&self, out: &mut [f32]) {
        let b = self.expand();
        for (i, w) in out.iter_mut().enumerate() {
            let (scale, min) = (f32::from(b.scale[i / 16]), f32::from(b.min[i / 16]));
            *w = b.d * scale * f32::from(b.q[i]) - b.dmin * min;
        }
    }
}
