//! MXFP4 blocks that a source has not looked at: a scale can make infinities of them, or no numbers at all.
//!
//! A weight is `2^(e−127) · v`, |v| up to 6. At e = 254 whatever is 2 and more, at e = 253 whatever is 4 and more lies
//! beyond F32. e = 255 is NaN in a checkpoint (OCP Microscaling Formats 1.0, E8M0), though a GGUF has no such thing: its
//! readers take it for 2^128. So it must not get there.

use std::borrow::Cow;

use ds4_gguf::TensorType;

use crate::format::mxfp4::e8m0_half;
use crate::{CLAMP, Error, NonFinite, codebook, codec};

const TY: TensorType = TensorType::Mxfp4;
const WEIGHTS: usize = TY.block_len();
const BYTES: usize = TY.block_bytes();

/// The first scale that a weight beyond [`CLAMP`] can have: `6 · 2^(140−127)` is 49152.
const SUSPECT: u8 = 141;

/// Whole blocks of a source, whose first weight has number `first`, with what `nonfinite` says done to them.
///
/// Blocks that will be encoded in another type are only rid of their NaN: the rest is up to what encodes them.
///
/// # Errors
/// [`Error::NonFinite`] for the first weight that is not finite, under [`NonFinite::Refuse`].
pub(super) fn blocks(
    blocks: &[u8],
    first: usize,
    is_copied: bool,
    nonfinite: NonFinite,
) -> Result<Cow<'_, [u8]>, Error> {
    let mxfp4 = codec(TY).ok_or(Error::NoCodec { ty: TY })?;
    let mut mended = Cow::Borrowed(blocks);
    for (b, block) in blocks.chunks_exact(BYTES).enumerate() {
        if block[0] < SUSPECT {
            continue;
        }
        let mut weights = [f32::NAN; WEIGHTS];
        if block[0] != u8::MAX {
            mxfp4.decode(block, &mut weights)?;
        }
        let is_wrong = |w: &f32| match nonfinite {
            NonFinite::Refuse => !w.is_finite(),
            NonFinite::Clamp => w.is_nan() || is_copied && w.abs() > CLAMP,
        };
        let Some(wrong) = weights.iter().position(is_wrong) else {
            continue;
        };
        if nonfinite == NonFinite::Refuse {
            return Err(Error::NonFinite {
                what: crate::encode::WEIGHT,
                index: first + b * WEIGHTS + wrong,
                value: weights[wrong],
            });
        }
        let block = &mut mended.to_mut()[b * BYTES..][..BYTES];
        if block[0] == u8::MAX {
            block.fill(0);
        } else {
            encode(&weights, block);
        }
    }
    Ok(mended)
}

/// Weights of which some lie beyond [`CLAMP`] as the nearest codes under a scale that has 65536. The usual encoder takes
/// a scale whose largest weight is 49152.
fn encode(weights: &[f32; WEIGHTS], block: &mut [u8]) {
    let scale = e8m0_half(SUSPECT);
    let code = |i: usize| {
        let w = weights[i].clamp(-CLAMP, CLAMP) / scale;
        let off = |c: &u8| (f32::from(codebook::E2M1[usize::from(*c)]) - w).abs();
        (0..16u8)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .unwrap_or(0)
    };
    block[0] = SUSPECT;
    for (j, byte) in block[1..].iter_mut().enumerate() {
        *byte = code(j) | code(j + WEIGHTS / 2) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block whose weight 17 has this code and all others are 0.
    fn block(scale: u8, code: u8) -> [u8; BYTES] {
        let mut block = [0; BYTES];
        (block[0], block[2]) = (scale, code << 4);
        block
    }

    fn decoded(block: &[u8]) -> [f32; WEIGHTS] {
        let mut weights = [0.0; WEIGHTS];
        codec(TY).unwrap().decode(block, &mut weights).unwrap();
        weights
    }

    #[test]
    fn scales_that_make_infinities_are_known_by_the_code_they_meet() {
        // Codes 4 to 7 are 2, 3, 4 and 6; bit 3 is the sign.
        for (scale, code, value) in [
            (252, 7, None),
            (253, 5, None),
            (253, 6, Some(f32::INFINITY)),
            (253, 15, Some(f32::NEG_INFINITY)),
            (254, 3, None),
            (254, 4, Some(f32::INFINITY)),
            (254, 12, Some(f32::NEG_INFINITY)),
        ] {
            let two = [block(120, 7), block(scale, code)].concat();
            match (blocks(&two, 64, true, NonFinite::Refuse), value) {
                (Ok(same), None) => assert!(matches!(same, Cow::Borrowed(same) if same == two)),
                (
                    Err(Error::NonFinite {
                        index, value: v, ..
                    }),
                    Some(value),
                ) => {
                    assert_eq!((index, v), (64 + 32 + 17, value), "{scale} {code}");
                }
                (other, _) => panic!("{scale} {code}: {other:?}"),
            }
        }
        let error = blocks(&block(255, 0), 64, false, NonFinite::Refuse).unwrap_err();
        assert!(
            matches!(error, Error::NonFinite { index: 64, value, .. } if value.is_nan()),
            "{error}"
        );
    }

    #[test]
    fn only_blocks_that_must_change_do() {
        let same = [block(0, 7), block(140, 15), block(141, 5)].concat();
        let all = [&same[..], &block(255, 7), &block(254, 12), &block(141, 7)].concat();
        let copied = blocks(&all, 0, true, NonFinite::Clamp).unwrap();
        assert_eq!(copied[..same.len()], same);
        let [nan, infinite, large] = [3, 4, 5].map(|b| decoded(&copied[b * BYTES..][..BYTES]));
        assert_eq!(nan, [0.0; WEIGHTS]);
        // What is nearest to 65504 among the values of the type.
        assert_eq!((infinite[17], large[17]), (-65_536.0, 65_536.0));
        assert!(
            infinite
                .iter()
                .chain(&large)
                .all(|w| *w == 0.0 || w.abs() == 65_536.0)
        );

        let encoded = blocks(&all, 0, false, NonFinite::Clamp).unwrap();
        assert_eq!(encoded[..same.len()], same);
        assert_eq!(decoded(&encoded[3 * BYTES..][..BYTES]), [0.0; WEIGHTS]);
        assert_eq!(encoded[4 * BYTES..], all[4 * BYTES..]);
    }
}
