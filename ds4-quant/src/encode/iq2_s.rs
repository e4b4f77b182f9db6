//! IQ2_S: groups of 16, each two points of the 1024-point lattice with 8 sign bits, and a 4-bit scale.

use std::sync::LazyLock;

use ds4_gguf::TensorType;

use super::Encoder;
use super::iq2_xs::pack_scales;
use super::lattice::{self, Block, Rules};
use crate::codebook;
use crate::search::grid::Grid;
use crate::simd::lanes::Lanes;

const BYTES: usize = 82;
const RULES: Rules = Rules {
    even_signs: false,
    silent: 1e-8,
    energy: 2.0,
    base: 0.25,
    correction: 0.9875,
    ..lattice::COMMON
};
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::new(&codebook::IQ2_S, RULES.values, 1));

pub(crate) struct Iq2S;

impl Encoder for Iq2S {
    const TY: TensorType = TensorType::Iq2S;

    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        lattice::encode::<L, 16, 8>(lanes, &GRID, RULES, row, importance, |b, block| {
            pack(block, &mut blocks[b * BYTES..][..BYTES]);
        });
    }
}

/// ```text
/// byte 0..2    d
/// byte 2..34   low bytes of the grid indices
/// byte 34..66  sign bytes
/// byte 66..74  top bits of index 4k + l in bits 2l of byte k
/// byte 74..82  4-bit scales, even groups low
/// ```
fn pack(block: &Block, bytes: &mut [u8]) {
    bytes[..2].copy_from_slice(&block.d.to_le_bytes());
    for (byte, &point) in bytes[2..34].iter_mut().zip(&block.points) {
        *byte = point as u8;
    }
    bytes[34..66].copy_from_slice(&block.signs);
    for (byte, points) in bytes[66..74]
        .iter_mut()
        .zip(block.points.as_chunks::<4>().0)
    {
        *byte = points
            .iter()
            .rev()
            .fold(0, |bits, &point| bits << 2 | (point >> 8) as u8);
    }
    pack_scales(&block.scales, &mut bytes[74..]);
}
