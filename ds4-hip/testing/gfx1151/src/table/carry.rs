//! Instructions that give a bit a lane besides their result, or take one: carries, selections, scaled divisions.

use super::{Body, Row, f32::div_scale, f64, row, words};
use crate::exec::Lanes;

type Step = fn(u32, u32, u32) -> (u32, bool);

#[inline(always)]
fn each(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes, step: Step) -> u32 {
    let mut flags = 0;
    for l in 0..32 {
        let (value, flag) = step(a[l], b[l], c[l]);
        d[l] = value;
        flags |= u32::from(flag) << l;
    }
    flags
}

#[inline(always)]
fn add(a: u32, b: u32, carry: u32) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

#[inline(always)]
fn sub(a: u32, b: u32, borrow: u32) -> (u32, bool) {
    let value = a.wrapping_sub(b).wrapping_sub(borrow);
    (value, u64::from(b) + u64::from(borrow) > u64::from(a))
}

macro_rules! flag {
    ($step:expr) => {
        Body::Flag(|a, b, c, d| each(a, b, c, d, $step))
    };
}

fn scale(x: u32, divisor: u32, dividend: u32) -> (u32, bool) {
    div_scale(
        f32::from_bits(x),
        f32::from_bits(divisor),
        f32::from_bits(dividend),
    )
}

fn scale_wide(x: u64, divisor: u64, dividend: u64) -> (u64, bool) {
    let [x, divisor, dividend] = [x, divisor, dividend].map(::core::primitive::f64::from_bits);
    f64::div_scale(x, divisor, dividend)
}

fn mad_unsigned(a: u64, b: u64, c: u64) -> (u64, bool) {
    // Two words: the product fits 64 bits, the sum may not.
    (a * b).overflowing_add(c)
}

fn mad_signed(a: u64, b: u64, c: u64) -> (u64, bool) {
    let product = i64::from(a as u32 as i32) * i64::from(b as u32 as i32);
    let sum = i128::from(product) + i128::from(c as i64);
    (sum as u64, sum >> 64 & 1 != 0)
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("cndmask_b32", B32, [B32, B32, Mask], Body::Select),
    row!(
        "cndmask_b16",
        B16,
        [B16, B16, Mask],
        words!(|a, b, m| if m != 0 { b } else { a })
    ),
    row!("add_co_u32", B32, [B32, B32], flag!(add)),
    row!("sub_co_u32", B32, [B32, B32], flag!(sub)),
    row!(
        "subrev_co_u32",
        B32,
        [B32, B32],
        flag!(|a, b, c| sub(b, a, c))
    ),
    row!("add_co_ci_u32", B32, [B32, B32, Mask], flag!(add)),
    row!("sub_co_ci_u32", B32, [B32, B32, Mask], flag!(sub)),
    row!(
        "subrev_co_ci_u32",
        B32,
        [B32, B32, Mask],
        flag!(|a, b, c| sub(b, a, c))
    ),
    row!("div_scale_f32", F32, [F32, F32, F32], flag!(scale)),
    row!(
        "div_scale_f64",
        F64,
        [F64, F64, F64],
        Body::FlagOne(scale_wide)
    ),
    row!("div_fmas_f32", F32, [F32, F32, F32], Body::Fmas32),
    row!("div_fmas_f64", F64, [F64, F64, F64], Body::Fmas64),
    row!("mad_u64_u32", B64, [B32, B32, B64], Body::Mad(mad_unsigned)),
    row!("mad_i64_i32", I64, [B32, B32, I64], Body::Mad(mad_signed)),
];
