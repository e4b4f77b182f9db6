//! Q5_K: eight groups of 32 five-bit codes under 6-bit scales and minima.

use ds4_gguf::TensorType;

use super::Encoder;
use super::q4_k::{level_plus_magnitude, pack_scales};
use super::two_level::{self, Block, Recipe, TwoLevel};
use crate::search::Tile;
use crate::search::affine::Trials;
use crate::simd::lanes::Lanes;

pub(crate) struct Q5K;

impl Encoder for Q5K {
    const TY: TensorType = TensorType::Q5K;
    const HALF_SCALES: &'static [usize] = &[0, 2];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        two_level::encode::<L, Self, 32, 8>(lanes, row, importance, blocks);
    }
}

impl TwoLevel for Q5K {
    const RECIPE: Recipe = Recipe {
        top: 63.0,
        energy: 2.0,
        plain: Trials {
            n: 31.0,
            first: -0.5,
            step: 0.1,
            steps: 15,
            absolute: false,
        },
        weighted: Trials {
            n: 31.0,
            first: -0.9,
            step: 0.05,
            steps: 36,
            absolute: false,
        },
    };

    #[inline(always)]
    fn plain_weights<L: Lanes, const G: usize>(lanes: L, x: &Tile<L, G>) -> Tile<L, G> {
        level_plus_magnitude(lanes, x)
    }

    fn pack(block: &Block, bytes: &mut [u8]) {
        pack_scales(block, bytes);
        let (high, low) = bytes[16..].split_at_mut(32);
        for (l, high) in high.iter_mut().enumerate() {
            *high = (0..8).fold(0, |bits, g| bits | block.codes[32 * g + l] >> 4 << g);
        }
        let codes = block.codes.as_chunks::<64>().0;
        for (codes, low) in codes.iter().zip(low.as_chunks_mut::<32>().0) {
            for (l, low) in low.iter_mut().enumerate() {
                *low = codes[l] & 15 | codes[l + 32] << 4;
            }
        }
    }
}
