//! IQ3_XXS: groups of 32, each eight points of the 256-point lattice of four, 28 sign bits and a 4-bit scale.

use std::sync::LazyLock;

use ds4_gguf::TensorType;

use super::Encoder;
use super::iq2_xxs::seven_signs;
use super::lattice::{self, Block, Rules};
use crate::codebook;
use crate::search::grid::Grid;
use crate::simd::lanes::Lanes;

const BYTES: usize = 98;
const RULES: Rules = Rules {
    values: &[4, 12, 20, 28, 36, 44, 52, 62],
    factor: 0.25,
    trials: 15,
    step: 0.2,
    silent: 1e-8,
    energy: 2.0,
    correction: 1.0125,
    ..lattice::COMMON
};
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::new(&codebook::IQ3_XXS, RULES.values, 2));

pub(crate) struct Iq3Xxs;

impl Encoder for Iq3Xxs {
    const TY: TensorType = TensorType::Iq3Xxs;

    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        lattice::encode::<L, 32, 4>(lanes, &GRID, RULES, row, importance, |b, block| {
            pack(block, &mut blocks[b * BYTES..][..BYTES]);
        });
    }
}

/// ```text
/// byte 0..2    d
/// byte 2..66   grid indices
/// byte 66..98  u32 a group: four times seven sign bits, and the scale in the top four
/// ```
fn pack(block: &Block, bytes: &mut [u8]) {
    bytes[..2].copy_from_slice(&block.d.to_le_bytes());
    for (byte, &point) in bytes[2..66].iter_mut().zip(&block.points) {
        *byte = point as u8;
    }
    for (group, bytes) in bytes[66..].as_chunks_mut().0.iter_mut().enumerate() {
        let signs = seven_signs(&block.signs[4 * group..][..4]);
        *bytes = (signs | u32::from(block.scales[group]) << 28).to_le_bytes();
    }
}
