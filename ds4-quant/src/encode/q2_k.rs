//! Q2_K: sixteen groups of 16 two-bit codes under 4-bit scales and minima.

use ds4_gguf::TensorType;

use super::Encoder;
use super::recover_q2_k;
use super::two_level::{self, BLOCK, Block, Recipe, TwoLevel};
use crate::search::Tile;
use crate::search::affine::Trials;
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct Q2K;

impl Encoder for Q2K {
    const TY: TensorType = TensorType::Q2K;
    const HALF_SCALES: &'static [usize] = &[80, 82];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        two_level::encode::<L, Self, 16, 16>(lanes, row, importance, blocks);
    }
}

impl TwoLevel for Q2K {
    const RECIPE: Recipe = Recipe {
        top: 15.0,
        energy: 1.0,
        plain: Trials {
            n: 3.0,
            first: -0.5,
            step: 0.1,
            steps: 15,
            absolute: true,
        },
        weighted: Trials {
            n: 3.0,
            first: -0.9,
            step: 0.05,
            steps: 36,
            absolute: false,
        },
    };

    /// `w = |x|`
    #[inline(always)]
    fn plain_weights<L: Lanes, const G: usize>(_lanes: L, x: &Tile<L, G>) -> Tile<L, G> {
        let mut w = *x;
        for w in &mut w {
            *w = w.abs();
        }
        w
    }

    fn better(x: &[f32; BLOCK], importance: Option<&[f32]>, found: Block) -> Block {
        recover_q2_k::better(x, importance, found)
    }

    fn pack(block: &Block, bytes: &mut [u8]) {
        for (byte, (scale, min)) in bytes.iter_mut().zip(block.scales.iter().zip(&block.mins)) {
            *byte = scale | min << 4;
        }
        pack_two_bits(&block.codes, &mut bytes[16..80]);
        bytes[80..82].copy_from_slice(&block.d.to_le_bytes());
        bytes[82..84].copy_from_slice(&block.dmin.to_le_bytes());
    }
}

/// Code `128h + 32k + l` to bits `2k` of byte `32h + l`; only the low two bits of a code are taken.
pub(super) fn pack_two_bits(codes: &[u8; BLOCK], bytes: &mut [u8]) {
    for (codes, bytes) in codes
        .as_chunks::<128>()
        .0
        .iter()
        .zip(bytes.as_chunks_mut::<32>().0)
    {
        for (l, byte) in bytes.iter_mut().enumerate() {
            *byte = codes[l] & 3
                | (codes[l + 32] & 3) << 2
                | (codes[l + 64] & 3) << 4
                | (codes[l + 96] & 3) << 6;
        }
    }
}
