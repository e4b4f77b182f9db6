//! Q6_K: 256 six-bit codes, a signed eight-bit scale for each 16; 210 bytes, 6.5625 bits a weight.
//!
//! ```text
//! byte 0..128     ql    low four bits;  weight 128h + 32k + l: nibble k / 2 of ql[64h + 32·(k % 2) + l]
//! byte 128..192   qh    high two bits;  weight 128h + 32k + l: bits 2k, 2k+1 of qh[32h + l]
//! byte 192..208   sc    i8
//! byte 208..210   d     f16             w = d · scale · (code − 32)
//! ```
//! Source: ggml-org/llama.cpp:ggml/src/ggml-common.h (`block_q6_K`).

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use super::packed::{Block, Integers};
use super::q2_k::two_bits;
use crate::accumulate::SuperBlock;

/// One block.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockQ6K {
    pub(crate) ql: [u8; 128],
    pub(crate) qh: [u8; 64],
    pub(crate) sc: [i8; 16],
    pub(crate) d: [u8; 2],
}
const _: () = assert!(size_of::<BlockQ6K>() == 210 && align_of::<BlockQ6K>() == 1);

impl BlockQ6K {
    fn expand(&self) -> SuperBlock {
        let high = two_bits(&self.qh);
        SuperBlock {
            d: f16::from_le_bytes(self.d).to_f32(),
            dmin: 0.0,
            scale: self.sc.map(i16::from),
            min: [0; 16],
            q: std::array::from_fn(|i| {
                let (h, k, l) = (i / 128, i / 32 % 4, i % 32);
                let low = self.ql[64 * h + 32 * (k % 2) + l] >> (4 * (k / 2)) & 15;
                (low | high[i] << 4) as i8 - 32
            }),
        }
    }
}

impl Block for BlockQ6K {
    const TY: TensorType = TensorType::Q6K;
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
