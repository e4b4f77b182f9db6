//! f16 arithmetic. Sums and products of two f16 are exact enough in f32 that rounding twice is rounding once.

use super::{Body, QUIET_NAN, Row, f32_bits, halves, maximum, minimum, row, words};
use crate::exec::Lanes;
use crate::float16::{self, from_f32, from_f64, to_f32};

/// `a · b + c`, rounded once.
pub(super) fn fma(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes) {
    for l in 0..32 {
        let (x, y, z) = (to_f32(a[l]), to_f32(b[l]), to_f32(c[l]));
        let r = float16::fma(x, y, z);
        let nan = x.is_nan() || y.is_nan() || z.is_nan();
        d[l] = if r & 0x7fff > 0x7c00 && !nan {
            0x7e00
        } else {
            r
        };
    }
}

/// A transcendental function in f64, rounded once.
fn special(h: u32, f: impl Fn(f64) -> f64) -> u32 {
    let x = to_f32(h);
    let r = f(x.into());
    if r.is_nan() {
        return from_f32(f32::from_bits(if x.is_nan() {
            x.to_bits()
        } else {
            QUIET_NAN
        }));
    }
    from_f64(r)
}

fn ldexp(h: u32, e: u32) -> u32 {
    let e = i32::from(e as u16 as i16).clamp(-100, 100);
    from_f64(f64::from(to_f32(h)) * 2f64.powi(e))
}

fn fract(x: f32) -> f32 {
    if x.is_infinite() {
        return f32::NAN;
    }
    if x.is_nan() {
        return x;
    }
    // The largest f16 below 1.
    (x - x.floor()).min(1.0 - 2f32.powi(-11))
}

fn frexp(h: u32) -> (f32, i32) {
    let x = to_f32(h);
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Every f16, denormals included, is a normal f32.
    let e = (x.to_bits() >> 23 & 255) as i32 - 126;
    (x * 2f32.powi(-e), e)
}

fn div_fixup(q: u32, d: u32, n: u32) -> u32 {
    let sign = (d ^ n) & 0x8000;
    let (df, nf) = (to_f32(d), to_f32(n));
    if nf.is_nan() {
        n | 0x200
    } else if df.is_nan() {
        d | 0x200
    } else if (df == 0.0 && nf == 0.0) || (df.is_infinite() && nf.is_infinite()) {
        0xfe00
    } else if df == 0.0 || nf.is_infinite() {
        sign | 0x7c00
    } else if df.is_infinite() || nf == 0.0 {
        sign
    } else {
        sign | q & 0x7fff
    }
}

/// As `v_dot2_f16_f16`: each step rounded to f16.
fn dot2(a: u32, b: u32, c: u32) -> u32 {
    let (a0, a1, b0, b1) = (
        to_f32(a & 0xffff),
        to_f32(a >> 16),
        to_f32(b & 0xffff),
        to_f32(b >> 16),
    );
    let round = |x: f32| to_f32(from_f32(x));
    let c = to_f32(c & 0xffff);
    let nan = [a0, a1, b0, b1, c].iter().any(|x| x.is_nan());
    let r = round(round(c + round(a0 * b0)) + round(a1 * b1));
    from_f32(f32::from_bits(f32_bits(r, nan)))
}

fn sine(turns: f64) -> f64 {
    ((turns - turns.floor()) * std::f64::consts::TAU).sin()
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("add_f16", F16, [F16, F16], halves!(|a, b| a + b)),
    row!("sub_f16", F16, [F16, F16], halves!(|a, b| a - b)),
    row!("subrev_f16", F16, [F16, F16], halves!(|a, b| b - a)),
    row!("mul_f16", F16, [F16, F16], halves!(|a, b| a * b)),
    row!("fma_f16", F16, [F16, F16, F16], Body::L3(fma)),
    row!("fmac_f16", F16, [F16, F16, F16], Body::L3(fma)),
    row!("fmaak_f16", F16, [F16, F16, F16], Body::L3(fma)),
    row!("fmamk_f16", F16, [F16, F16, F16], Body::L3(fma)),
    row!("min_f16", F16, [F16, F16], halves!(|a, b| minimum(a, b))),
    row!("max_f16", F16, [F16, F16], halves!(|a, b| maximum(a, b))),
    row!(
        "min3_f16",
        F16,
        [F16, F16, F16],
        halves!(|a, b, c| minimum(minimum(a, b), c))
    ),
    row!(
        "max3_f16",
        F16,
        [F16, F16, F16],
        halves!(|a, b, c| maximum(maximum(a, b), c))
    ),
    row!(
        "med3_f16",
        F16,
        [F16, F16, F16],
        halves!(|a, b, c| super::f32::median(a, b, c))
    ),
    row!(
        "minmax_f16",
        F16,
        [F16, F16, F16],
        halves!(|a, b, c| maximum(minimum(a, b), c))
    ),
    row!(
        "maxmin_f16",
        F16,
        [F16, F16, F16],
        halves!(|a, b, c| minimum(maximum(a, b), c))
    ),
    row!("fract_f16", F16, [F16], halves!(|a| fract(a))),
    row!("trunc_f16", F16, [F16], halves!(|a| a.trunc())),
    row!("ceil_f16", F16, [F16], halves!(|a| a.ceil())),
    row!("floor_f16", F16, [F16], halves!(|a| a.floor())),
    row!("rndne_f16", F16, [F16], halves!(|a| a.round_ties_even())),
    row!("exp_f16", F16, [F16], words!(|a| special(a, f64::exp2))),
    row!("log_f16", F16, [F16], words!(|a| special(a, f64::log2))),
    row!("rcp_f16", F16, [F16], words!(|a| special(a, |x| 1.0 / x))),
    row!(
        "rsq_f16",
        F16,
        [F16],
        words!(|a| special(a, |x| 1.0 / x.sqrt()))
    ),
    row!("sqrt_f16", F16, [F16], words!(|a| special(a, f64::sqrt))),
    row!("sin_f16", F16, [F16], words!(|a| special(a, sine))),
    row!(
        "cos_f16",
        F16,
        [F16],
        words!(|a| special(a, |x| sine(x + 0.25)))
    ),
    row!("ldexp_f16", F16, [F16, B16], words!(|a, b| ldexp(a, b))),
    row!(
        "frexp_mant_f16",
        F16,
        [F16],
        halves!(|a| frexp(from_f32(a)).0)
    ),
    row!(
        "frexp_exp_i16_f16",
        B16,
        [F16],
        words!(|a| frexp(a).1 as u32)
    ),
    row!(
        "div_fixup_f16",
        F16,
        [F16, F16, F16],
        words!(|a, b, c| div_fixup(a, b, c))
    ),
    row!(
        "dot2_f16_f16",
        F16,
        [B32, B32, F16],
        words!(|a, b, c| dot2(a, b, c))
    ),
];
