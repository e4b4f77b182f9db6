//! Conversions. Float to integer goes toward zero and saturates; NaN gives 0.

use super::{Body, Row, row, words};
use crate::float16::{from_f32, from_f32_toward_zero, to_f32};

fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

/// `v_cvt_off_f32_i4`: a signed 4-bit integer in sixteenths.
fn offset(x: u32) -> u32 {
    (((x << 28) as i32 >> 28) as f32 / 16.0).to_bits()
}

fn byte(x: u32, k: u32) -> u32 {
    ((x >> (8 * k) & 255) as f32).to_bits()
}

/// Round, then clamp to the integer's range; NaN gives 0.
fn scaled(x: f64, scale: f64, low: f64) -> u32 {
    (x.clamp(low, 1.0) * scale).round_ties_even() as i32 as u32 & 0xffff
}

fn snorm(x: f32) -> u32 {
    if x.is_nan() {
        0
    } else {
        scaled(x.into(), 32767.0, -1.0)
    }
}

fn unorm(x: f32) -> u32 {
    if x.is_nan() {
        0
    } else {
        scaled(x.into(), 65535.0, 0.0)
    }
}

fn i16_of(x: f32) -> u32 {
    u32::from(x as i16 as u16)
}

fn u16_of(x: f32) -> u32 {
    u32::from(x as u16)
}

fn pack_u8(x: f32, at: u32, into: u32) -> u32 {
    let shift = 8 * (at & 3);
    into & !(0xff << shift) | u32::from(x.round_ties_even() as u8) << shift
}

fn sat_u8(x: u32) -> u32 {
    i32::from(x as u16 as i16).clamp(0, 255) as u32
}

fn pack_i16(a: u32, b: u32) -> u32 {
    let one = |x: u32| (x as i32).clamp(i16::MIN.into(), i16::MAX.into()) as u32 & 0xffff;
    one(a) | one(b) << 16
}

fn pack_u16(a: u32, b: u32) -> u32 {
    a.min(0xffff) | b.min(0xffff) << 16
}

fn pair(low: u32, high: u32) -> u32 {
    low & 0xffff | high << 16
}

fn wide(x: u64) -> f64 {
    f64::from_bits(x)
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!(
        "cvt_f32_i32",
        F32,
        [B32],
        words!(|a| (a as i32 as f32).to_bits())
    ),
    row!("cvt_f32_u32", F32, [B32], words!(|a| (a as f32).to_bits())),
    row!("cvt_i32_f32", B32, [F32], words!(|a| f(a) as i32 as u32)),
    row!("cvt_u32_f32", B32, [F32], words!(|a| f(a) as u32)),
    row!(
        "cvt_nearest_i32_f32",
        B32,
        [F32],
        words!(|a| (f(a) + 0.5).floor() as i32 as u32)
    ),
    row!(
        "cvt_floor_i32_f32",
        B32,
        [F32],
        words!(|a| f(a).floor() as i32 as u32)
    ),
    row!("cvt_f16_f32", F16, [F32], words!(|a| from_f32(f(a)))),
    row!("cvt_f32_f16", F32, [F16], words!(|a| to_f32(a).to_bits())),
    row!("cvt_off_f32_i4", F32, [B32], words!(|a| offset(a))),
    row!("cvt_f32_ubyte0", F32, [B32], words!(|a| byte(a, 0))),
    row!("cvt_f32_ubyte1", F32, [B32], words!(|a| byte(a, 1))),
    row!("cvt_f32_ubyte2", F32, [B32], words!(|a| byte(a, 2))),
    row!("cvt_f32_ubyte3", F32, [B32], words!(|a| byte(a, 3))),
    row!("cvt_f16_u16", F16, [B16], words!(|a| from_f32(a as f32))),
    row!(
        "cvt_f16_i16",
        F16,
        [B16],
        words!(|a| from_f32(f32::from(a as u16 as i16)))
    ),
    row!("cvt_u16_f16", B16, [F16], words!(|a| u16_of(to_f32(a)))),
    row!("cvt_i16_f16", B16, [F16], words!(|a| i16_of(to_f32(a)))),
    row!(
        "cvt_i32_i16",
        B32,
        [B16],
        words!(|a| i32::from(a as u16 as i16) as u32)
    ),
    row!("cvt_u32_u16", B32, [B16], words!(|a| a)),
    row!("cvt_norm_i16_f16", B16, [F16], words!(|a| snorm(to_f32(a)))),
    row!("cvt_norm_u16_f16", B16, [F16], words!(|a| unorm(to_f32(a)))),
    row!(
        "cvt_pk_rtz_f16_f32",
        B32,
        [F32, F32],
        words!(|a, b| pair(from_f32_toward_zero(f(a)), from_f32_toward_zero(f(b))))
    ),
    row!(
        "cvt_pk_i16_f32",
        B32,
        [F32, F32],
        words!(|a, b| pair(i16_of(f(a)), i16_of(f(b))))
    ),
    row!(
        "cvt_pk_u16_f32",
        B32,
        [F32, F32],
        words!(|a, b| pair(u16_of(f(a)), u16_of(f(b))))
    ),
    row!(
        "cvt_pk_norm_i16_f32",
        B32,
        [F32, F32],
        words!(|a, b| pair(snorm(f(a)), snorm(f(b))))
    ),
    row!(
        "cvt_pk_norm_u16_f32",
        B32,
        [F32, F32],
        words!(|a, b| pair(unorm(f(a)), unorm(f(b))))
    ),
    row!(
        "cvt_pk_norm_i16_f16",
        B32,
        [F16, F16],
        words!(|a, b| pair(snorm(to_f32(a)), snorm(to_f32(b))))
    ),
    row!(
        "cvt_pk_norm_u16_f16",
        B32,
        [F16, F16],
        words!(|a, b| pair(unorm(to_f32(a)), unorm(to_f32(b))))
    ),
    row!(
        "cvt_pk_u16_u32",
        B32,
        [B32, B32],
        words!(|a, b| pack_u16(a, b))
    ),
    row!(
        "cvt_pk_i16_i32",
        B32,
        [B32, B32],
        words!(|a, b| pack_i16(a, b))
    ),
    row!(
        "cvt_pk_u8_f32",
        B32,
        [F32, B32, B32],
        words!(|a, b, c| pack_u8(f(a), b, c))
    ),
    row!(
        "sat_pk_u8_i16",
        B16,
        [B32],
        words!(|a| sat_u8(a) | sat_u8(a >> 16) << 8)
    ),
    row!(
        "cvt_f64_f32",
        F64,
        [F32],
        Body::S1(|a| f64::from(f(a as u32)).to_bits())
    ),
    row!(
        "cvt_f32_f64",
        F32,
        [F64],
        Body::S1(|a| (wide(a) as f32).to_bits().into())
    ),
    row!(
        "cvt_f64_i32",
        F64,
        [B32],
        Body::S1(|a| f64::from(a as u32 as i32).to_bits())
    ),
    row!(
        "cvt_f64_u32",
        F64,
        [B32],
        Body::S1(|a| f64::from(a as u32).to_bits())
    ),
    row!(
        "cvt_i32_f64",
        B32,
        [F64],
        Body::S1(|a| (wide(a) as i32 as u32).into())
    ),
    row!(
        "cvt_u32_f64",
        B32,
        [F64],
        Body::S1(|a| (wide(a) as u32).into())
    ),
];
