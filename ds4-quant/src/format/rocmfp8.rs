//! ROCmFP8 (id 103): 32 signed bytes under one E4M3 scale; 33 bytes for 32 weights, 8.25 bits each.
//!
//! ```text
//! byte 0..32   q[i]   i8
//! byte 32      e                       w = q[i] · sc(e)
//! ```
//! Source: ciru-ai/ROCmFPX:ggml/rocmfpx.

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::rocmfp2::halves;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmFp8 {
    pub(crate) q: [i8; 32],
    pub(crate) e: u8,
}
const _: () = assert!(size_of::<BlockRocmFp8>() == 33 && align_of::<BlockRocmFp8>() == 1);

impl BlockRocmFp8 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(ue4m3(self.e)),
            q: self.q,
        }
    }
}

impl Block for BlockRocmFp8 {
    const TY: TensorType = TensorType::RocmFp8;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.q, [ue4m3(self.e); 2], out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&[self.e])
    }
}
