//! 32- and 64-bit integers and bits.

use super::{Body, Row, row, words};
use crate::exec::Lanes;

fn s24(x: u32) -> i64 {
    i64::from((x << 8) as i32 >> 8)
}

fn u24(x: u32) -> u32 {
    x & 0xff_ffff
}

fn bfe_unsigned(x: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    (x >> (offset & 31)) & ((1 << width) - 1)
}

fn bfe_signed(x: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    if width == 0 {
        return 0;
    }
    let field = ((x as i32) >> (offset & 31)) as u32;
    ((field << (32 - width)) as i32 >> (32 - width)) as u32
}

fn leading_sign_bits(x: u32) -> u32 {
    let same = (x ^ ((x as i32) >> 31) as u32).leading_zeros();
    if same == 32 { u32::MAX } else { same }
}

fn none_is_minus_one(count: u32) -> u32 {
    if count == 32 { u32::MAX } else { count }
}

fn median<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high.min(low.max(c))
}

fn signed(f: impl Fn(i32, i32) -> i32, a: u32, b: u32) -> u32 {
    f(a as i32, b as i32) as u32
}

fn median_signed(a: u32, b: u32, c: u32) -> u32 {
    median(a as i32, b as i32, c as i32) as u32
}

fn saturate_unsigned(sum: u64) -> u32 {
    u32::try_from(sum).unwrap_or(u32::MAX)
}

/// `v_mbcnt_lo`: set bits of `mask` below the lane, plus a base.
fn below(mask: &Lanes, base: &Lanes, d: &mut Lanes) {
    for l in 0..32 {
        d[l] = (mask[l] & ((1 << l) - 1))
            .count_ones()
            .wrapping_add(base[l]);
    }
}

