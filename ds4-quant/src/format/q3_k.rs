//! Q3_K: 256 three-bit codes, a six-bit scale for each 16; 110 bytes, 3.4375 bits a weight.
//!
//! ```text
//! byte 0..32     hmask   third bit of weight 128h + 32k + l: bit 4h + k of hmask[l]
//! byte 32..96    qs      low two bits as in Q2_K
//! byte 96..108   s       scale j: low nibble from s[j % 8] (high half for j ≥ 8), top two bits from s[8 + j % 4]
//! byte 108..110  d       f16            w = d · (scale − 32) · (code − 4)
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q3_K`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use super::q2_k::two_bits;
use crate::accumulate::SuperBlock;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ3K {
    pub(crate) hmask: [u8; 32],
    pub(crate) qs: [u8; 64],
    pub(crate) s: [u8; 12],
    pub(crate) d: [u8; 2],
}
const _: () = assert!(size_of::<BlockQ3K>() == 110 && align_of::<BlockQ3K>() == 1);

impl BlockQ3K {
    /// The sixteen scales, −32..32.
    pub(crate) fn scales(&self) -> [i16; 16] {
        let s = &self.s;
        std::array::from_fn(|j| {
            let low = if j < 8 { s[j] & 15 } else { s[j - 8] >> 4 };
            let high = s[8 + j % 4] >> (2 * (j / 4)) & 3;
            i16::from(low | high << 4) - 32
        })
    }

    fn expand(&self) -> SuperBlock {
        let low = two_bits(&self.qs);
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: 0.0,
            scale: self.scales(),
            min: [0; 16],
            q: std::array::from_fn(|i| {
                let high = self.hmask[i % 32] >> (i / 32) & 1;
                (low[i] | high << 2) as i8 - 4
            }),
        }
    }
}

impl Block for BlockQ3K {
    const TY: TensorType = TensorType::Q3K;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: false,
    };

    fn decode(&self, out: &mut [f32]) {
        let b = self.expand();
        for (i, w) in out.iter_mut().enumerate() {
            *w = b.d * f32::from(b.scale[i / 16]) * f32::from(b.q[i]);
        }
    }
}
