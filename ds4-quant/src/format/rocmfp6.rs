//! ROCmFP6 (id 102): 32 six-bit codes, an E4M3 scale for each half; 26 bytes for 32 weights, 6.5 bits each.
//!
//! ```text
//! byte 0..24   qs     code i in bits 6i..6i+6 of the 192, little endian
//! byte 24, 25  e[2]                    w = level(code) · sc(e[i/16])
//! level: the low five bits, negated with bit 5; code 32 is −32
//! ```
//! Readers disagree about code 32: the quantizer that writes it means −32, others read −0. Here it means what its
//! writer meant, and is never written. Source: ciru-ai/ROCmFPX:ggml/rocmfpx.

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::rocmfp2::halves;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmFp6 {
    pub(crate) qs: [u8; 24],
    pub(crate) e: [u8; 2],
}
const _: () = assert!(size_of::<BlockRocmFp6>() == 26 && align_of::<BlockRocmFp6>() == 1);

impl BlockRocmFp6 {
    /// The levels, −32..=31.
    pub(crate) fn levels(&self) -> [i8; 32] {
        let mut levels = [0; 32];
        let groups = levels
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .zip(self.qs.as_chunks().0);
        for (levels, &[a, b, c]) in groups {
            let bits = u32::from_le_bytes([a, b, c, 0]);
            for (i, level) in levels.iter_mut().enumerate() {
                let code = (bits >> (6 * i) & 63) as i8;
                *level = match code {
                    32 => -32,
                    33.. => -(code & 31),
                    _ => code,
                };
            }
        }
        levels
    }

    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.e.map(ue4m3)),
            q: self.levels(),
        }
    }
}

impl Block for BlockRocmFp6 {
    const TY: TensorType = TensorType::RocmFp6;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.levels(), self.e.map(ue4m3), out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.e)
    }
}
