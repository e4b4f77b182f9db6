//! Q4_K: eight groups of 32 four-bit codes under 6-bit scales and minima.

use ds4_gguf::TensorType;

use super::Encoder;
use super::two_level::{self, Block, Recipe, TwoLevel};
use crate::search::Tile;
use crate::search::affine::Trials;
use crate::simd::lanes::{Float, Lanes};

pub(crate) struct Q4K;

impl Encoder for Q4K {
    const TY: TensorType = TensorType::Q4K;
    const HALF_SCALES: &'static [usize] = &[0, 2];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        two_level::encode::<L, Self, 32, 8>(lanes, row, importance, blocks);
    }
}

impl TwoLevel for Q4K {
    const RECIPE: Recipe = Recipe {
        top: 63.0,
        energy: 2.0,
        plain: Trials {
            n: 15.0,
            first: -1.0,
            step: 0.1,
            steps: 20,
            absolute: false,
        },
        weighted: Trials {
            n: 15.0,
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
        let codes = block.codes.as_chunks::<64>().0;
        for (codes, bytes) in codes.iter().zip(bytes[16..].as_chunks_mut::<32>().0) {
            for (l, byte) in bytes.iter_mut().enumerate() {
                *byte = codes[l] | codes[l + 32] << 4;
            }
        }
    }
}

/// `w = sqrt(mean x²) + |x|`, the mean over the group.
#[inline(always)]
pub(super) fn level_plus_magnitude<L: Lanes, const G: usize>(
    lanes: L,
    x: &Tile<L, G>,
) -> Tile<L, G> {
    let mut sum = lanes.splat(0.0);
    for &x in x {
        sum = sum + x * x;
    }
    let level = (sum / lanes.splat(G as f32)).sqrt();
    let mut w = *x;
    for w in &mut w {
        *w = level + w.abs();
    }
    w
}

/// Bytes 0..16 of Q4_K and Q5_K: `d`, `dmin`, and eight 6-bit scales and minima in twelve bytes.
///
/// Scale `j` is in the low six bits of byte `j`, minimum `j` in those of byte `j + 4`, for `j < 4`. The other
/// four pairs have their low nibbles in byte `j + 4` and their top bits in the two free bits of `j − 4` and `j`.
pub(super) fn pack_scales(block: &Block, bytes: &mut [u8]) {
    bytes[0..2].copy_from_slice(&block.d.to_le_bytes());
    bytes[2..4].copy_from_slice(&block.dmin.to_le_bytes());
    let packed = &mut bytes[4..16];
    for j in 0..4 {
        let (scale, min) = (block.scales[j + 4], block.mins[j + 4]);
        packed[j] = block.scales[j] | scale >> 4 << 6;
        packed[j + 4] = block.mins[j] | min >> 4 << 6;
        packed[j + 8] = scale & 15 | (min & 15) << 4;
    }
}
