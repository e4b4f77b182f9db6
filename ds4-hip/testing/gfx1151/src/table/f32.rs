//! f32 arithmetic.
//!
//! The transcendental instructions are computed in f64 and rounded; the hardware's own last bits differ (it promises 1 ulp). They
//! flush denormals on both sides whatever the mode, which is what makes compilers scale around them.

use super::{Body, Row, f32_bits, floats, row, words};
use crate::simd;

/// Not a number, and one that signals.
fn is_signaling(x: f32) -> bool {
    x.is_nan() && x.to_bits() & 1 << 22 == 0
}

fn quiet(x: f32) -> f32 {
    f32::from_bits(x.to_bits() | 1 << 22)
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $better:expr) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(a: f32, b: f32) -> f32 {
            let better: fn(f32, f32) -> bool = $better;
            if is_signaling(a) {
                quiet(a)
            } else if is_signaling(b) {
                quiet(b)
            } else if b.is_nan() {
                a
            } else if a.is_nan() || !better(a, b) {
                b
            } else {
                a
            }
        }
    };
}

choice! {
    /// `v_min_f32` in IEEE mode: a quiet NaN loses, a signaling one is returned quiet, −0 is less than +0.
    minimum, |a, b| a < b || (a == b && a.is_sign_negative())
}
choice! {
    /// `v_max_f32`, as [`minimum`].
    maximum, |a, b| a > b || (a == b && a.is_sign_positive())
}

/// The middle one; with a NaN among them the least.
pub(super) fn median(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return minimum(minimum(a, b), c);
    }
    let most = maximum(maximum(a, b), c);
    if most == a {
        maximum(b, c)
    } else if most == b {
        maximum(a, c)
    } else {
        maximum(a, b)
    }
}

fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        0f32.copysign(x)
    } else {
        x
    }
}

/// A transcendental function in f64, rounded; denormals are zeros.
#[inline(always)]
fn special(x: f32, f: impl Fn(f64) -> f64) -> f32 {
    flush(f(f64::from(flush(x))) as f32)
}

/// `sin(2π·x)` for all x: whole turns are taken off exactly first, and quarters are exact.
fn sine(x: f64) -> f64 {
    let turn = x - x.floor();
    let quarter = (turn * 4.0).round();
    let rest = (turn - quarter / 4.0) * std::f64::consts::TAU;
    match quarter as i32 & 3 {
        0 => rest.sin(),
        1 => rest.cos(),
        2 => -rest.sin(),
        _ => -rest.cos(),
    }
}

/// `x · 2^e`, rounded once.
pub(crate) fn ldexp(x: f32, e: i32) -> f32 {
    // f64 holds every product whose result is not plainly zero or infinite, so that only the last step rounds.
    (f64::from(x) * 2f64.powi(e.clamp(-400, 400))) as f32
}

/// Biased exponent; a denormal's is as if it were normal.
fn exponent(x: f32) -> i32 {
    if x == 0.0 {
        return 0;
    }
    if x.is_subnormal() {
        let leading = (x.to_bits() & 0x7f_ffff).leading_zeros() as i32;
        return 9 - leading;
    }
    (x.to_bits() >> 23 & 255) as i32
}

fn fract(x: f32) -> f32 {
    if x.is_infinite() {
        return f32::NAN;
    }
    // Just below a whole number the difference rounds to 1, which the instruction does not return.
    (x - x.floor()).min(1f32.next_down())
}

fn fract_nan(x: f32) -> f32 {
    if x.is_nan() { x } else { fract(x) }
}

fn frexp_exponent(x: f32) -> u32 {
    if !x.is_finite() || x == 0.0 {
        return 0;
    }
    (exponent(x) - 126) as u32
}

fn frexp_mantissa(x: f32) -> f32 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    ldexp(x, 126 - exponent(x))
}

/// `v_div_fmas_f32`, the last step of a division: `fma(a, b, c)`, and when the operands were scaled times 2^64 or 2^-64, whichever
/// undoes it; the addend tells, being the quotient so far. Rounded once.
///
/// The document has a factor of 2^32, which undoes none of the scalings of `v_div_scale`; with it no division at the ends of the range
/// would be right, and they are.
pub(crate) fn div_fmas(scaled: bool, a: f32, b: f32, c: f32) -> u32 {
    let nan = a.is_nan() || b.is_nan() || c.is_nan();
    if !scaled {
        return f32_bits(a.mul_add(b, c), nan);
    }
    let exact = crate::float16::sum_to_odd(f64::from(a) * f64::from(b), c.into());
    let large = c.to_bits() >> 23 & 255 > 127;
    f32_bits(
        (exact * 2f64.powi(if large { 64 } else { -64 })) as f32,
        nan,
    )
}

