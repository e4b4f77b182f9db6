//! IQ2_XXS: groups of 32, each four points of the 256-point lattice, 28 sign bits and a 4-bit scale.
//!
//! The first guess of a group's scale is a fit with codes 0..=4. Importance is demanded.

use std::sync::LazyLock;

use ds4_gguf::TensorType;

use super::Encoder;
use super::lattice::{self, Again, Block, Rules};
use crate::codebook;
use crate::search::grid::Grid;
use crate::simd::lanes::Lanes;

const BYTES: usize = 66;
const RULES: Rules = Rules {
    trials: 6,
    fitted_guess: true,
    again: Again::All,
    ..lattice::COMMON
};
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::new(&codebook::IQ2_XXS, RULES.values, 2));

pub(crate) struct Iq2Xxs;

impl Encoder for Iq2Xxs {
    const TY: TensorType = TensorType::Iq2Xxs;
    const DEMANDS_IMPORTANCE: bool = true;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        lattice::encode::<L, 32, 8>(lanes, &GRID, RULES, row, importance, |b, block| {
            pack(block, &mut blocks[b * BYTES..][..BYTES]);
        });
    }
}

/// ```text
/// byte 0..2   d
/// then eight pairs of u32: four grid indices; four times seven sign bits, and the scale in the top four
/// ```
fn pack(block: &Block, bytes: &mut [u8]) {
    bytes[..2].copy_from_slice(&block.d.to_le_bytes());
    for (group, bytes) in bytes[2..].as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for (byte, &point) in bytes.iter_mut().zip(&block.points[4 * group..][..4]) {
            *byte = point as u8;
        }
        let signs = seven_signs(&block.signs[4 * group..][..4]);
        let word = signs | u32::from(block.scales[group]) << 28;
        bytes[4..].copy_from_slice(&word.to_le_bytes());
    }
}

/// The low seven bits of four sign bytes, one after another.
pub(super) fn seven_signs(signs: &[u8]) -> u32 {
    signs
        .iter()
        .rev()
        .fold(0, |word, &signs| word << 7 | u32::from(signs & 127))
}
