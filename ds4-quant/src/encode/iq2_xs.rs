//! IQ2_XS: groups of 16, each two points of the 512-point lattice with 7 sign bits, and a 4-bit scale.
//!
//! Importance is demanded.

use std::sync::LazyLock;

use ds4_gguf::TensorType;

use super::Encoder;
use super::lattice::{self, Block, Rules};
use crate::codebook;
use crate::search::grid::Grid;
use crate::simd::lanes::Lanes;

const BYTES: usize = 74;
const RULES: Rules = lattice::COMMON;
static GRID: LazyLock<Grid> = LazyLock::new(|| Grid::new(&codebook::IQ2_XS, RULES.values, 2));

pub(crate) struct Iq2Xs;

impl Encoder for Iq2Xs {
    const TY: TensorType = TensorType::Iq2Xs;
    const DEMANDS_IMPORTANCE: bool = true;
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
/// byte 2..66   32 words: grid index in nine bits, seven sign bits
/// byte 66..74  4-bit scales, even groups low
/// ```
fn pack(block: &Block, bytes: &mut [u8]) {
    bytes[..2].copy_from_slice(&block.d.to_le_bytes());
    let words = bytes[2..66].as_chunks_mut().0;
    for (word, (&point, &signs)) in words.iter_mut().zip(block.points.iter().zip(&block.signs)) {
        *word = (point | u16::from(signs & 127) << 9).to_le_bytes();
    }
    pack_scales(&block.scales, &mut bytes[66..]);
}

/// Two 4-bit scales a byte, the even one low.
pub(super) fn pack_scales(scales: &[u8], bytes: &mut [u8]) {
    for (byte, [even, odd]) in bytes.iter_mut().zip(scales.as_chunks().0) {
        *byte = even | odd << 4;
    }
}
