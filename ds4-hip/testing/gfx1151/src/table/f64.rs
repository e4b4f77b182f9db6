//! f64 arithmetic.

use super::{Body, Row, doubles, f64_bits, row};

fn is_signaling(x: f64) -> bool {
    x.is_nan() && x.to_bits() & 1 << 51 == 0
}

fn quiet(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | 1 << 51)
}

fn choose(a: f64, b: f64, better: bool) -> f64 {
    if is_signaling(a) {
        quiet(a)
    } else if is_signaling(b) {
        quiet(b)
    } else if b.is_nan() {
        a
    } else if a.is_nan() || !better {
        b
    } else {
        a
    }
}

fn minimum(a: f64, b: f64) -> f64 {
    choose(a, b, a < b || (a == b && a.is_sign_negative()))
}

fn maximum(a: f64, b: f64) -> f64 {
    choose(a, b, a > b || (a == b && a.is_sign_positive()))
}

/// `x · 2^e`, rounded once.
pub(crate) fn ldexp(x: f64, e: i32) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let field = exponent(x);
    let mantissa = if x.is_subnormal() {
        x * 2f64.powi(1 - field)
    } else {
        x
    };
    let target = i64::from(field) + i64::from(e);
    if target > 2046 {
        return f64::INFINITY.copysign(x);
    }
    if target < -60 {
        return 0f64.copysign(x);
    }
    // To the exponent 1 or above first, which is exact, then down into the denormals, which rounds.
    let normal = target.max(1);
    let bits = mantissa.to_bits() & !(0x7ff << 52) | (normal as u64) << 52;
    f64::from_bits(bits) * 2f64.powi((target - normal) as i32)
}

/// Biased exponent; a denormal's is as if it were normal.
fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    if x.is_subnormal() {
        return 12 - (x.to_bits() & ((1 << 52) - 1)).leading_zeros() as i32;
    }
    (x.to_bits() >> 52 & 2047) as i32
}

fn fract(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    if x.is_nan() {
        return x;
    }
    (x - x.floor()).min(1f64.next_down())
}

fn frexp_exponent(x: u64) -> u64 {
    let x = f64::from_bits(x);
    if !x.is_finite() || x == 0.0 {
        return 0;
    }
    u64::from((exponent(x) - 1022) as u32)
}

fn frexp_mantissa(x: f64) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    ldexp(x, 1022 - exponent(x))
}

/// As `v_div_fmas_f32`, with 2^128 and 2^-128.
pub(crate) fn div_fmas(scaled: bool, a: f64, b: f64, c: f64) -> u64 {
    let r = a.mul_add(b, c);
    let nan = a.is_nan() || b.is_nan() || c.is_nan();
    if !scaled || !r.is_finite() {
        return f64_bits(r, nan);
    }
    if c.to_bits() >> 52 & 2047 > 1023 {
        return f64_bits(r * 2f64.powi(128), nan);
    }
    // What the rounding of `r` lost, from the exact product and the exact sum.
    let product = a * b;
    let rest = a.mul_add(b, -product);
    let sum = product + c;
    let back = sum - product;
    let lost = (sum - r) + ((product - (sum - back)) + (c - back) + rest);
    f64_bits(crate::float16::to_odd(r, lost) * 2f64.powi(-128), nan)
}

/// `v_div_scale_f64`; see its f32 sibling.
pub(crate) fn div_scale(x: f64, divisor: f64, dividend: f64) -> (u64, bool) {
    let bits = |r: f64| f64_bits(r, x.is_nan());
    let field = |x: f64| (x.to_bits() >> 52 & 2047) as i32;
    let inverse_small = (1.0 / divisor).is_subnormal();
    let quotient_small = (dividend / divisor).abs() < f64::MIN_POSITIVE;
    let same = |y: f64| x.to_bits() == y.to_bits();
    if dividend == 0.0 || divisor == 0.0 {
        (f64_bits(f64::NAN, false), false)
    } else if field(dividend) - field(divisor) >= 768 {
        (bits(if same(divisor) { ldexp(x, 128) } else { x }), true)
    } else if divisor.is_subnormal() {
        (bits(ldexp(x, 128)), false)
    } else if inverse_small && quotient_small {
        (bits(if same(divisor) { ldexp(x, -128) } else { x }), true)
    } else if inverse_small {
        (bits(ldexp(x, -128)), false)
    } else if quotient_small {
        (bits(if same(dividend) { ldexp(x, 128) } else { x }), true)
    } else if field(dividend) <= 53 {
        (bits(ldexp(x, 128)), false)
    } else {
        (bits(x), false)
    }
}

fn div_fixup(quotient: u64, divisor: u64, dividend: u64) -> u64 {
    let [q, d, n] = [quotient, divisor, dividend].map(f64::from_bits);
    let field = |x: u64| (x >> 52 & 2047) as i32;
    let sign = (divisor ^ dividend) & 1 << 63;
    if n.is_nan() {
        quiet(n).to_bits()
    } else if d.is_nan() {
        quiet(d).to_bits()
    } else if (d == 0.0 && n == 0.0) || (d.is_infinite() && n.is_infinite()) {
        0xfff8_0000_0000_0000
    } else if d == 0.0 || n.is_infinite() {
        sign | f64::INFINITY.to_bits()
    } else if d.is_infinite() || n == 0.0 || field(dividend) - field(divisor) < -1075 {
        sign
    } else if q.is_nan() {
        sign | f64::INFINITY.to_bits()
    } else {
        sign | q.abs().to_bits()
    }
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("add_f64", F64, [F64, F64], doubles!(|a, b| a + b)),
    row!("mul_f64", F64, [F64, F64], doubles!(|a, b| a * b)),
    row!(
        "fma_f64",
        F64,
        [F64, F64, F64],
        doubles!(|a, b, c| a.mul_add(b, c))
    ),
    row!("min_f64", F64, [F64, F64], doubles!(|a, b| minimum(a, b))),
    row!("max_f64", F64, [F64, F64], doubles!(|a, b| maximum(a, b))),
    row!("fract_f64", F64, [F64], doubles!(|a| fract(a))),
    row!("trunc_f64", F64, [F64], doubles!(|a| a.trunc())),
    row!("ceil_f64", F64, [F64], doubles!(|a| a.ceil())),
    row!("floor_f64", F64, [F64], doubles!(|a| a.floor())),
    row!("rndne_f64", F64, [F64], doubles!(|a| a.round_ties_even())),
    row!("rcp_f64", F64, [F64], doubles!(|a| 1.0 / a)),
    row!("rsq_f64", F64, [F64], doubles!(|a| 1.0 / a.sqrt())),
    row!("sqrt_f64", F64, [F64], doubles!(|a| a.sqrt())),
    row!(
        "ldexp_f64",
        F64,
        [F64, B32],
        Body::S2(|a, b| ldexp(f64::from_bits(a), b as i32).to_bits())
    ),
    row!("frexp_exp_i32_f64", B32, [F64], Body::S1(frexp_exponent)),
    row!(
        "frexp_mant_f64",
        F64,
        [F64],
        doubles!(|a| frexp_mantissa(a))
    ),
    row!("div_fixup_f64", F64, [F64, F64, F64], Body::S3(div_fixup)),
];
