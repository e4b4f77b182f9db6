//! Q8_0: 32 signed bytes under one `f16`; `d = max|x| / 127`, no search.

use ds4_gguf::TensorType;

use super::Encoder;
use crate::search::magnitudes;
use crate::simd::lanes::{Float, LANES, Lanes};

const BLOCK: usize = 32;
const BYTES: usize = 34;

pub(crate) struct Q8_0;

impl Encoder for Q8_0 {
    const TY: TensorType = TensorType::Q8_0;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], _importance: Option<&[f32]>, blocks: &mut [u8]) {
        let (zero, top) = (lanes.splat(0.0), lanes.splat(127.0));
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (x, blocks) in chunks {
            let d = magnitudes::<L, BLOCK>(lanes, x) / top;
            let inverse = (lanes.splat(1.0) / d).replace(d.same(zero), zero);
            let (d, inverse) = (d.to_halves(), inverse.to_array());
            let out = x
                .as_chunks::<BLOCK>()
                .0
                .iter()
                .zip(blocks.as_chunks_mut::<BYTES>().0);
            for (b, (x, block)) in out.enumerate() {
                let mut q = [lanes.splat_int(0); BLOCK / LANES];
                for (q, x) in q.iter_mut().zip(x.as_chunks().0) {
                    // A subnormal d has an infinite inverse; what f16 makes of it is 0 anyway.
                    let x = round_half_away(lanes, lanes.load(x) * lanes.splat(inverse[b]));
                    *q = x.min(top).max(zero - top).to_int();
                }
                block[..2].copy_from_slice(&d[b].to_le_bytes());
                block[2..].copy_from_slice(&lanes.signed_bytes(q).map(|q| q as u8));
            }
        }
    }
}

/// Nearest integer, halves away from zero.
///
/// The number below a half is added: from a half on the sum rounds up to the next integer, below it stays under.
#[inline(always)]
pub(crate) fn round_half_away<L: Lanes>(lanes: L, x: L::F) -> L::F {
    (x + lanes.splat(BELOW_HALF).copysign(x)).trunc()
}
const BELOW_HALF: f32 = 0.499_999_97;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::lanes::Portable;

    #[test]
    fn halves_and_their_neighbours_round_as_the_standard_library_has_it() {
        assert_eq!(BELOW_HALF, 0.5f32.next_down());
        let mut numbers = vec![0.0, f32::MIN_POSITIVE, 1e9, f32::MAX];
        for whole in (0..1 << 10)
            .chain((1 << 21) - 4..(1 << 21) + 4)
            .chain((1 << 22) - 4..(1 << 22) + 4)
        {
            let half = whole as f32 + 0.5;
            let whole = whole as f32;
            numbers.extend([
                half,
                half.next_down(),
                half.next_up(),
                whole,
                whole.next_up(),
                whole.next_down(),
            ]);
        }
        for x in numbers {
            for x in [x, -x] {
                let rounded = round_half_away(Portable, Portable.splat(x)).to_array()[0];
                assert_eq!(rounded.to_bits(), x.round().to_bits(), "{x:e}");
            }
        }
    }
}
