//! NVFP4: 64 E2M1 codes, an unsigned E4M3 scale for each 16; 36 bytes for 64 weights, 4.5 bits each.
//!
//! ```text
//! byte 0..4    d[s]          scale of sub-block s, halved E4M3; bit 7 is ignored, 0x7f is 0
//! byte 4..36   qs[8s + j]    low nibble: code j, high nibble: code j + 8 of sub-block s     w = d[s] · value[code]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_nvfp4`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{E2M1, ue4m3};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockNvfp4 {
    pub(crate) d: [u8; 4],
    pub(crate) qs: [u8; 32],
}
const _: () = assert!(size_of::<BlockNvfp4>() == 36 && align_of::<BlockNvfp4>() == 1);

impl BlockNvfp4 {
    /// The scales of sub-blocks 2k and 2k + 1.
    pub(crate) fn scales(&self, k: usize) -> [f32; 2] {
        [ue4m3(self.d[2 * k] & 127), ue4m3(self.d[2 * k + 1] & 127)]
    }

    fn expand(&self, k: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.scales(k)),
            q: std::array::from_fn(|i| {
                let byte = self.qs[16 * k + 8 * (i / 16) + i % 8];
                let code = if i % 16 < 8 { byte & 15 } else { byte >> 4 };
                E2M1[usize::from(code)]
            }),
        }
    }
}

impl Block for BlockNvfp4 {
    const TY: TensorType = TensorType::Nvfp4;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        for (k, out) in out.chunks_exact_mut(32).enumerate() {
            let (d, q) = (self.scales(k), self.expand(k).q);
            for (i, w) in out.iter_mut().enumerate() {
                *w = d[i / 16] * f32::from(q[i]);
            }
        }
    }
}
