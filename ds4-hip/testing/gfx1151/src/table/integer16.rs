//! 16-bit integers, alone and with 32-bit results. Operands come in the low half of a word, the rest zero.

use super::{Row, row, words};

fn signed(x: u32) -> i32 {
    i32::from(x as u16 as i16)
}

fn clamp_signed(x: i32) -> u32 {
    x.clamp(i16::MIN.into(), i16::MAX.into()) as u32
}

fn clamp_unsigned(x: i64) -> u32 {
    x.clamp(0, u16::MAX.into()) as u32
}

fn median<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high.min(low.max(c))
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("mov_b16", B16, [B16], words!(|a| a)),
    row!("not_b16", B16, [B16], words!(|a| !a)),
    row!("and_b16", B16, [B16, B16], words!(|a, b| a & b)),
    row!("or_b16", B16, [B16, B16], words!(|a, b| a | b)),
    row!("xor_b16", B16, [B16, B16], words!(|a, b| a ^ b)),
    row!(
        "add_nc_u16",
        B16,
        [B16, B16],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "add_nc_u16.clamp",
        B16,
        [B16, B16],
        words!(|a, b| clamp_unsigned(i64::from(a) + i64::from(b)))
    ),
    row!(
        "sub_nc_u16",
        B16,
        [B16, B16],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "sub_nc_u16.clamp",
        B16,
        [B16, B16],
        words!(|a, b| a.saturating_sub(b))
    ),
    row!(
        "add_nc_i16",
        B16,
        [B16, B16],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "add_nc_i16.clamp",
        B16,
        [B16, B16],
        words!(|a, b| clamp_signed(signed(a) + signed(b)))
    ),
    row!(
        "sub_nc_i16",
        B16,
        [B16, B16],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "sub_nc_i16.clamp",
        B16,
        [B16, B16],
        words!(|a, b| clamp_signed(signed(a) - signed(b)))
    ),
    row!(
        "mul_lo_u16",
        B16,
        [B16, B16],
        words!(|a, b| a.wrapping_mul(b))
    ),
    row!(
        "mad_u16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c))
    ),
    row!(
        "mad_i16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| a.wrapping_mul(b).wrapping_add(c))
    ),
    row!("min_u16", B16, [B16, B16], words!(|a, b| a.min(b))),
    row!("max_u16", B16, [B16, B16], words!(|a, b| a.max(b))),
    row!(
        "min_i16",
        B16,
        [B16, B16],
        words!(|a, b| signed(a).min(signed(b)) as u32)
    ),
    row!(
        "max_i16",
        B16,
        [B16, B16],
        words!(|a, b| signed(a).max(signed(b)) as u32)
    ),
    row!(
        "min3_u16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| a.min(b).min(c))
    ),
    row!(
        "max3_u16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| a.max(b).max(c))
    ),
    row!(
        "med3_u16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| median(a, b, c))
    ),
    row!(
        "min3_i16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| signed(a).min(signed(b)).min(signed(c)) as u32)
    ),
    row!(
        "max3_i16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| signed(a).max(signed(b)).max(signed(c)) as u32)
    ),
    row!(
        "med3_i16",
        B16,
        [B16, B16, B16],
        words!(|a, b, c| median(signed(a), signed(b), signed(c)) as u32)
    ),
    row!("lshlrev_b16", B16, [B16, B16], words!(|a, b| b << (a & 15))),
    row!("lshrrev_b16", B16, [B16, B16], words!(|a, b| b >> (a & 15))),
    row!(
        "ashrrev_i16",
        B16,
        [B16, B16],
        words!(|a, b| (signed(b) >> (a & 15)) as u32)
    ),
    row!(
        "mad_u32_u16",
        B32,
        [B16, B16, B32],
        words!(|a, b, c| (a * b).wrapping_add(c))
    ),
    row!(
        "mad_i32_i16",
        B32,
        [B16, B16, B32],
        words!(|a, b, c| ((signed(a) * signed(b)) as u32).wrapping_add(c))
    ),
    row!("pack_b32_f16", B32, [F16, F16], words!(|a, b| a | b << 16)),
];
