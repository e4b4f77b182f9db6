//! Q2_K: 256 two-bit codes, four-bit scale and minimum for each 16; 84 bytes, 2.625 bits a weight.
//!
//! ```text
//! byte 0..16    sc[j]   low nibble: scale, high nibble: minimum of weights 16j..16j+16
//! byte 16..80   qs      weight 128h + 32k + l: bits 2k, 2k+1 of qs[32h + l]
//! byte 80..82   d       f16
//! byte 82..84   dmin    f16             w = d · scale · code − dmin · minimum
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q2_K`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ2K {
    pub(crate) sc: [u8; 16],
    pub(crate) qs: [u8; 64],
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
}
const _: () = assert!(size_of::<BlockQ2K>() == 84 && align_of::<BlockQ2K>() == 1);

/// 256 two-bit codes: code 128h + 32k + l is bits 2k, 2k+1 of byte 32h + l.
pub(crate) fn two_bits(qs: &[u8; 64]) -> [u8; 256] {
    std::array::from_fn(|i| qs[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4)) & 3)
}

impl BlockQ2K {
    fn expand(&self) -> SuperBlock {
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: f16::from_le_bytes(self.dmin).to_f32(),
            scale: self.sc.map(|s| i16::from(s & 15)),
            min: self.sc.map(|s| i16::from(s >> 4)),
            q: two_bits(&self.qs).map(|c| c as i8),
        }
    }
}

impl Block for BlockQ2K {
    const TY: TensorType = TensorType::Q2K;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: true,
    };

    fn decode(&self, out: &mut [f32]) {
        let d = f16::from_le_bytes(self.d).to_f32();
        let dmin = f16::from_le_bytes(self.dmin).to_f32();
        for (i, (w, c)) in out.iter_mut().zip(two_bits(&self.qs)).enumerate() {
            let s = self.sc[i / 16];
            *w = d * f32::from(s & 15) * f32::from(c) - dmin * f32::from(s >> 4);
        }
    }
}
