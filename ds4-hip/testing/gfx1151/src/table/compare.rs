//! Comparisons: a bit a lane. `v_cmpx` has the same formulas and writes EXEC.
#![expect(
    clippy::double_comparisons,
    clippy::neg_cmp_op_on_partial_ord,
    reason = "the names of the instructions say which comparison is negated, which matters for NaN"
)]

use super::{Body, Row, row};
use crate::float16::to_f32;

/// The class of a float by its bits, as a mask of one bit: signaling NaN, quiet NaN, −inf, −normal, −denormal, −0, +0, +denormal,
/// +normal, +inf.
fn class(bits: u64, exponent_bits: u32, mantissa_bits: u32) -> u32 {
    let exponent_max = (1 << exponent_bits) - 1;
    let exponent = bits >> mantissa_bits & exponent_max;
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let negative = bits >> (exponent_bits + mantissa_bits) & 1 == 1;
    let bit = match (exponent, mantissa) {
        (e, 0) if e == exponent_max => {
            if negative {
                2
            } else {
                9
            }
        }
        (e, m) if e == exponent_max => u32::from(m >> (mantissa_bits - 1) & 1 == 1),
        (0, 0) => {
            if negative {
                5
            } else {
                6
            }
        }
        (0, _) => {
            if negative {
                4
            } else {
                7
            }
        }
        _ => {
            if negative {
                3
            } else {
                8
            }
        }
    };
    1 << bit
}

macro_rules! lanes {
    ($view:expr, |$a:ident, $b:ident| $e:expr) => {
        Body::Compare(|a, b| {
            let mut mask = 0;
            for l in 0..32 {
                let ($a, $b) = ($view(a[l]), $view(b[l]));
                mask |= u32::from($e) << l;
            }
            mask
        })
    };
}

macro_rules! one {
    ($view:expr, |$a:ident, $b:ident| $e:expr) => {
        Body::CompareOne(|a, b| {
            let ($a, $b) = ($view(a), $view(b));
            $e
        })
    };
}

fn word(x: u32) -> u32 {
    x
}

fn int(x: u32) -> i32 {
    x as i32
}

fn short(x: u32) -> i16 {
    x as u16 as i16
}

fn long(x: u64) -> u64 {
    x
}

fn long_int(x: u64) -> i64 {
    x as i64
}

macro_rules! rows {
    ($($name:literal $ty:ident $loop:ident $view:expr, |$a:ident, $b:ident| $e:expr;)*) => {
        /// The rows.
        pub(super) const ROWS: &[Row] = &[
            $(row!($name, $ty, [$ty, $ty], $loop!($view, |$a, $b| $e)),)*
            row!("cmp_class_f32", B32, [F32, B32], Body::Compare(|a, b| {
                (0..32).fold(0, |m, l| m | u32::from(class(a[l].into(), 8, 23) & b[l] != 0) << l)
            })),
            row!("cmp_class_f16", B32, [F16, B32], Body::Compare(|a, b| {
                (0..32).fold(0, |m, l| m | u32::from(class(a[l].into(), 5, 10) & b[l] != 0) << l)
            })),
            row!("cmp_class_f64", B32, [F64, B32], Body::CompareOne(|a, b| {
                class(a, 11, 52) & b as u32 != 0
            })),
        ];
    };
}

