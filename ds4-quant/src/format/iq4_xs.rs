//! IQ4_XS: 256 four-bit codes into a table of 16 values, a six-bit scale for each 32; 136 bytes, 4.25 bits a weight.
//!
//! ```text
//! byte 0..2      d       f16
//! byte 2..4      sh      u16: bits 2b, 2b+1: top two bits of scale b
//! byte 4..8      sl      nibble b: low four bits of scale b
//! byte 8..136    qs      weights 32b + j and 32b + 16 + j: low and high nibble of qs[16b + j]
//!                                  w = d · (scale − 32) · value[code]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq4_xs`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use super::q4_0::nibbles;
use crate::accumulate::SuperBlock;
use crate::codebook::IQ4_NL;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq4Xs {
    pub(crate) d: [u8; 2],
    pub(crate) sh: [u8; 2],
    pub(crate) sl: [u8; 4],
    pub(crate) qs: [[u8; 16]; 8],
}
const _: () = assert!(size_of::<BlockIq4Xs>() == 136 && align_of::<BlockIq4Xs>() == 1);

impl BlockIq4Xs {
    /// The scale of 32 weights, −32..32.
    pub(crate) fn scale(&self, b: usize) -> i16 {
        let low = self.sl[b / 2] >> (4 * (b % 2)) & 15;
        let high = u16::from_le_bytes(self.sh) >> (2 * b) & 3;
        (u16::from(low) | high << 4) as i16 - 32
    }

    fn expand(&self) -> SuperBlock {
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: 0.0,
            scale: std::array::from_fn(|g| self.scale(g / 2)),
            min: [0; 16],
            q: bytemuck::must_cast(
                self.qs
                    .map(|qs| nibbles(&qs).map(|c| IQ4_NL[usize::from(c)])),
            ),
        }
    }
}

impl Block for BlockIq4Xs {
    const TY: TensorType = TensorType::Iq4Xs;
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
