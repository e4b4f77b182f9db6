//! Bytes within words: selection, alignment, averages, sums of differences.

use super::{Row, row, words};

/// `(hi:lo) >> shift`, the low word.
fn align(hi: u32, lo: u32, shift: u32) -> u32 {
    ((u64::from(hi) << 32 | u64::from(lo)) >> shift) as u32
}

/// `v_perm_b32`: each byte of `sel` picks a byte of `hi:lo`, a sign or a constant.
fn perm(hi: u32, lo: u32, sel: u32) -> u32 {
    let data = u64::from(hi) << 32 | u64::from(lo);
    (0..4).fold(0, |out, k| {
        let byte = match sel >> (8 * k) & 255 {
            s @ 0..=7 => (data >> (8 * s)) as u32 & 255,
            s @ 8..=11 => ((data >> (16 * (s - 8) + 15)) as u32 & 1) * 255,
            12 => 0,
            _ => 255,
        };
        out | byte << (8 * k)
    })
}

fn bytes(x: u32) -> [u32; 4] {
    x.to_le_bytes().map(u32::from)
}

fn sad_u8(a: u32, b: u32) -> u32 {
    let pairs = bytes(a).into_iter().zip(bytes(b));
    pairs.map(|(x, y)| x.abs_diff(y)).sum()
}

fn msad_u8(a: u32, b: u32) -> u32 {
    let pairs = bytes(a).into_iter().zip(bytes(b));
    pairs
        .filter(|&(_, y)| y != 0)
        .map(|(x, y)| x.abs_diff(y))
        .sum()
}

fn sad_u16(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16)
}

fn lerp(a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(0, |out, k| {
        let at = 8 * k;
        let sum = (a >> at & 255) + (b >> at & 255) + (c >> at & 1);
        out | (sum >> 1 & 255) << at
    })
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!(
        "lerp_u8",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| lerp(a, b, c))
    ),
    row!(
        "sad_u8",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| sad_u8(a, b).wrapping_add(c))
    ),
    row!(
        "sad_hi_u8",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (sad_u8(a, b) << 16).wrapping_add(c))
    ),
    row!(
        "msad_u8",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| msad_u8(a, b).wrapping_add(c))
    ),
    row!(
        "sad_u16",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| sad_u16(a, b).wrapping_add(c))
    ),
    row!(
        "sad_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.abs_diff(b).wrapping_add(c))
    ),
    row!(
        "perm_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| perm(a, b, c))
    ),
    row!(
        "alignbit_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| align(a, b, c & 31))
    ),
    row!(
        "alignbyte_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| align(a, b, 8 * (c & 3)))
    ),
];
