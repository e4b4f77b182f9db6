//! IQ2_S: lattice points of eight weights with free signs, a four-bit scale for each 16; 82 bytes for 256,
//! 2.5625 bits a weight.
//!
//! ```text
//! byte 0..2      d        f16
//! byte 2..34     qs[p]    low eight bits of the index of point p
//! byte 34..66    signs[p] bit j negates weight j of point p
//! byte 66..74    qh[b]    bits 2l, 2l+1: top bits of the index of point 4b + l
//! byte 74..82    sc[b]    low nibble: scale of weights 32b..32b+16, high nibble: of the next 16
//!                                  w = ± d · (0.5 + scale) · 0.25 · point[j]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq2_s`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::iq2_xs::nibble;
use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;
use crate::codebook::{IQ2_S, signed};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq2S {
    pub(crate) d: [u8; 2],
    pub(crate) qs: [u8; 32],
    pub(crate) signs: [u8; 32],
    pub(crate) qh: [u8; 8],
    pub(crate) sc: [u8; 8],
}
const _: () = assert!(size_of::<BlockIq2S>() == 82 && align_of::<BlockIq2S>() == 1);

impl BlockIq2S {
    /// Index of point p.
    pub(crate) fn index(&self, p: usize) -> usize {
        usize::from(self.qs[p]) | usize::from(self.qh[p / 4] >> (2 * (p % 4)) & 3) << 8
    }

    fn codes(&self) -> [i8; 256] {
        let q: [[i8; 8]; 32] =
            std::array::from_fn(|p| signed(&IQ2_S[self.index(p)], self.signs[p]));
        bytemuck::must_cast(q)
    }

    fn expand(&self) -> SuperBlock {
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32() * 0.125,
            dmin: 0.0,
            scale: std::array::from_fn(|g| 2 * i16::from(nibble(&self.sc, g)) + 1),
            min: [0; 16],
            q: self.codes(),
        }
    }
}

impl Block for BlockIq2S {
    const TY: TensorType = TensorType::Iq2S;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: false,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        for (i, (w, q)) in out.iter_mut().zip(self.codes()).enumerate() {
            *w = d * (0.5 + f32::from(nibble(&self.sc, i / 16))) * 0.25 * f32::from(q);
        }
    }
}
