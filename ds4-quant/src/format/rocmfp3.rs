//! ROCmFP3 (id 104): 32 three-bit codes, an E4M3 scale for each half; 14 bytes for 32 weights, 3.5 bits each.
//!
//! ```text
//! byte 0..12   qs     code i in bits 3i..3i+3 of the 96, little endian
//! byte 12, 13  e[2]                    w = (0, 1, 2, 4, 0, −1, −2, −4)[code] · sc(e[i/16])
//! ```
//! Source: ciru-ai/ROCmFPX:ggml/rocmfpx.

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::rocmfp2::halves;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// What the codes mean. Code 4 is never written.
pub(crate) const LEVELS: [i8; 8] = [0, 1, 2, 4, 0, -1, -2, -4];

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmFp3 {
    pub(crate) qs: [u8; 12],
    pub(crate) e: [u8; 2],
}
const _: () = assert!(size_of::<BlockRocmFp3>() == 14 && align_of::<BlockRocmFp3>() == 1);

impl BlockRocmFp3 {
    /// The codes, 0..=7.
    pub(crate) fn codes(&self) -> [u8; 32] {
        let mut codes = [0; 32];
        for (codes, &[a, b, c]) in codes
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(self.qs.as_chunks().0)
        {
            let bits = u32::from_le_bytes([a, b, c, 0]);
            for (i, code) in codes.iter_mut().enumerate() {
                *code = (bits >> (3 * i) & 7) as u8;
            }
        }
        codes
    }

    /// The scales of the halves.
    pub(crate) fn scales(&self) -> [f32; 2] {
        self.e.map(ue4m3)
    }

    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.scales()),
            q: self.codes().map(|code| LEVELS[usize::from(code)]),
        }
    }
}

impl Block for BlockRocmFp3 {
    const TY: TensorType = TensorType::RocmFp3;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.expand(0).q, self.scales(), out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.e)
    }
}
