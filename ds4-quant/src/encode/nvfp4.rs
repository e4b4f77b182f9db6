//! NVFP4: four groups of 16 E2M1 codes under one E4M3 byte each; the byte puts the largest weight on 6, no search.

use ds4_gguf::TensorType;

use super::Encoder;
use super::mxfp4::e2m1;
use super::q8_0::largest_magnitude;
use crate::codebook::ue4m3;
use crate::simd::lanes::{Float, Lanes};

const GROUP: usize = 16;
const BLOCK: usize = 64;
const BYTES: usize = 36;

pub(crate) struct Nvfp4;

impl Encoder for Nvfp4 {
    const TY: TensorType = TensorType::Nvfp4;

    /// ```text
    /// byte 0..4   scale of each 16 weights
    /// byte 4..36  eight bytes a group: code j in the low, code j + 8 in the high nibble of byte j
    /// ```
    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, blocks: &mut [u8]) {
        for (x, block) in row
            .as_chunks::<BLOCK>()
            .0
            .iter()
            .zip(blocks.as_chunks_mut::<BYTES>().0)
        {
            let (scales, codes) = block.split_at_mut(4);
            let groups = x
                .as_chunks::<GROUP>()
                .0
                .iter()
                .zip(codes.as_chunks_mut::<8>().0);
            for ((x, bytes), scale) in groups.zip(scales) {
                *scale = scale_byte(largest_magnitude(lanes, x) / 6.0);
                let unit = ue4m3(*scale);
                if unit == 0.0 {
                    bytes.fill(0);
                    continue;
                }
                let [low, high] = x.as_chunks().0 else {
                    unreachable!("16 is two times 8")
                };
                let low = e2m1(lanes, lanes.load(low), lanes.splat(unit)).to_bytes();
                let high = e2m1(lanes, lanes.load(high), lanes.splat(unit)).to_bytes();
                for (j, byte) in bytes.iter_mut().enumerate() {
                    *byte = low[j] | high[j] << 4;
                }
            }
        }
    }
}

/// The unsigned E4M3 byte for `x`: nearest, up at a midpoint, at most 448.
fn scale_byte(x: f32) -> u8 {
    // Steps are 2^-9 below 2^-6, and an eighth of the power of two above.
    let x = x.clamp(0.0, 448.0);
    if x < 2f32.powi(-6) {
        return (x * 512.0 + 0.5).min(7.0) as u8;
    }
    // Half a step is the twentieth bit; what carries out of the mantissa raises the exponent.
    let rounded = (x.to_bits() + (1 << 19)) >> 20;
    (rounded - (120 << 3)).min(0x7e) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_bytes_are_the_nearest_and_the_larger_at_a_midpoint() {
        for byte in 1..0x7e {
            let (here, next) = (2.0 * ue4m3(byte), 2.0 * ue4m3(byte + 1));
            assert_eq!(scale_byte(here), byte);
            // Below the smallest normal value seven steps is the most.
            let up = if byte == 7 { 7 } else { byte + 1 };
            assert_eq!(
                scale_byte(0.5 * (here + next)),
                up,
                "between {byte:#x} and the next"
            );
        }
        assert_eq!(
            (scale_byte(0.0), scale_byte(1e9), scale_byte(1e-9)),
            (0, 0x7e, 0)
        );
    }
}
