//! ROCmFP4 (id 100) and ROCmFP4-fast (id 101): 32 four-bit codes, an E4M3 scale for each half or for all; 18 or 17
//! bytes for 32 weights, 4.5 or 4.25 bits each.
//!
//! ```text
//! byte 0..16   qs[j]  low nibble: code j, high nibble: code j + 16
//! byte 16, 17  e[2]   id 100           w = level[code] · sc(e[i/16])
//! byte 16      e      id 101           w = level[code] · sc(e)
//! level: 0 1 2 3 4 6 8 10, negated with bit 3
//! ```
//! Not MXFP4's levels: those end in 12. Source: ciru-ai/ROCmFPX:ggml/rocmfp4.

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use super::q4_0::nibbles;
use super::rocmfp2::halves;
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// What the codes mean.
pub(crate) const LEVELS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 10, 0, -1, -2, -3, -4, -6, -8, -10];

/// One block with a scale for each half.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmFp4 {
    pub(crate) qs: [u8; 16],
    pub(crate) e: [u8; 2],
}
const _: () = assert!(size_of::<BlockRocmFp4>() == 18 && align_of::<BlockRocmFp4>() == 1);

/// One block with one scale.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockRocmFp4Fast {
    pub(crate) qs: [u8; 16],
    pub(crate) e: u8,
}
const _: () = assert!(size_of::<BlockRocmFp4Fast>() == 17 && align_of::<BlockRocmFp4Fast>() == 1);

fn levels(qs: &[u8; 16]) -> [i8; 32] {
    nibbles(qs).map(|code| LEVELS[usize::from(code)])
}

impl BlockRocmFp4 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.e.map(ue4m3)),
            q: levels(&self.qs),
        }
    }
}

impl BlockRocmFp4Fast {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::One(ue4m3(self.e)),
            q: levels(&self.qs),
        }
    }
}

impl Block for BlockRocmFp4 {
    const TY: TensorType = TensorType::RocmFp4;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&levels(&self.qs), self.e.map(ue4m3), out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.e)
    }
}

impl Block for BlockRocmFp4Fast {
    const TY: TensorType = TensorType::RocmFp4Fast;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&levels(&self.qs), [ue4m3(self.e); 2], out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&[self.e])
    }
}
