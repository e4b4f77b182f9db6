//! Integer dot products within a lane.

use super::{Body, Row, row};
use crate::exec::Lanes;
use crate::simd;

/// Eight 4-bit fields, signed or not.
fn nibbles(x: u32, signed: bool) -> [i32; 8] {
    std::array::from_fn(|k| {
        let top = (x << (28 - 4 * k)) as i32;
        if signed {
            top >> 28
        } else {
            ((top as u32) >> 28) as i32
        }
    })
}

fn quarters(x: u32, signed: bool) -> [i32; 4] {
    x.to_le_bytes().map(|b| {
        if signed {
            i32::from(b as i8)
        } else {
            i32::from(b)
        }
    })
}

fn sum_into<const N: usize>(a: [i32; N], b: [i32; N], c: u32, clamp: bool) -> u32 {
    let sum: i64 = a.into_iter().zip(b).map(|(x, y)| i64::from(x * y)).sum();
    let total = i64::from(c as i32) + sum;
    if clamp {
        total.clamp(i32::MIN.into(), i32::MAX.into()) as u32
    } else {
        total as u32
    }
}

/// `v_dot4_i32_iu8` for one choice of signedness and saturation.
fn dot4<const A: bool, const B: bool, const CLAMP: bool>(
    a: &Lanes,
    b: &Lanes,
    c: &Lanes,
    d: &mut Lanes,
) {
    for l in 0..32 {
        d[l] = sum_into(quarters(a[l], A), quarters(b[l], B), c[l], CLAMP);
    }
}

/// `v_dot8_i32_iu4`, as [`dot4`].
fn dot8<const A: bool, const B: bool, const CLAMP: bool>(
    a: &Lanes,
    b: &Lanes,
    c: &Lanes,
    d: &mut Lanes,
) {
    for l in 0..32 {
        d[l] = sum_into(nibbles(a[l], A), nibbles(b[l], B), c[l], CLAMP);
    }
}

/// The rows. The names say which factor is signed, then whether the sum saturates.
pub(super) const ROWS: &[Row] = &[
    row!(
        "dot4_i32_iu8:ss",
        B32,
        [B32, B32, B32],
        Body::L3(simd::dot4_signed)
    ),
    row!(
        "dot4_i32_iu8:su",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<true, false, false>)
    ),
    row!(
        "dot4_i32_iu8:us",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<false, true, false>)
    ),
    row!(
        "dot4_i32_iu8:uu",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<false, false, false>)
    ),
    row!(
        "dot4_i32_iu8:ss.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<true, true, true>)
    ),
    row!(
        "dot4_i32_iu8:su.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<true, false, true>)
    ),
    row!(
        "dot4_i32_iu8:us.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<false, true, true>)
    ),
    row!(
        "dot4_i32_iu8:uu.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<false, false, true>)
    ),
    row!(
        "dot8_i32_iu4:ss",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<true, true, false>)
    ),
    row!(
        "dot8_i32_iu4:su",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<true, false, false>)
    ),
    row!(
        "dot8_i32_iu4:us",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<false, true, false>)
    ),
    row!(
        "dot8_i32_iu4:uu",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<false, false, false>)
    ),
    row!(
        "dot8_i32_iu4:ss.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<true, true, true>)
    ),
    row!(
        "dot8_i32_iu4:su.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<true, false, true>)
    ),
    row!(
        "dot8_i32_iu4:us.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<false, true, true>)
    ),
    row!(
        "dot8_i32_iu4:uu.clamp",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<false, false, true>)
    ),
    row!(
        "dot4_u32_u8",
        B32,
        [B32, B32, B32],
        Body::L3(dot4::<false, false, false>)
    ),
    row!(
        "dot8_u32_u4",
        B32,
        [B32, B32, B32],
        Body::L3(dot8::<false, false, false>)
    ),
];
