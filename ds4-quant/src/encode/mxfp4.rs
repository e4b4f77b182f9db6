//! MXFP4: 32 E2M1 codes under a power of two; the power puts the largest weight between 4 and 8, no search.

use ds4_gguf::TensorType;

use super::Encoder;
use super::q4_0::pack_halves;
use crate::format::mxfp4::e8m0_half;
use crate::search::magnitudes;
use crate::simd::lanes::{Float, Int, LANES, Lanes};

const BLOCK: usize = 32;
const BYTES: usize = 17;

pub(crate) struct Mxfp4;

impl Encoder for Mxfp4 {
    const TY: TensorType = TensorType::Mxfp4;

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, blocks: &mut [u8]) {
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (x, blocks) in chunks {
            let largest = magnitudes::<L, BLOCK>(lanes, x).to_array();
            let out = x
                .as_chunks::<BLOCK>()
                .0
                .iter()
                .zip(blocks.as_chunks_mut::<BYTES>().0);
            for (b, (x, block)) in out.enumerate() {
                let e = if largest[b] > 0.0 {
                    (floor_log2(largest[b]) + 125).clamp(0, 254) as u8
                } else {
                    0
                };
                let levels = E2m1::new(lanes, e8m0_half(e));
                let mut codes = [lanes.splat_int(0); BLOCK / LANES];
                for (codes, x) in codes.iter_mut().zip(x.as_chunks().0) {
                    *codes = levels.codes(lanes.load(x));
                }
                block[0] = e;
                pack_halves(&lanes.bytes(codes), &mut block[1..]);
            }
        }
    }
}

/// `floor(log2 x)` with the logarithm rounded to `f32` first, as the reference has it: just below a power of two the
/// logarithm rounds up to it.
fn floor_log2(x: f32) -> i32 {
    let bits = x.to_bits();
    // It does so only within 2⁻¹⁷ of the power: logarithms are below 256, half a unit in their last place is 2⁻¹⁷ at
    // most, and their slope there is 1.44. That near the upper sixteen bits of the mantissa are all ones.
    if x.is_normal() && bits >> 7 & 0xffff != 0xffff {
        return (bits >> 23) as i32 - 127;
    }
    (f64::from(x).log2() as f32).floor() as i32
}

/// The levels ±0, 1, 2, 3, 4, 6, 8, 12 times a unit.
pub(super) struct E2m1<L: Lanes> {
    lanes: L,
    /// Midpoints between neighbours.
    middles: [L::F; 7],
    /// The highest that is no longer a negative level.
    negative: L::F,
}

impl<L: Lanes> E2m1<L> {
    #[inline(always)]
    pub(super) fn new(lanes: L, unit: f32) -> Self {
        let mut middles = [lanes.splat(0.0); 7];
        for (middle, times) in middles.iter_mut().zip([0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0]) {
            *middle = lanes.splat(unit * times);
        }
        Self {
            lanes,
            middles,
            negative: lanes.splat(-0.5 * unit),
        }
    }

    /// Codes of the nearest, the smaller magnitude at a midpoint; never −0.
    #[inline(always)]
    pub(super) fn codes(&self, x: L::F) -> L::U {
        let none = self.lanes.splat_int(0);
        let size = x.abs();
        let mut code = none;
        for middle in self.middles {
            code = code.more(size.gt(middle));
        }
        code | none.replace(x.lt(self.negative), self.lanes.splat_int(8))
    }
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

    #[test]
    fn powers_are_those_of_the_rounded_logarithm_around_every_power_of_two() {
        for power in 1..=254u32 {
            for below in (0..4 * 129).map(|i| (power << 23) - 258 + i) {
                let x = f32::from_bits(below);
                let want = (f64::from(x).log2() as f32).floor() as i32;
                assert_eq!(floor_log2(x), want, "{x:e}");
            }
        }
    }
}