/// `v_div_scale_f32`: in the one case where quotient and inverse are both denormal the document scales a divisor above 2^126 up,
/// which makes it infinite; it must go down.
///
/// `x` is whichever of divisor and dividend is to be scaled; the result, and whether the quotient is to be
/// scaled back.
pub(crate) fn div_scale(x: f32, divisor: f32, dividend: f32) -> (u32, bool) {
    let bits = |r: f32| f32_bits(r, x.is_nan());
    let field = |x: f32| (x.to_bits() >> 23 & 255) as i32;
    let inverse = 1.0 / f64::from(divisor);
    // 1/divisor is denormal as an f32 would be: the pseudocode compares in the format that the hardware divides in.
    let inverse_small = inverse.abs() < f64::from(f32::MIN_POSITIVE) && inverse != 0.0;
    let quotient = f64::from(dividend) / f64::from(divisor);
    let quotient_small = quotient.abs() < f64::from(f32::MIN_POSITIVE);
    let same = |y: f32| x.to_bits() == y.to_bits();
    if dividend == 0.0 || divisor == 0.0 {
        (super::QUIET_NAN, false)
    } else if field(dividend) - field(divisor) >= 96 {
        (bits(if same(divisor) { ldexp(x, 64) } else { x }), true)
    } else if divisor.is_subnormal() {
        (bits(ldexp(x, 64)), false)
    } else if inverse_small && quotient_small {
        (bits(if same(divisor) { ldexp(x, -64) } else { x }), true)
    } else if inverse_small {
        (bits(ldexp(x, -64)), false)
    } else if quotient_small {
        (bits(if same(dividend) { ldexp(x, 64) } else { x }), true)
    } else if field(dividend) <= 23 {
        (bits(ldexp(x, 64)), false)
    } else {
        (bits(x), false)
    }
}

/// `v_div_fixup_f32`: the special cases of `dividend / divisor`, else `quotient` with the right sign.
fn div_fixup(quotient: f32, divisor: f32, dividend: f32) -> u32 {
    let field = |x: f32| (x.to_bits() >> 23 & 255) as i32;
    let sign = (divisor.to_bits() ^ dividend.to_bits()) & 1 << 31;
    let signed = |x: f32| x.to_bits() | sign;
    if dividend.is_nan() {
        quiet(dividend).to_bits()
    } else if divisor.is_nan() {
        quiet(divisor).to_bits()
    } else if (divisor == 0.0 && dividend == 0.0)
        || (divisor.is_infinite() && dividend.is_infinite())
    {
        0xffc0_0000
    } else if divisor == 0.0 || dividend.is_infinite() {
        signed(f32::INFINITY)
    } else if divisor.is_infinite() || dividend == 0.0 || field(dividend) - field(divisor) < -150 {
        // The last is an underflow, which rounding to nearest makes zero.
        sign
    } else if quotient.is_nan() {
        // Overflow on the way; the pseudocode's own operands are numbers here.
        signed(f32::INFINITY)
    } else {
        signed(quotient.abs())
    }
}

fn dx9(a: f32, b: f32, r: f32, zero: f32) -> f32 {
    if a == 0.0 || b == 0.0 { zero } else { r }
}

/// Two f16 products added to an f32, each step rounded to f32.
fn dot2(a: u32, b: u32, c: u32) -> u32 {
    let h = crate::float16::to_f32;
    let (a0, a1, b0, b1) = (h(a & 0xffff), h(a >> 16), h(b & 0xffff), h(b >> 16));
    let c = f32::from_bits(c);
    let nan = [a0, a1, b0, b1, c].iter().any(|x| x.is_nan());
    f32_bits(c + a0 * b0 + a1 * b1, nan)
}

/// As [`dot2`] with bf16.
fn dot2_bf16(a: u32, b: u32, c: u32) -> u32 {
    let h = crate::float16::bf16_to_f32;
    let (a0, a1, b0, b1) = (h(a & 0xffff), h(a >> 16), h(b & 0xffff), h(b >> 16));
    let c = f32::from_bits(c);
    let nan = [a0, a1, b0, b1, c].iter().any(|x| x.is_nan());
    f32_bits(c + a0 * b0 + a1 * b1, nan)
}

