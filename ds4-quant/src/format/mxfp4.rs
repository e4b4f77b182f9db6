//! MXFP4: 32 E2M1 codes under one power-of-two scale; 17 bytes for 32 weights, 4.25 bits each.
//!
//! ```text
//! byte 0       e      E8M0
//! byte 1..17   qs[j]  low nibble: code j, high nibble: code j + 16       w = 2^(e−128) · value[code]
//! ```
//! The table holds twice the E2M1 values (0 1 2 3 4 6 8 12, negated with bit 3), hence half the scale. e = 255 is
//! 2^127 here, not NaN. Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_mxfp4`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::q4_0::nibbles;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockMxfp4 {
    pub(crate) e: u8,
    pub(crate) qs: [u8; 16],
}
const _: () = assert!(size_of::<BlockMxfp4>() == 17 && align_of::<BlockMxfp4>() == 1);

/// `2^(e−128)`: subnormal for e = 0 and 1.
pub(crate) fn e8m0_half(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => u32::from(e - 1) << 23,
    })
}

impl BlockMxfp4 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(e8m0_half(self.e)),
            q: nibbles(&self.qs).map(|c| codebook::E2M1[usize::from(c)]),
        }
    }
}

impl Block for BlockMxfp4 {
    const TY: TensorType = TensorType::Mxfp4;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = e8m0_half(self.e);
        for (w, q) in out.iter_mut().zip(self.expand(0).q) {
            *w = d * f32::from(q);
        }
    }
}
