//! IQ2_XS: lattice points of eight weights, a four-bit scale for each 16; 74 bytes for 256, 2.3125 bits a weight.
//!
//! ```text
//! byte 0..2      d      f16
//! byte 2..66     q[p]   u16: bits 0..9 index of point p, bits 9..16 its sign index
//! byte 66..74    sc[b]  low nibble: scale of weights 32b..32b+16, high nibble: of the next 16
//!                                  w = ± d · (0.5 + scale) · 0.25 · point[j]
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_iq2_xs`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;
use crate::codebook::{IQ2_XS, SIGNS, signed};

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockIq2Xs {
    pub(crate) d: [u8; 2],
    pub(crate) q: [[u8; 2]; 32],
    pub(crate) sc: [u8; 8],
}
const _: () = assert!(size_of::<BlockIq2Xs>() == 74 && align_of::<BlockIq2Xs>() == 1);

/// The scale nibble of 16 weights.
pub(crate) fn nibble(sc: &[u8; 8], g: usize) -> u8 {
    sc[g / 2] >> (4 * (g % 2)) & 15
}

impl BlockIq2Xs {
    fn codes(&self) -> [i8; 256] {
        bytemuck::must_cast(self.q.map(|q| {
            let q = usize::from(u16::from_le_bytes(q));
            signed(&IQ2_XS[q & 511], SIGNS[q >> 9])
        }))
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

impl Block for BlockIq2Xs {
    const TY: TensorType = TensorType::Iq2Xs;
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