/// The rows. Names of saturating forms end in `.clamp`.
pub(super) const ROWS: &[Row] = &[
    row!("mov_b32", B32, [B32], Body::Copy),
    row!("not_b32", B32, [B32], words!(|a| !a)),
    row!("bfrev_b32", B32, [B32], words!(|a| a.reverse_bits())),
    row!(
        "clz_i32_u32",
        B32,
        [B32],
        words!(|a| none_is_minus_one(a.leading_zeros()))
    ),
    row!(
        "ctz_i32_b32",
        B32,
        [B32],
        words!(|a| none_is_minus_one(a.trailing_zeros()))
    ),
    row!("cls_i32", B32, [B32], words!(|a| leading_sign_bits(a))),
    row!(
        "add_nc_u32",
        B32,
        [B32, B32],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "add_nc_u32.clamp",
        B32,
        [B32, B32],
        words!(|a, b| a.saturating_add(b))
    ),
    row!(
        "sub_nc_u32",
        B32,
        [B32, B32],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "sub_nc_u32.clamp",
        B32,
        [B32, B32],
        words!(|a, b| a.saturating_sub(b))
    ),
    row!(
        "subrev_nc_u32",
        B32,
        [B32, B32],
        words!(|a, b| b.wrapping_sub(a))
    ),
    row!(
        "subrev_nc_u32.clamp",
        B32,
        [B32, B32],
        words!(|a, b| b.saturating_sub(a))
    ),
    row!(
        "add_nc_i32",
        B32,
        [B32, B32],
        words!(|a, b| a.wrapping_add(b))
    ),
    row!(
        "add_nc_i32.clamp",
        B32,
        [B32, B32],
        words!(|a, b| signed(i32::saturating_add, a, b))
    ),
    row!(
        "sub_nc_i32",
        B32,
        [B32, B32],
        words!(|a, b| a.wrapping_sub(b))
    ),
    row!(
        "sub_nc_i32.clamp",
        B32,
        [B32, B32],
        words!(|a, b| signed(i32::saturating_sub, a, b))
    ),
    row!(
        "mul_lo_u32",
        B32,
        [B32, B32],
        words!(|a, b| a.wrapping_mul(b))
    ),
    row!(
        "mul_hi_u32",
        B32,
        [B32, B32],
        words!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    ),
    row!(
        "mul_hi_i32",
        B32,
        [B32, B32],
        words!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32)
    ),
    row!(
        "mul_i32_i24",
        B32,
        [B32, B32],
        words!(|a, b| (s24(a) * s24(b)) as u32)
    ),
    row!(
        "mul_hi_i32_i24",
        B32,
        [B32, B32],
        words!(|a, b| ((s24(a) * s24(b)) >> 32) as u32)
    ),
    row!(
        "mul_u32_u24",
        B32,
        [B32, B32],
        words!(|a, b| u24(a).wrapping_mul(u24(b)))
    ),
    row!(
        "mul_hi_u32_u24",
        B32,
        [B32, B32],
        words!(|a, b| ((u64::from(u24(a)) * u64::from(u24(b))) >> 32) as u32)
    ),
    row!(
        "mad_i32_i24",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| ((s24(a) * s24(b)) as u32).wrapping_add(c))
    ),
    row!(
        "mad_i32_i24.clamp",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (s24(a) * s24(b) + i64::from(c as i32))
            .clamp(i32::MIN.into(), i32::MAX.into()) as u32)
    ),
    row!(
        "mad_u32_u24",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| u24(a).wrapping_mul(u24(b)).wrapping_add(c))
    ),
    row!(
        "mad_u32_u24.clamp",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| saturate_unsigned(u64::from(u24(a)) * u64::from(u24(b)) + u64::from(c)))
    ),
    row!(
        "min_i32",
        B32,
        [B32, B32],
        words!(|a, b| signed(i32::min, a, b))
    ),
    row!(
        "max_i32",
        B32,
        [B32, B32],
        words!(|a, b| signed(i32::max, a, b))
    ),
    row!("min_u32", B32, [B32, B32], words!(|a, b| a.min(b))),
    row!("max_u32", B32, [B32, B32], words!(|a, b| a.max(b))),
    row!(
        "min3_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a as i32).min(b as i32).min(c as i32) as u32)
    ),
    row!(
        "max3_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a as i32).max(b as i32).max(c as i32) as u32)
    ),
    row!(
        "med3_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| median_signed(a, b, c))
    ),
    row!(
        "min3_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.min(b).min(c))
    ),
    row!(
        "max3_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.max(b).max(c))
    ),
    row!(
        "med3_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| median(a, b, c))
    ),
    row!(
        "minmax_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a as i32).min(b as i32).max(c as i32) as u32)
    ),
    row!(
        "maxmin_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a as i32).max(b as i32).min(c as i32) as u32)
    ),
    row!(
        "minmax_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.min(b).max(c))
    ),
    row!(
        "maxmin_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.max(b).min(c))
    ),
    row!("lshlrev_b32", B32, [B32, B32], words!(|a, b| b << (a & 31))),
    row!("lshrrev_b32", B32, [B32, B32], words!(|a, b| b >> (a & 31))),
    row!(
        "ashrrev_i32",
        B32,
        [B32, B32],
        words!(|a, b| (b as i32 >> (a & 31)) as u32)
    ),
    row!("and_b32", B32, [B32, B32], words!(|a, b| a & b)),
    row!("or_b32", B32, [B32, B32], words!(|a, b| a | b)),
    row!("xor_b32", B32, [B32, B32], words!(|a, b| a ^ b)),
    row!("xnor_b32", B32, [B32, B32], words!(|a, b| !(a ^ b))),
    row!(
        "and_or_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a & b | c)
    ),
    row!("or3_b32", B32, [B32, B32, B32], words!(|a, b, c| a | b | c)),
    row!(
        "xor3_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a ^ b ^ c)
    ),
    row!(
        "xad_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a ^ b).wrapping_add(c))
    ),
    row!(
        "add3_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.wrapping_add(b).wrapping_add(c))
    ),
    row!(
        "lshl_add_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| (a << (b & 31)).wrapping_add(c))
    ),
    row!(
        "add_lshl_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a.wrapping_add(b) << (c & 31))
    ),
    row!(
        "lshl_or_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a << (b & 31) | c)
    ),
    row!(
        "bfe_u32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| bfe_unsigned(a, b, c))
    ),
    row!(
        "bfe_i32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| bfe_signed(a, b, c))
    ),
    row!(
        "bfi_b32",
        B32,
        [B32, B32, B32],
        words!(|a, b, c| a & b | !a & c)
    ),
    row!(
        "bfm_b32",
        B32,
        [B32, B32],
        words!(|a, b| ((1 << (a & 31)) - 1) << (b & 31))
    ),
    row!(
        "bcnt_u32_b32",
        B32,
        [B32, B32],
        words!(|a, b| a.count_ones().wrapping_add(b))
    ),
    row!("mbcnt_lo_u32_b32", B32, [B32, B32], Body::L2(below)),
    // In a wave of 32 lanes no lane has another below it in the upper half.
    row!("mbcnt_hi_u32_b32", B32, [B32, B32], words!(|_a, b| b)),
    row!(
        "lshlrev_b64",
        B64,
        [B32, B64],
        Body::S2(|a, b| b << (a & 63))
    ),
    row!(
        "lshrrev_b64",
        B64,
        [B32, B64],
        Body::S2(|a, b| b >> (a & 63))
    ),
    row!(
        "ashrrev_i64",
        I64,
        [B32, I64],
        Body::S2(|a, b| (b as i64 >> (a & 63)) as u64)
    ),
];
