//! IQ3_XXS: lattice points of four weights, a four-bit scale for each 32; 98 bytes for 256, 3.0625 bits a weight.
//!
//! ```text
//! byte 0..2     d       f16
//! byte 2..66    qs[p]   index of point p
//! byte 66..98   ss[b]   u32 for each 32 weights: bits 7l..7l+7: sign index of weights 8l..8l+8; bits 28..32: scale s
//!                                  w = ± d · (0.5 + s) · 0.5 · point[j]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq3_xxs`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::iq2_xxs::sign_byte;
use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;
use crate::codebook::{IQ3_XXS, signed};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq3Xxs {
    pub(crate) d: [u8; 2],
    pub(crate) qs: [u8; 64],
    pub(crate) ss: [[u8; 4]; 8],
}
const _: () = assert!(size_of::<BlockIq3Xxs>() == 98 && align_of::<BlockIq3Xxs>() == 1);

impl BlockIq3Xxs {
    fn codes(&self) -> [i8; 256] {
        let q: [[i8; 4]; 64] = std::array::from_fn(|p| {
            let signs = sign_byte(u32::from_le_bytes(self.ss[p / 8]), p / 2 % 4);
            signed(&IQ3_XXS[usize::from(self.qs[p])], signs >> (4 * (p % 2)))
        });
        bytemuck::must_cast(q)
    }

    fn expand(&self) -> SuperBlock {
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32() * 0.25,
            dmin: 0.0,
            scale: std::array::from_fn(|g| 2 * i16::from(self.ss[g / 2][3] >> 4) + 1),
            min: [0; 16],
            q: self.codes(),
        }
    }
}

impl Block for BlockIq3Xxs {
    const TY: TensorType = TensorType::Iq3Xxs;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: false,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (i, (w, q)) in out.iter_mut().zip(self.codes()).enumerate() {
            *w = d * (0.5 + f32::from(self.ss[i / 32][3] >> 4)) * 0.5 * f32::from(q);
        }
    }
}