rows! {
    "cmp_f_f32" F32 lanes f32::from_bits, |_a, _b| false;
    "cmp_lt_f32" F32 lanes f32::from_bits, |a, b| a < b;
    "cmp_eq_f32" F32 lanes f32::from_bits, |a, b| a == b;
    "cmp_le_f32" F32 lanes f32::from_bits, |a, b| a <= b;
    "cmp_gt_f32" F32 lanes f32::from_bits, |a, b| a > b;
    "cmp_lg_f32" F32 lanes f32::from_bits, |a, b| a < b || a > b;
    "cmp_ge_f32" F32 lanes f32::from_bits, |a, b| a >= b;
    "cmp_o_f32" F32 lanes f32::from_bits, |a, b| !a.is_nan() && !b.is_nan();
    "cmp_u_f32" F32 lanes f32::from_bits, |a, b| a.is_nan() || b.is_nan();
    "cmp_nge_f32" F32 lanes f32::from_bits, |a, b| !(a >= b);
    "cmp_nlg_f32" F32 lanes f32::from_bits, |a, b| !(a < b || a > b);
    "cmp_ngt_f32" F32 lanes f32::from_bits, |a, b| !(a > b);
    "cmp_nle_f32" F32 lanes f32::from_bits, |a, b| !(a <= b);
    "cmp_neq_f32" F32 lanes f32::from_bits, |a, b| a != b;
    "cmp_nlt_f32" F32 lanes f32::from_bits, |a, b| !(a < b);
    "cmp_t_f32" F32 lanes f32::from_bits, |_a, _b| true;
    "cmp_f_f16" F16 lanes to_f32, |_a, _b| false;
    "cmp_lt_f16" F16 lanes to_f32, |a, b| a < b;
    "cmp_eq_f16" F16 lanes to_f32, |a, b| a == b;
    "cmp_le_f16" F16 lanes to_f32, |a, b| a <= b;
    "cmp_gt_f16" F16 lanes to_f32, |a, b| a > b;
    "cmp_lg_f16" F16 lanes to_f32, |a, b| a < b || a > b;
    "cmp_ge_f16" F16 lanes to_f32, |a, b| a >= b;
    "cmp_o_f16" F16 lanes to_f32, |a, b| !a.is_nan() && !b.is_nan();
    "cmp_u_f16" F16 lanes to_f32, |a, b| a.is_nan() || b.is_nan();
    "cmp_nge_f16" F16 lanes to_f32, |a, b| !(a >= b);
    "cmp_nlg_f16" F16 lanes to_f32, |a, b| !(a < b || a > b);
    "cmp_ngt_f16" F16 lanes to_f32, |a, b| !(a > b);
    "cmp_nle_f16" F16 lanes to_f32, |a, b| !(a <= b);
    "cmp_neq_f16" F16 lanes to_f32, |a, b| a != b;
    "cmp_nlt_f16" F16 lanes to_f32, |a, b| !(a < b);
    "cmp_t_f16" F16 lanes to_f32, |_a, _b| true;
    "cmp_f_f64" F64 one f64::from_bits, |_a, _b| false;
    "cmp_lt_f64" F64 one f64::from_bits, |a, b| a < b;
    "cmp_eq_f64" F64 one f64::from_bits, |a, b| a == b;
    "cmp_le_f64" F64 one f64::from_bits, |a, b| a <= b;
    "cmp_gt_f64" F64 one f64::from_bits, |a, b| a > b;
    "cmp_lg_f64" F64 one f64::from_bits, |a, b| a < b || a > b;
    "cmp_ge_f64" F64 one f64::from_bits, |a, b| a >= b;
    "cmp_o_f64" F64 one f64::from_bits, |a, b| !a.is_nan() && !b.is_nan();
    "cmp_u_f64" F64 one f64::from_bits, |a, b| a.is_nan() || b.is_nan();
    "cmp_nge_f64" F64 one f64::from_bits, |a, b| !(a >= b);
    "cmp_nlg_f64" F64 one f64::from_bits, |a, b| !(a < b || a > b);
    "cmp_ngt_f64" F64 one f64::from_bits, |a, b| !(a > b);
    "cmp_nle_f64" F64 one f64::from_bits, |a, b| !(a <= b);
    "cmp_neq_f64" F64 one f64::from_bits, |a, b| a != b;
    "cmp_nlt_f64" F64 one f64::from_bits, |a, b| !(a < b);
    "cmp_t_f64" F64 one f64::from_bits, |_a, _b| true;
    "cmp_f_i32" B32 lanes int, |_a, _b| false;
    "cmp_lt_i32" B32 lanes int, |a, b| a < b;
    "cmp_eq_i32" B32 lanes int, |a, b| a == b;
    "cmp_le_i32" B32 lanes int, |a, b| a <= b;
    "cmp_gt_i32" B32 lanes int, |a, b| a > b;
    "cmp_ne_i32" B32 lanes int, |a, b| a != b;
    "cmp_ge_i32" B32 lanes int, |a, b| a >= b;
    "cmp_t_i32" B32 lanes int, |_a, _b| true;
    "cmp_f_u32" B32 lanes word, |_a, _b| false;
    "cmp_lt_u32" B32 lanes word, |a, b| a < b;
    "cmp_eq_u32" B32 lanes word, |a, b| a == b;
    "cmp_le_u32" B32 lanes word, |a, b| a <= b;
    "cmp_gt_u32" B32 lanes word, |a, b| a > b;
    "cmp_ne_u32" B32 lanes word, |a, b| a != b;
    "cmp_ge_u32" B32 lanes word, |a, b| a >= b;
    "cmp_t_u32" B32 lanes word, |_a, _b| true;
    "cmp_lt_i16" B16 lanes short, |a, b| a < b;
    "cmp_eq_i16" B16 lanes short, |a, b| a == b;
    "cmp_le_i16" B16 lanes short, |a, b| a <= b;
    "cmp_gt_i16" B16 lanes short, |a, b| a > b;
    "cmp_ne_i16" B16 lanes short, |a, b| a != b;
    "cmp_ge_i16" B16 lanes short, |a, b| a >= b;
    "cmp_lt_u16" B16 lanes word, |a, b| a < b;
    "cmp_eq_u16" B16 lanes word, |a, b| a == b;
    "cmp_le_u16" B16 lanes word, |a, b| a <= b;
    "cmp_gt_u16" B16 lanes word, |a, b| a > b;
    "cmp_ne_u16" B16 lanes word, |a, b| a != b;
    "cmp_ge_u16" B16 lanes word, |a, b| a >= b;
    "cmp_f_i64" I64 one long_int, |_a, _b| false;
    "cmp_lt_i64" I64 one long_int, |a, b| a < b;
    "cmp_eq_i64" I64 one long_int, |a, b| a == b;
    "cmp_le_i64" I64 one long_int, |a, b| a <= b;
    "cmp_gt_i64" I64 one long_int, |a, b| a > b;
    "cmp_ne_i64" I64 one long_int, |a, b| a != b;
    "cmp_ge_i64" I64 one long_int, |a, b| a >= b;
    "cmp_t_i64" I64 one long_int, |_a, _b| true;
    "cmp_f_u64" B64 one long, |_a, _b| false;
    "cmp_lt_u64" B64 one long, |a, b| a < b;
    "cmp_eq_u64" B64 one long, |a, b| a == b;
    "cmp_le_u64" B64 one long, |a, b| a <= b;
    "cmp_gt_u64" B64 one long, |a, b| a > b;
    "cmp_ne_u64" B64 one long, |a, b| a != b;
    "cmp_ge_u64" B64 one long, |a, b| a >= b;
    "cmp_t_u64" B64 one long, |_a, _b| true;
}
