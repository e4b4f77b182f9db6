//! IQ3_S: lattice points of four weights with free signs, a four-bit scale for each 32; 110 bytes for 256,
//! 3.4375 bits a weight.
//!
//! ```text
//! byte 0..2       d         f16
//! byte 2..66      qs[p]     low eight bits of the index of point p
//! byte 66..74     qh[b]     bit k: top bit of the index of point 8b + k
//! byte 74..106    signs[i]  bit j negates weight 8i + j
//! byte 106..110   sc        nibble b: scale of weights 32b..32b+32
//!                                  w = ± d · (1 + 2 · scale) · point[j]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq3_s`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;
use crate::codebook::{IQ3_S, signed};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq3S {
    pub(crate) d: [u8; 2],
    pub(crate) qs: [u8; 64],
    pub(crate) qh: [u8; 8],
    pub(crate) signs: [u8; 32],
    pub(crate) sc: [u8; 4],
}
const _: () = assert!(size_of::<BlockIq3S>() == 110 && align_of::<BlockIq3S>() == 1);

impl BlockIq3S {
    /// Index of point p.
    pub(crate) fn index(&self, p: usize) -> usize {
        usize::from(self.qs[p]) | usize::from(self.qh[p / 8] >> (p % 8) & 1) << 8
    }

    fn expand(&self) -> SuperBlock {
        let q: [[i8; 4]; 64] = std::array::from_fn(|p| {
            signed(&IQ3_S[self.index(p)], self.signs[p / 2] >> (4 * (p % 2)))
        });
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: 0.0,
            scale: std::array::from_fn(|g| {
                2 * i16::from(self.sc[g / 4] >> (4 * (g / 2 % 2)) & 15) + 1
            }),
            min: [0; 16],
            q: bytemuck::must_cast(q),
        }
    }
}

impl Block for BlockIq3S {
    const TY: TensorType = TensorType::Iq3S;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: false,
    };

    fn decode(&self, out: &mut [f32]) {
        let b = self.expand();
        for (i, w) in out.iter_mut().enumerate() {
            *w = b.d * f32::from(b.scale[i / 16]) * f32::from(b.q[i]);
        }
    }
}
