//! ROCmFP2 (id 107): 32 two-bit codes and two E4M3 bytes; 10 bytes for 32 weights, 2.5 bits each, in three layouts.
//!
//! ```text
//! byte 0..8    qs     code i in bits 2·(i % 4) of byte i/4
//! byte 8, 9    e[2]
//!
//! S40          w = (−4, −1, 1, 4)[code] · sc(e[i/16])
//! two-scale    w = (code − 1) · sc(e[i/16])
//! affine       w = code · sc(e[0]) − sc(e[1])
//! ```
//! `sc` is the halved unsigned E4M3 of [`crate::codebook::ue4m3`]. Nothing in a block says which layout it has.
//! Sources: ciru-ai/ROCmFPX:ggml/rocmfpx (S40), Luce-Org/lucebox:server/deps/llama.cpp/ggml/rocmfpx (the others).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;

use super::packed::{Block, Integers};
use crate::accumulate::{Scale, SmallBlock};
use crate::codebook::{invalid_ue4m3, ue4m3};

/// The bytes of a block in any layout.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TwoBits {
    pub(crate) qs: [u8; 8],
    pub(crate) e: [u8; 2],
}
const _: () = assert!(size_of::<TwoBits>() == 10 && align_of::<TwoBits>() == 1);

impl TwoBits {
    /// The codes, 0..=3.
    pub(crate) fn codes(&self) -> [i8; 32] {
        std::array::from_fn(|i| (self.qs[i / 4] >> (2 * (i % 4)) & 3) as i8)
    }

    /// The scales of the halves.
    pub(crate) fn scales(&self) -> [f32; 2] {
        self.e.map(ue4m3)
    }
}

/// One block, codes −4 −1 1 4.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct BlockS40(pub(crate) TwoBits);

/// One block, codes −1 0 1 2.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct BlockTwoScale(pub(crate) TwoBits);

/// One block, codes 0 1 2 3 under a scale and an offset.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct BlockAffine(pub(crate) TwoBits);

impl BlockS40 {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.0.scales()),
            q: self.0.codes().map(|code| [-4, -1, 1, 4][code as usize]),
        }
    }
}

impl BlockTwoScale {
    fn expand(&self, _: usize) -> SmallBlock {
        SmallBlock {
            scale: Scale::Halves(self.0.scales()),
            q: self.0.codes().map(|code| code - 1),
        }
    }
}

impl BlockAffine {
    fn expand(&self, _: usize) -> SmallBlock {
        let [d, offset] = self.0.scales();
        SmallBlock {
            scale: Scale::Affine { d, offset },
            q: self.0.codes(),
        }
    }
}

impl Block for BlockS40 {
    const TY: TensorType = TensorType::RocmFp2S40;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.expand(0).q, self.0.scales(), out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.0.e)
    }
}

impl Block for BlockTwoScale {
    const TY: TensorType = TensorType::RocmFp2TwoScale;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        halves(&self.expand(0).q, self.0.scales(), out);
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.0.e)
    }
}

impl Block for BlockAffine {
    const TY: TensorType = TensorType::RocmFp2Affine;
    const INTEGERS: Integers<Self> = Integers::Small {
        expand: Self::expand,
    };

    fn decode(&self, out: &mut [f32]) {
        let [scale, offset] = self.0.scales();
        for (w, code) in out.iter_mut().zip(self.0.codes()) {
            *w = f32::from(code) * scale - offset;
        }
    }

    fn invalid_scale(&self) -> Option<u8> {
        invalid_ue4m3(&self.0.e)
    }
}

/// `w = q · scale`, a scale for each half.
pub(crate) fn halves(q: &[i8; 32], scales: [f32; 2], out: &mut [f32]) {
    for (i, (w, &q)) in out.iter_mut().zip(q).enumerate() {
        *w = f32::from(q) * scales[i / 16];
    }
}
