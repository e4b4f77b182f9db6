//! NVFP4: four groups of 16 E2M1 codes under one E4M3 byte each; the byte puts the largest weight on 6, no search.

use ds4_gguf::TensorType;

use super::Encoder;
use super::mxfp4::E2m1;
use crate::codebook::ue4m3;
use crate::search::magnitudes;
use crate::simd::lanes::{Float, Int, LANES, Lanes};

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
        let chunks = row
            .chunks(LANES * GROUP)
            .zip(blocks.chunks_mut(LANES * GROUP / BLOCK * BYTES));
        for (x, blocks) in chunks {
            let wanted = (magnitudes::<L, GROUP>(lanes, x) / lanes.splat(6.0)).to_array();
            let out = x
                .as_chunks::<BLOCK>()
                .0
                .iter()
                .zip(blocks.as_chunks_mut::<BYTES>().0);
            for ((x, block), wanted) in out.zip(wanted.as_chunks::<4>().0) {
                let x = x.as_chunks().0;
                let mut codes = [lanes.splat_int(0); 4];
                for (g, codes) in codes.iter_mut().enumerate() {
                    block[g] = scale_byte(wanted[g]);
                    let unit = match ue4m3(block[g]) {
                        // All codes are 0.
                        0.0 => f32::INFINITY,
                        unit => unit,
                    };
                    let levels = E2m1::new(lanes, unit);
                    let low = levels.codes(lanes.load(&x[2 * g]));
                    let high = levels.codes(lanes.load(&x[2 * g + 1]));
                    *codes = low | high.shl(4);
                }
                block[4..].copy_from_slice(&lanes.bytes(codes));
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