/// The rows.
pub(super) const ROWS: &[Row] = &[
    row!("add_f32", F32, [F32, F32], floats!(|a, b| a + b)),
    row!("sub_f32", F32, [F32, F32], floats!(|a, b| a - b)),
    row!("subrev_f32", F32, [F32, F32], floats!(|a, b| b - a)),
    row!("mul_f32", F32, [F32, F32], floats!(|a, b| a * b)),
    row!(
        "mul_dx9_zero_f32",
        F32,
        [F32, F32],
        floats!(|a, b| dx9(a, b, a * b, 0.0))
    ),
    row!("fma_f32", F32, [F32, F32, F32], Body::L3(simd::fma)),
    row!("fmac_f32", F32, [F32, F32, F32], Body::L3(simd::fma)),
    row!("fmaak_f32", F32, [F32, F32, F32], Body::L3(simd::fma)),
    row!("fmamk_f32", F32, [F32, F32, F32], Body::L3(simd::fma)),
    row!(
        "fma_dx9_zero_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| dx9(a, b, a.mul_add(b, c), c))
    ),
    row!(
        "fmac_dx9_zero_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| dx9(a, b, a.mul_add(b, c), c))
    ),
    row!("min_f32", F32, [F32, F32], floats!(|a, b| minimum(a, b))),
    row!("max_f32", F32, [F32, F32], floats!(|a, b| maximum(a, b))),
    row!(
        "min3_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| minimum(minimum(a, b), c))
    ),
    row!(
        "max3_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| maximum(maximum(a, b), c))
    ),
    row!(
        "med3_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| median(a, b, c))
    ),
    row!(
        "minmax_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| maximum(minimum(a, b), c))
    ),
    row!(
        "maxmin_f32",
        F32,
        [F32, F32, F32],
        floats!(|a, b, c| minimum(maximum(a, b), c))
    ),
    row!("fract_f32", F32, [F32], floats!(|a| fract_nan(a))),
    row!("trunc_f32", F32, [F32], floats!(|a| a.trunc())),
    row!("ceil_f32", F32, [F32], floats!(|a| a.ceil())),
    row!("floor_f32", F32, [F32], floats!(|a| a.floor())),
    row!("rndne_f32", F32, [F32], floats!(|a| a.round_ties_even())),
    row!("exp_f32", F32, [F32], floats!(|a| special(a, f64::exp2))),
    row!("log_f32", F32, [F32], floats!(|a| special(a, f64::log2))),
    row!("rcp_f32", F32, [F32], floats!(|a| special(a, |x| 1.0 / x))),
    row!(
        "rcp_iflag_f32",
        F32,
        [F32],
        floats!(|a| special(a, |x| 1.0 / x))
    ),
    row!(
        "rsq_f32",
        F32,
        [F32],
        floats!(|a| special(a, |x| 1.0 / x.sqrt()))
    ),
    row!("sqrt_f32", F32, [F32], floats!(|a| special(a, f64::sqrt))),
    row!("sin_f32", F32, [F32], floats!(|a| special(a, sine))),
    row!(
        "cos_f32",
        F32,
        [F32],
        floats!(|a| special(a, |x| sine(x - x.floor() + 0.25)))
    ),
    row!(
        "ldexp_f32",
        F32,
        [F32, B32],
        words!(|a, b| ldexp(f32::from_bits(a), b as i32).to_bits())
    ),
    row!(
        "frexp_exp_i32_f32",
        B32,
        [F32],
        words!(|a| frexp_exponent(f32::from_bits(a)))
    ),
    row!("frexp_mant_f32", F32, [F32], floats!(|a| frexp_mantissa(a))),
    row!(
        "div_fixup_f32",
        F32,
        [F32, F32, F32],
        words!(|a, b, c| div_fixup(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)))
    ),
    row!(
        "dot2_f32_f16",
        F32,
        [B32, B32, F32],
        words!(|a, b, c| dot2(a, b, c))
    ),
    row!(
        "dot2acc_f32_f16",
        F32,
        [B32, B32, F32],
        words!(|a, b, c| dot2(a, b, c))
    ),
    row!(
        "dot2_f32_bf16",
        F32,
        [B32, B32, F32],
        words!(|a, b, c| dot2_bf16(a, b, c))
    ),
    row!("fma_mix_f32", F32, [Mix, Mix, Mix], Body::L3(simd::fma)),
    // The result is rounded to f32 and then to f16, as two instructions would.
    row!("fma_mixlo_f16", Mix, [Mix, Mix, Mix], Body::L3(simd::fma)),
    row!("fma_mixhi_f16", Mix, [Mix, Mix, Mix], Body::L3(simd::fma)),
];
