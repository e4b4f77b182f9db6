//! MXFP4: 32 E2M1 codes under a power of two; the power puts the largest weight between 4 and 8, no search.

use ds4_gguf::TensorType;

use super::Encoder;
use super::q4_0::pack_halves;
use super::q8_0::largest_magnitude;
use crate::format::mxfp4::e8m0_half;
use crate::simd::lanes::{Float, Lanes};

const BLOCK: usize = 32;
const BYTES: usize = 17;

pub(crate) struct Mxfp4;

impl Encoder for Mxfp4 {
    const TY: TensorType = TensorType::Mxfp4;

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, blocks: &mut [u8]) {
        for (x, block) in row
            .as_chunks::<BLOCK>()
            .0
            .iter()
            .zip(blocks.as_chunks_mut::<BYTES>().0)
        {
            let largest = largest_magnitude(lanes, x);
            let e = if largest > 0.0 {
                (floor_log2(largest) + 125).clamp(0, 254) as u8
            } else {
                0
            };
            let mut codes = [0; BLOCK];
            let unit = lanes.splat(e8m0_half(e));
            for (x, codes) in x.as_chunks().0.iter().zip(codes.as_chunks_mut().0) {
                *codes = e2m1(lanes, lanes.load(x), unit).to_bytes();
            }
            block[0] = e;
            pack_halves(&codes, &mut block[1..]);
        }
    }
}

/// `floor(log2 x)` with the logarithm rounded to `f32` first, as the reference has it: just below a power of two the
/// logarithm rounds up to it.
fn floor_log2(x: f32) -> i32 {
    (f64::from(x).log2() as f32).floor() as i32
}

/// Codes of the nearest of ±0, 1, 2, 3, 4, 6, 8, 12 times `unit`, the smaller magnitude at a midpoint; never −0.
#[inline(always)]
pub(super) fn e2m1<L: Lanes>(lanes: L, x: L::F, unit: L::F) -> L::F {
    let (zero, one) = (lanes.splat(0.0), lanes.splat(1.0));
    let size = x.abs();
    let mut code = zero;
    for middle in [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0] {
        code = code + zero.replace(size.gt(unit * lanes.splat(middle)), one);
    }
    let negative = x.lt(zero) & code.gt(zero);
    code + zero.replace(negative, lanes.splat(8.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_just_below_a_power_of_two_is_the_one_its_rounded_logarithm_names() {
        assert_eq!(floor_log2(1.0), 0);
        assert_eq!(
            floor_log2(1.0f32.next_down()),
            -1,
            "−8.6e-8 is an f32 of its own"
        );
        assert_eq!(
            floor_log2(128.0f32.next_down()),
            7,
            "7 − 8.6e-8 rounds to 7"
        );
        assert_eq!(floor_log2(f32::from_bits(1)), -149);
    }
}
