//! ROCmI4 (id 108): 32 four-bit integers under one E4M3 scale; 17 bytes for 32 weights, 4.25 bits each.
//!
//! ```text
//! byte 0..16   qs[j]  low nibble: q j, high nibble: q j + 16; two's complement, −8..7
//! byte 16      e                       w = q · sc(e)
//! ```
//! Source: ciru-ai/ROCmFPX:ggml (`Q4_0_ROCMI4`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::q4_0::nibbles;
use super::rocmfp2::halves;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmI4 {
    pub(crate) qs: [u8; 16],
    pub(crate) e: u8,
}
const _: () = assert!(size_of::<BlockRocmI4>() == 17 && align_of::<BlockRocmI4>() == 1);

impl BlockRocmI4 {
    /// The integers.
    pub(crate) fn integers(&self) -> [i8; 32] {
        nibbles(&self.qs).map(|nibble| (nibble << 4) as i8 >> 4)
    }

    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(ue4m3(self.e)),
            q: self.integers(),
        }
    }
}

impl Block for BlockRocmI4 {
    const TY: TensorType = TensorType::RocmI4;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.integers(), [ue4m3(self.e); 2], out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&[self.e])
    }
}
