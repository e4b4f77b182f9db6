//! Q4_K: 256 four-bit codes, six-bit scale and minimum for each 32; 144 bytes, 4.5 bits a weight.
//!
//! ```text
//! byte 0..2      d       f16
//! byte 2..4      dmin    f16
//! byte 4..16     s       eight scales and eight minima, see `scales_mins`
//! byte 16..144   qs      weights 64g + l and 64g + 32 + l: low and high nibble of qs[32g + l]
//!                                        w = d · scale · code − dmin · minimum
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q4_K`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use crate::accumulate::SuperBlock;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ4K {
    pub(crate) d: [u8; 2],
    pub(crate) dmin: [u8; 2],
    pub(crate) s: [u8; 12],
    pub(crate) qs: [u8; 128],
}
const _: () = assert!(size_of::<BlockQ4K>() == 144 && align_of::<BlockQ4K>() == 1);

/// The eight scales, then the eight minima. Of the last four of each, the low nibbles share bytes 8..12 and the top
/// two bits sit above the first four.
pub(crate) fn scales_mins(s: &[u8; 12]) -> [[u8; 8]; 2] {
    let scale = |j: usize| {
        if j < 4 {
            s[j] & 63
        } else {
            s[j + 4] & 15 | s[j - 4] >> 6 << 4
        }
    };
    let min = |j: usize| {
        if j < 4 {
            s[j + 4] & 63
        } else {
            s[j + 4] >> 4 | s[j] >> 6 << 4
        }
    };
    [std::array::from_fn(scale), std::array::from_fn(min)]
}

/// 256 nibbles: codes 64g + l and 64g + 32 + l are the low and high nibble of byte 32g + l.
pub(crate) fn nibbles(qs: &[u8; 128]) -> [u8; 256] {
    std::array::from_fn(|i| qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15)
}

impl BlockQ4K {
    fn expand(&self) -> SuperBlock {
        let [scale, min] = scales_mins(&self.s);
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: f16::from_le_bytes(self.dmin).to_f32(),
            scale: std::array::from_fn(|g| i16::from(scale[g / 2])),
            min: std::array::from_fn(|g| i16::from(min[g / 2])),
            q: nibbles(&self.qs).map(|c| c as i8),
        }
    }
}

impl Block for BlockQ4K {
    const TY: TensorType = TensorType::Q4K;
    const INTEGERS: Integers<Self> = Integers::Super {
        expand: Self::expand,
        min: true,
    };

    fn decode(&self, out: &mut [f32]) {
        let b = self.expand();
        for (i, w) in out.iter_mut().enumerate() {
            let (scale, min) = (f32::from(b.scale[i / 16]), f32::from(b.min[i / 16]));
            *w = b.d * scale * f32::from(b.q[i]) - b.dmin * min;
        }
    }
}
