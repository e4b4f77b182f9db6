//! IQ2_XXS: lattice points of eight weights, a four-bit scale for each 32; 66 bytes for 256, 2.0625 bits a weight.
//!
//! ```text
//! byte 0..2     d        f16
//! byte 2..66    (a, b)   eight pairs of u32, one for each 32 weights
//!   a  four point indices, one a byte
//!   b  bits 7l..7l+7: sign index of point l;  bits 28..32: scale s
//!                                  w = ± d · (0.5 + s) · 0.25 · point[a_l][j]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq2_xxs`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;
use crate::codebook::{IQ2_XXS, SIGNS, signed};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq2Xxs {
    pub(crate) d: [u8; 2],
    pub(crate) groups: [[u8; 8]; 8],
}
const _: () = assert!(size_of::<BlockIq2Xxs>() == 66 && align_of::<BlockIq2Xxs>() == 1);

/// Where the signs and the scale of a group are: four bytes after the point indices.
fn signs_scale(group: &[u8; 8]) -> u32 {
    u32::from_le_bytes([group[4], group[5], group[6], group[7]])
}

/// The sign byte of eight weights.
pub(crate) fn sign_byte(b: u32, l: usize) -> u8 {
    SIGNS[(b >> (7 * l) & 127) as usize]
}

impl BlockIq2Xxs {
    fn codes(&self) -> [i8; 256] {
        let mut q = [[0; 8]; 32];
        for (i, q) in q.iter_mut().enumerate() {
            let group = &self.groups[i / 4];
            let signs = sign_byte(signs_scale(group), i % 4);
            *q = signed(&IQ2_XXS[usize::from(group[i % 4])], signs);
        }
        bytemuck::must_cast(q)
    }

    fn expand(&self) -> SuperBlock {
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32() * 0.125,
            dmin: 0.0,
            scale: std::array::from_fn(|g| 2 * (signs_scale(&self.groups[g / 2]) >> 28) as i16 + 1),
            min: [0; 16],
            q: self.codes(),
        }
    }
}

impl Block for BlockIq2Xxs {
    const TY: TensorType = TensorType::Iq2Xxs;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: false,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (i, (w, q)) in out.iter_mut().zip(self.codes()).enumerate() {
            let s = signs_scale(&self.groups[i / 32]) >> 28;
            *w = d * (0.5 + s as f32) * 0.25 * f32::from(q);
        }
    }
}
