//! Numeric tables of the formats, kept as data files beside this one and checked by digest.
//!
//! Origin: ggml-org/llama.cpp:ggml/src/ggml-common.h (`iq2xxs_grid`, …, `ksigns_iq2xs`, `kvalues_iq4nl`,
//! `kvalues_mxfp4`) as values in index order; the UE4M3 table from its formula (`m · 2^-10`, `(8 + m) · 2^(e-11)`).

use bytemuck::must_cast;

/// The bytes of a file as `N` rows of `L`.
const fn rows<const L: usize, const N: usize>(bytes: &[u8]) -> [[u8; L]; N] {
    assert!(bytes.len() == N * L, "the file holds exactly the table");
    let mut table = [[0; L]; N];
    let mut i = 0;
    while i < N * L {
        table[i / L][i % L] = bytes[i];
        i += 1;
    }
    table
}

/// Points of IQ2_XXS: eight magnitudes each, out of 8, 25, 43.
pub(crate) const IQ2_XXS: [[u8; 8]; 256] = rows(include_bytes!("iq2_xxs.u8"));
/// Points of IQ2_XS: eight magnitudes each, out of 8, 25, 43.
pub(crate) const IQ2_XS: [[u8; 8]; 512] = rows(include_bytes!("iq2_xs.u8"));
/// Points of IQ2_S: eight magnitudes each, out of 8, 25, 43.
pub(crate) const IQ2_S: [[u8; 8]; 1024] = rows(include_bytes!("iq2_s.u8"));
/// Points of IQ3_XXS: four magnitudes each, out of 4, 12, … 52, 62.
pub(crate) const IQ3_XXS: [[u8; 4]; 256] = rows(include_bytes!("iq3_xxs.u8"));
/// Points of IQ3_S: four odd magnitudes each, 1 to 15.
pub(crate) const IQ3_S: [[u8; 4]; 512] = rows(include_bytes!("iq3_s.u8"));
/// Sign bytes of IQ2_XXS, IQ2_XS, IQ3_XXS: seven stored bits and the eighth that makes the number of minus signs even.
pub(crate) const SIGNS: [u8; 128] = *include_bytes!("signs.u8");
/// Values of the four-bit codes of IQ4_NL and IQ4_XS.
pub(crate) const IQ4_NL: [i8; 16] = must_cast(*include_bytes!("iq4_nl.i8"));
/// Twice the E2M1 values: the four-bit codes of MXFP4 and NVFP4.
pub(crate) const E2M1: [i8; 16] = must_cast(*include_bytes!("e2m1.i8"));
/// Half the unsigned E4M3 value of each scale byte; 0 for the invalid 0x7f and above.
pub(crate) const UE4M3: [[u8; 4]; 256] = rows(include_bytes!("ue4m3.f32"));

/// The value of an unsigned E4M3 scale byte, halved.
pub(crate) fn ue4m3(byte: u8) -> f32 {
    f32::from_le_bytes(UE4M3[usize::from(byte)])
}

/// The first of some scale bytes that stands for no value: only 0..=0x7e do.
pub(crate) fn invalid_ue4m3(bytes: &[u8]) -> Option<u8> {
    bytes.iter().copied().find(|&byte| byte > 0x7e)
}

/// The scale byte in 1..=0x7e whose value is nearest to `x`, the lower one at a midpoint; 0 where `x` is not positive.
#[inline]
pub(crate) fn nearest_ue4m3(x: f32) -> u8 {
    if x <= 0.0 || x.is_nan() {
        return 0;
    }
    // Steps are 2⁻¹⁰ below 2⁻⁷, and an eighth of the power of two above.
    if x < 2f32.powi(-7) {
        return (x * 1024.0 - 0.5).ceil().max(1.0) as u8;
    }
    // Half a step is bit 19; what carries out of the mantissa raises the exponent.
    let rounded = (x.to_bits() + (1 << 19) - 1) >> 20;
    (rounded - (119 << 3)).min(0x7e) as u8
}

/// `q` with the signs of one sign byte: bit j negates element j.
pub(crate) fn signed<const N: usize>(point: &[u8; N], signs: u8) -> [i8; N] {
    std::array::from_fn(|j| {
        let v = point[j] as i8;
        if signs >> j & 1 == 1 { -v } else { v }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over the bytes of a table.
    fn digest(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn tables_are_the_published_ones() {
        let found = [
            digest(IQ2_XXS.as_flattened()),
            digest(IQ2_XS.as_flattened()),
            digest(IQ2_S.as_flattened()),
            digest(IQ3_XXS.as_flattened()),
            digest(IQ3_S.as_flattened()),
            digest(bytemuck::cast_slice(&IQ4_NL)),
            digest(bytemuck::cast_slice(&E2M1)),
        ];
        let want = [
            13_496_971_585_842_343_566,
            14_533_659_576_766_106_045,
            1_314_731_376_573_295_504,
            16_115_529_300_414_911_957,
            18_029_881_884_396_505_129,
            386_472_645_676_896_117,
            4_543_635_082_058_817_205,
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn sign_bytes_keep_their_seven_bits_and_an_even_count() {
        for (s, &byte) in SIGNS.iter().enumerate() {
            assert_eq!(usize::from(byte & 127), s);
            assert_eq!(byte.count_ones() % 2, 0);
        }
    }

    #[test]
    fn the_nearest_scale_byte_is_the_lower_one_at_a_midpoint() {
        assert_eq!(
            (
                nearest_ue4m3(0.0),
                nearest_ue4m3(-1.0),
                nearest_ue4m3(f32::NAN)
            ),
            (0, 0, 0)
        );
        assert_eq!((nearest_ue4m3(1e-30), nearest_ue4m3(1e30)), (1, 0x7e));
        for byte in 1..0x7e {
            let (here, next) = (ue4m3(byte), ue4m3(byte + 1));
            assert_eq!(nearest_ue4m3(here), byte);
            assert_eq!(nearest_ue4m3((here + next) / 2.0), byte);
            assert_eq!(nearest_ue4m3(((here + next) / 2.0).next_up()), byte + 1);
            assert_eq!(nearest_ue4m3(((here + next) / 2.0).next_down()), byte);
        }
    }

    #[test]
    fn scale_bytes_follow_their_formula() {
        for b in 0..=255u8 {
            let (e, m) = (i32::from(b >> 3), f32::from(b & 7));
            let want = match b {
                0x7f.. => 0.0,
                0..8 => m * 2f32.powi(-10),
                _ => (8.0 + m) * 2f32.powi(e - 11),
            };
            assert_eq!(ue4m3(b), want, "byte {b:#04x}");
        }
    }
}
