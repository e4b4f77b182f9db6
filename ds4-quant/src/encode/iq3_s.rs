//! IQ3_S: groups of 32, each eight points of the 512-point lattice of four with 32 sign bits, and a 4-bit scale.

use std::sync::LazyLock;

use ds4_gguf::TensorType;

use super::Encoder;
use super::iq2_xs::pack_scales;
use super::lattice::{self, Again, Block, Rules};
use crate::codebook;
use crate::search::grid::Grid;
use crate::simd::lanes::Lanes;

const BYTES: usize = 110;
const RULES: Rules = Rules {
    values: &[1, 3, 5, 7, 9, 11, 13, 15],
    factor: 1.0,
    step: 0.2,
    even_signs: false,
    again: Again::AllIfOff,
    energy: 2.0,
    correction: 1.033,
    ..lattice::COMMON
};
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::new(&codebook::IQ3_S, RULES.values, 3));

pub(crate) struct Iq3S;

impl Encoder for Iq3S {
    const TY: TensorType = TensorType::Iq3S;

    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        lattice::encode::<L, 32, 4>(lanes, &GRID, RULES, row, importance, |b, block| {
            pack(block, &mut blocks[b * BYTES..][..BYTES]);
        });
    }
}

/// ```text
/// byte 0..2      d
/// byte 2..66     low bytes of the grid indices
/// byte 66..74    top bit of index 8k + l in bit l of byte k
/// byte 74..106   sign bytes
/// byte 106..110  4-bit scales, even groups low
/// ```
fn pack(block: &Block, bytes: &mut [u8]) {
    bytes[..2].copy_from_slice(&block.d.to_le_bytes());
    for (byte, &point) in bytes[2..66].iter_mut().zip(&block.points) {
        *byte = point as u8;
    }
    for (byte, points) in bytes[66..74]
        .iter_mut()
        .zip(block.points.as_chunks::<8>().0)
    {
        *byte = points
            .iter()
            .rev()
            .fold(0, |bits, &point| bits << 1 | (point >> 8) as u8);
    }
    bytes[74..106].copy_from_slice(&block.signs);
    pack_scales(&block.scales, &mut bytes[106..]);
}
