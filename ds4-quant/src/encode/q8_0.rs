//! Q8_0: 32 signed bytes under one `f16`; `d = max|x| / 127`, no search.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use crate::simd::lanes::{Float, LANES, Lanes};

const BLOCK: usize = 32;
const BYTES: usize = 34;

pub(crate) struct Q8_0;

impl Encoder for Q8_0 {
    const TY: TensorType = TensorType::Q8_0;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, blocks: &mut [u8]) {
        let top = lanes.splat(127.0);
        for (x, block) in row
            .as_chunks::<BLOCK>()
            .0
            .iter()
            .zip(blocks.as_chunks_mut::<BYTES>().0)
        {
            let d = largest_magnitude(lanes, x) / 127.0;
            let inverse = lanes.splat(if d == 0.0 { 0.0 } else { 1.0 / d });
            block[..2].copy_from_slice(&f16::from_f32(d).to_le_bytes());
            let codes = block[2..].as_chunks_mut().0;
            for (x, codes) in x.as_chunks().0.iter().zip(codes) {
                // A subnormal d has an infinite inverse; what f16 makes of it is 0 anyway.
                let q = round_half_away(lanes, lanes.load(x) * inverse)
                    .min(top)
                    .max(lanes.splat(-127.0));
                *codes = q.to_signed_bytes().map(|q| q as u8);
            }
        }
    }
}

/// Largest magnitude of a multiple of eight values.
#[inline(always)]
pub(super) fn largest_magnitude<L: Lanes>(lanes: L, x: &[f32]) -> f32 {
    let mut largest = lanes.splat(0.0);
    for x in x.as_chunks::<LANES>().0 {
        largest = largest.max(lanes.load(x).abs());
    }
    largest
        .to_array()
        .into_iter()
        .fold(0.0, |a, b| if a > b { a } else { b })
}

/// Nearest integer, halves away from zero.
#[inline(always)]
pub(crate) fn round_half_away<L: Lanes>(lanes: L, x: L::F) -> L::F {
    let whole = x.trunc();
    let up = (x - whole).abs().ge(lanes.splat(0.5));
    whole.replace(up, whole + lanes.splat(1.0).copysign(x))
}
