//! F32, F16, BF16: rounding to nearest even, nothing to search.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use crate::simd::lanes::{Float, LANES, Lanes};

pub(crate) struct F32;
pub(crate) struct F16;
pub(crate) struct Bf16;

impl Encoder for F32 {
    const TY: TensorType = TensorType::F32;

    #[inline(always)]
    fn row<L: Lanes>(_lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        for (x, bytes) in row.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = x.to_le_bytes();
        }
    }
}

impl Encoder for F16 {
    const TY: TensorType = TensorType::F16;
    /// From 65520 on the nearest half float is infinite.
    const LARGEST: f32 = f32::from_bits(65_520.0f32.to_bits() - 1);

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        let (eights, rest) = row.as_chunks();
        let (bytes, last) = bytes.as_chunks_mut::<{ 2 * LANES }>();
        for (x, bytes) in eights.iter().zip(bytes) {
            let halves = lanes.load(x).to_halves();
            for (half, bytes) in halves.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = half.to_le_bytes();
            }
        }
        for (x, bytes) in rest.iter().zip(last.as_chunks_mut().0) {
            *bytes = f16::from_f32(*x).to_le_bytes();
        }
    }
}

impl Encoder for Bf16 {
    const TY: TensorType = TensorType::Bf16;
    /// Half a unit in the last place below what the next power of two would be.
    const LARGEST: f32 = f32::from_bits(0x7f7f_7fff);

    #[inline(always)]
    fn row<L: Lanes>(_lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        for (x, bytes) in row.iter().zip(bytes.as_chunks_mut().0) {
            // The upper half of the bits, after adding half its unit, or a little less where it is even.
            let bits = x.to_bits();
            let rounded = bits + 0x7fff + (bits >> 16 & 1);
            *bytes = ((rounded >> 16) as u16).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::encoder;
    use crate::{Error, Isa};
    use half::bf16;

    /// Numbers of every exponent, with bits that tie and that do not.
    fn numbers() -> impl Iterator<Item = f32> {
        let bits = (0..=0x7f7f).flat_map(|high: u32| {
            [
                0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff,
            ]
            .map(|low| high << 16 | low)
        });
        bits.map(f32::from_bits).flat_map(|x| [x, -x])
    }

    fn rounds_like(ty: TensorType, round: impl Fn(f32) -> ([u8; 2], bool)) {
        for x in numbers() {
            for isa in [Isa::SCALAR, Isa::best()] {
                let encode = encoder(ty).expect("a float type");
                let mut bytes = [0; 2 * 9];
                let (want, finite) = round(x);
                if finite {
                    encode(isa, &[x; 9], None, &mut bytes).unwrap();
                    assert_eq!(bytes, [want; 9].concat()[..], "{x:e}");
                } else {
                    let found = encode(isa, &[x; 9], None, &mut bytes);
                    assert_eq!(found, Err(Error::OutOfRange { ty, block: 0 }), "{x:e}");
                }
            }
        }
    }

    #[test]
    fn halves_are_the_nearest_and_what_would_be_infinite_is_refused() {
        rounds_like(TensorType::F16, |x| {
            let half = f16::from_f32(x);
            (half.to_le_bytes(), half.is_finite())
        });
        rounds_like(TensorType::Bf16, |x| {
            let half = bf16::from_f32(x);
            (half.to_le_bytes(), half.is_finite())
        });
    }
}
