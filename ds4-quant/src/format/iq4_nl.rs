//! IQ4_NL: 32 four-bit codes into a table of 16 values under one scale; 18 bytes for 32 weights, 4.5 bits each.
//!
//! ```text
//! byte 0..2    d      f16, little endian
//! byte 2..18   qs[j]  low nibble: code j, high nibble: code j + 16       w = d · value[code]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq4_nl`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use super::q4_0::nibbles;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq4Nl {
    pub(crate) d: [u8; 2],
    pub(crate) qs: [u8; 16],
}
const _: () = assert!(size_of::<BlockIq4Nl>() == 18 && align_of::<BlockIq4Nl>() == 1);

impl BlockIq4Nl {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(f16::from_le_bytes(self.d).to_f32()),
            q: nibbles(&self.qs).map(|c| codebook::IQ4_NL[usize::from(c)]),
        }
    }
}

impl Block for BlockIq4Nl {
    const TY: TensorType = TensorType::Iq4Nl;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (w, q) in out.iter_mut().zip(self.expand(0).q) {
            *w = d * f32::from(q);
        }
    }
}
