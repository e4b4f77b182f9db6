//! What the scalar instructions compute: one row each.
//!
//! Operands come in 64 bits, narrow ones extended with zeros; a narrow result is cut. The formula also gets the old condition code
//! and gives the new one, which is kept only where the row says so.
#![expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "as in the vector comparisons: negation matters for NaN"
)]

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{f32_bits, maximum, minimum};
use crate::float16::{fma, from_f32, from_f32_toward_zero, to_f32};

/// A formula.
pub(crate) type Step = fn(a: u64, b: u64, c: u64, scc: bool) -> (u64, bool);

/// One instruction.
pub(crate) struct Row {
    /// Its name without `s_`.
    pub(crate) name: &'static str,
    /// Bits of the result; 0 for comparisons.
    pub(crate) dst: u8,
    /// Bits of each operand. An operand that the text does not have is the destination's old value.
    pub(crate) src: &'static [u8],
    /// Whether the condition code is written.
    pub(crate) scc: bool,
    pub(crate) step: Step,
}

/// The row of an instruction.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static MAP: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    MAP.get_or_init(|| ROWS.iter().map(|r| (r.name, r)).collect())
        .get(name)
        .copied()
}

fn int(x: u64) -> i32 {
    x as u32 as i32
}

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn h(x: u64) -> f32 {
    to_f32(x as u32 & 0xffff)
}

fn half(x: f32, nan_in: bool) -> u64 {
    from_f32(f32::from_bits(f32_bits(x, nan_in))).into()
}

/// The result decides the condition code: set when it is not zero.
fn nonzero(x: u64) -> (u64, bool) {
    (x, x != 0)
}

fn nonzero32(x: u64) -> (u64, bool) {
    nonzero(x & 0xffff_ffff)
}

fn first(count: u32, width: u32) -> u64 {
    if count == width {
        u64::MAX
    } else {
        count.into()
    }
}

fn bfe(x: u64, control: u64, shift_mask: u64, signed: bool) -> u64 {
    let width = (control >> 16 & 0x7f) as u32;
    if width == 0 {
        return 0;
    }
    let shift = (control & shift_mask) as u32;
    let bits = 64 - width.min(64);
    let field = if signed {
        (x as i64 >> shift) as u64
    } else {
        x >> shift
    } << bits;
    if signed {
        (field as i64 >> bits) as u64
    } else {
        field >> bits
    }
}

fn shifted_add(a: u64, b: u64, by: u32) -> (u64, bool) {
    let sum = (a << by) + b;
    (sum, sum >> 32 != 0)
}

fn quad(x: u64) -> u64 {
    (0..16).fold(0, |m, i| m | u64::from(x >> (4 * i) & 15 != 0) << i)
}

fn whole_quad(x: u64) -> u64 {
    (0..64).fold(0, |m, i| m | u64::from(x >> (i & !3) & 15 != 0) << i)
}

fn signed_width(x: i64, width: u32) -> u64 {
    let lead = (x ^ (x >> 63)).leading_zeros() - (64 - width);
    if lead == width { u64::MAX } else { lead.into() }
}

/// `min` and `max` report whether the first operand was chosen.
fn choose(a: u64, b: u64, first: bool) -> (u64, bool) {
    (if first { a } else { b }, first)
}

macro_rules! rows {
    ($($name:literal $dst:literal [$($src:literal),*] $scc:ident |$a:ident, $b:ident, $c:ident, $s:ident| $e:expr;)*) => {
        const ROWS: &[Row] = &[$(Row {
            name: $name,
            dst: $dst,
            src: &[$($src),*],
            scc: rows!(@ $scc),
            step: |$a, $b, $c, $s| $e,
        },)*];
    };
    (@ scc) => { true };
    (@ keep) => { false };
}

rows! {
    "cmov_b32" 32 [32, 32] keep |a, b, _c, s| (if s { a } else { b }, false);
    "brev_b32" 32 [32] keep |a, _b, _c, _s| (u64::from((a as u32).reverse_bits()), false);
    "ctz_i32_b32" 32 [32] keep |a, _b, _c, _s| (first((a as u32).trailing_zeros(), 32), false);
    "clz_i32_u32" 32 [32] keep |a, _b, _c, _s| (first((a as u32).leading_zeros(), 32), false);
    "bitset0_b32" 32 [32, 32] keep |a, b, _c, _s| (b & !(1 << (a & 31)), false);
    "bitset1_b32" 32 [32, 32] keep |a, b, _c, _s| (b | 1 << (a & 31), false);
    "bcnt0_i32_b32" 32 [32] scc |a, _b, _c, _s| nonzero((32 - a.count_ones()).into());
    "bcnt1_i32_b32" 32 [32] scc |a, _b, _c, _s| nonzero(a.count_ones().into());
    "quadmask_b32" 32 [32] scc |a, _b, _c, _s| nonzero32(quad(a));
    "wqm_b32" 32 [32] scc |a, _b, _c, _s| nonzero32(whole_quad(a));
    "not_b32" 32 [32] scc |a, _b, _c, _s| nonzero32(!a);
    "lshl_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a << (b & 31));
    "lshr_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a >> (b & 31));
    "ashr_i32" 32 [32, 32] scc |a, b, _c, _s| nonzero32((int(a) >> (b & 31)) as u64);
    "and_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a & b);
    "or_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a | b);
    "xor_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a ^ b);
    "nand_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(!(a & b));
    "nor_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(!(a | b));
    "xnor_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(!(a ^ b));
    "and_not1_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a & !b);
    "or_not1_b32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(a | !b);
    "bfe_u32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(bfe(a, b, 31, false));
    "bfe_i32" 32 [32, 32] scc |a, b, _c, _s| nonzero32(bfe(i64::from(int(a)) as u64, b, 31, true));
    "bfm_b32" 32 [32, 32] keep |a, b, _c, _s| (((1 << (a & 31)) - 1) << (b & 31), false);
    "cselect_b32" 32 [32, 32] keep |a, b, _c, s| (if s { a } else { b }, false);
    "bitcmp0_b32" 0 [32, 32] scc |a, b, _c, _s| (0, a >> (b & 31) & 1 == 0);
    "bitcmp1_b32" 0 [32, 32] scc |a, b, _c, _s| (0, a >> (b & 31) & 1 == 1);
    "cmov_b64" 64 [64, 64] keep |a, b, _c, s| (if s { a } else { b }, false);
    "brev_b64" 64 [64] keep |a, _b, _c, _s| (a.reverse_bits(), false);
    "ctz_i32_b64" 32 [64] keep |a, _b, _c, _s| (first(a.trailing_zeros(), 64), false);
    "clz_i32_u64" 32 [64] keep |a, _b, _c, _s| (first(a.leading_zeros(), 64), false);
    "bitset0_b64" 64 [32, 64] keep |a, b, _c, _s| (b & !(1 << (a & 63)), false);
    "bitset1_b64" 64 [32, 64] keep |a, b, _c, _s| (b | 1 << (a & 63), false);
    "bcnt0_i32_b64" 32 [64] scc |a, _b, _c, _s| nonzero((64 - a.count_ones()).into());
    "bcnt1_i32_b64" 32 [64] scc |a, _b, _c, _s| nonzero(a.count_ones().into());
    "quadmask_b64" 64 [64] scc |a, _b, _c, _s| nonzero(quad(a));
    "wqm_b64" 64 [64] scc |a, _b, _c, _s| nonzero(whole_quad(a));
    "not_b64" 64 [64] scc |a, _b, _c, _s| nonzero(!a);
    "lshl_b64" 64 [64, 32] scc |a, b, _c, _s| nonzero(a << (b & 63));
    "lshr_b64" 64 [64, 32] scc |a, b, _c, _s| nonzero(a >> (b & 63));
    "ashr_i64" 64 [64, 32] scc |a, b, _c, _s| nonzero((a as i64 >> (b & 63)) as u64);
    "and_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(a & b);
    "or_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(a | b);
    "xor_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(a ^ b);
    "nand_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(!(a & b));
    "nor_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(!(a | b));
    "xnor_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(!(a ^ b));
    "and_not1_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(a & !b);
    "or_not1_b64" 64 [64, 64] scc |a, b, _c, _s| nonzero(a | !b);
    "bfe_u64" 64 [64, 32] scc |a, b, _c, _s| nonzero(bfe(a, b, 63, false));
    "bfe_i64" 64 [64, 32] scc |a, b, _c, _s| nonzero(bfe(a, b, 63, true));
    "bfm_b64" 64 [32, 32] keep |a, b, _c, _s| (((1 << (a & 63)) - 1) << (b & 63), false);
    "cselect_b64" 64 [64, 64] keep |a, b, _c, s| (if s { a } else { b }, false);
    "bitcmp0_b64" 0 [64, 32] scc |a, b, _c, _s| (0, a >> (b & 63) & 1 == 0);
    "bitcmp1_b64" 0 [64, 32] scc |a, b, _c, _s| (0, a >> (b & 63) & 1 == 1);
    "cls_i32" 32 [32] keep |a, _b, _c, _s| (signed_width(int(a).into(), 32), false);
    "cls_i32_i64" 32 [64] keep |a, _b, _c, _s| (signed_width(a as i64, 64), false);
    "sext_i32_i8" 32 [32] keep |a, _b, _c, _s| (a as i8 as u64, false);
    "sext_i32_i16" 32 [32] keep |a, _b, _c, _s| (a as i16 as u64, false);
    "bitreplicate_b64_b32" 64 [32] keep |a, _b, _c, _s| ((0..64).fold(0, |m, i| m | (a >> (i / 2) & 1) << i), false);
    "abs_i32" 32 [32] scc |a, _b, _c, _s| nonzero(int(a).wrapping_abs() as u32 as u64);
    "add_u32" 32 [32, 32] scc |a, b, _c, _s| shifted_add(a, b, 0);
    "sub_u32" 32 [32, 32] scc |a, b, _c, _s| (a.wrapping_sub(b), b > a);
    "add_i32" 32 [32, 32] scc |a, b, _c, _s| (a.wrapping_add(b), int(a).checked_add(int(b)).is_none());
    "sub_i32" 32 [32, 32] scc |a, b, _c, _s| (a.wrapping_sub(b), int(a).checked_sub(int(b)).is_none());
    "addc_u32" 32 [32, 32] scc |a, b, _c, s| shifted_add(a, b + u64::from(s), 0);
    "subb_u32" 32 [32, 32] scc |a, b, _c, s| (a.wrapping_sub(b).wrapping_sub(s.into()), b + u64::from(s) > a);
    "absdiff_i32" 32 [32, 32] scc |a, b, _c, _s| nonzero(int(a).wrapping_sub(int(b)).wrapping_abs() as u32 as u64);
    "lshl1_add_u32" 32 [32, 32] scc |a, b, _c, _s| shifted_add(a, b, 1);
    "lshl2_add_u32" 32 [32, 32] scc |a, b, _c, _s| shifted_add(a, b, 2);
    "lshl3_add_u32" 32 [32, 32] scc |a, b, _c, _s| shifted_add(a, b, 3);
    "lshl4_add_u32" 32 [32, 32] scc |a, b, _c, _s| shifted_add(a, b, 4);
    "min_i32" 32 [32, 32] scc |a, b, _c, _s| choose(a, b, int(a) < int(b));
    "min_u32" 32 [32, 32] scc |a, b, _c, _s| choose(a, b, a < b);
    "max_i32" 32 [32, 32] scc |a, b, _c, _s| choose(a, b, int(a) >= int(b));
    "max_u32" 32 [32, 32] scc |a, b, _c, _s| choose(a, b, a >= b);
    "mul_i32" 32 [32, 32] keep |a, b, _c, _s| (a.wrapping_mul(b), false);
    "mul_hi_u32" 32 [32, 32] keep |a, b, _c, _s| ((a * b) >> 32, false);
    "mul_hi_i32" 32 [32, 32] keep |a, b, _c, _s| (((i64::from(int(a)) * i64::from(int(b))) >> 32) as u64, false);
    "pack_ll_b32_b16" 32 [32, 32] keep |a, b, _c, _s| (a & 0xffff | (b & 0xffff) << 16, false);
    "pack_lh_b32_b16" 32 [32, 32] keep |a, b, _c, _s| (a & 0xffff | b & 0xffff_0000, false);
    "pack_hh_b32_b16" 32 [32, 32] keep |a, b, _c, _s| (a >> 16 | b & 0xffff_0000, false);
    "pack_hl_b32_b16" 32 [32, 32] keep |a, b, _c, _s| (a >> 16 | (b & 0xffff) << 16, false);
    "cmp_eq_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) == int(b));
    "cmp_eq_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a == b);
    "cmpk_eq_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) == i32::from(b as i16));
    "cmpk_eq_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a == b & 0xffff);
    "cmp_lg_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) != int(b));
    "cmp_lg_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a != b);
    "cmpk_lg_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) != i32::from(b as i16));
    "cmpk_lg_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a != b & 0xffff);
    "cmp_gt_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) > int(b));
    "cmp_gt_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a > b);
    "cmpk_gt_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) > i32::from(b as i16));
    "cmpk_gt_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a > b & 0xffff);
    "cmp_ge_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) >= int(b));
    "cmp_ge_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a >= b);
    "cmpk_ge_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) >= i32::from(b as i16));
    "cmpk_ge_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a >= b & 0xffff);
    "cmp_lt_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) < int(b));
    "cmp_lt_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a < b);
    "cmpk_lt_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) < i32::from(b as i16));
    "cmpk_lt_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a < b & 0xffff);
    "cmp_le_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) <= int(b));
    "cmp_le_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a <= b);
    "cmpk_le_i32" 0 [32, 32] scc |a, b, _c, _s| (0, int(a) <= i32::from(b as i16));
    "cmpk_le_u32" 0 [32, 32] scc |a, b, _c, _s| (0, a <= b & 0xffff);
    "cmp_eq_u64" 0 [64, 64] scc |a, b, _c, _s| (0, a == b);
    "cmp_lg_u64" 0 [64, 64] scc |a, b, _c, _s| (0, a != b);
    "movk_i32" 32 [32] keep |a, _b, _c, _s| (a as i16 as u64, false);
    "cmovk_i32" 32 [32, 32] keep |a, b, _c, s| (if s { a as i16 as u64 } else { b }, false);
    "addk_i32" 32 [32, 32] scc |a, b, _c, _s| (b.wrapping_add(a as i16 as u64), int(b).checked_add((a as i16).into()).is_none());
    "mulk_i32" 32 [32, 32] keep |a, b, _c, _s| (b.wrapping_mul(a as i16 as u64), false);
    "ceil_f32" 32 [32] keep |a, _b, _c, _s| (f32_bits(f(a).ceil(), f(a).is_nan()).into(), false);
    "floor_f32" 32 [32] keep |a, _b, _c, _s| (f32_bits(f(a).floor(), f(a).is_nan()).into(), false);
    "trunc_f32" 32 [32] keep |a, _b, _c, _s| (f32_bits(f(a).trunc(), f(a).is_nan()).into(), false);
    "rndne_f32" 32 [32] keep |a, _b, _c, _s| (f32_bits(f(a).round_ties_even(), f(a).is_nan()).into(), false);
    "add_f32" 32 [32, 32] keep |a, b, _c, _s| (f32_bits(f(a) + f(b), f(a).is_nan() || f(b).is_nan()).into(), false);
    "sub_f32" 32 [32, 32] keep |a, b, _c, _s| (f32_bits(f(a) - f(b), f(a).is_nan() || f(b).is_nan()).into(), false);
    "mul_f32" 32 [32, 32] keep |a, b, _c, _s| (f32_bits(f(a) * f(b), f(a).is_nan() || f(b).is_nan()).into(), false);
    "min_f32" 32 [32, 32] keep |a, b, _c, _s| (f32_bits(minimum(f(a), f(b)), f(a).is_nan() || f(b).is_nan()).into(), false);
    "max_f32" 32 [32, 32] keep |a, b, _c, _s| (f32_bits(maximum(f(a), f(b)), f(a).is_nan() || f(b).is_nan()).into(), false);
    "ceil_f16" 32 [32] keep |a, _b, _c, _s| (half(h(a).ceil(), h(a).is_nan()), false);
    "floor_f16" 32 [32] keep |a, _b, _c, _s| (half(h(a).floor(), h(a).is_nan()), false);
    "trunc_f16" 32 [32] keep |a, _b, _c, _s| (half(h(a).trunc(), h(a).is_nan()), false);
    "rndne_f16" 32 [32] keep |a, _b, _c, _s| (half(h(a).round_ties_even(), h(a).is_nan()), false);
    "add_f16" 32 [32, 32] keep |a, b, _c, _s| (half(h(a) + h(b), h(a).is_nan() || h(b).is_nan()), false);
    "sub_f16" 32 [32, 32] keep |a, b, _c, _s| (half(h(a) - h(b), h(a).is_nan() || h(b).is_nan()), false);
    "mul_f16" 32 [32, 32] keep |a, b, _c, _s| (half(h(a) * h(b), h(a).is_nan() || h(b).is_nan()), false);
    "min_f16" 32 [32, 32] keep |a, b, _c, _s| (half(minimum(h(a), h(b)), h(a).is_nan() || h(b).is_nan()), false);
    "max_f16" 32 [32, 32] keep |a, b, _c, _s| (half(maximum(h(a), h(b)), h(a).is_nan() || h(b).is_nan()), false);
    "fmac_f32" 32 [32, 32, 32] keep |a, b, c, _s| (f32_bits(f(a).mul_add(f(b), f(c)), f(a).is_nan() || f(b).is_nan() || f(c).is_nan()).into(), false);
    "fmaak_f32" 32 [32, 32, 32] keep |a, b, c, _s| (f32_bits(f(a).mul_add(f(b), f(c)), f(a).is_nan() || f(b).is_nan() || f(c).is_nan()).into(), false);
    "fmamk_f32" 32 [32, 32, 32] keep |a, b, c, _s| (f32_bits(f(a).mul_add(f(b), f(c)), f(a).is_nan() || f(b).is_nan() || f(c).is_nan()).into(), false);
    "fmac_f16" 32 [32, 32, 32] keep |a, b, c, _s| (fma(h(a), h(b), h(c)).into(), false);
    "cvt_f32_i32" 32 [32] keep |a, _b, _c, _s| ((int(a) as f32).to_bits().into(), false);
    "cvt_f32_u32" 32 [32] keep |a, _b, _c, _s| ((a as f32).to_bits().into(), false);
    "cvt_i32_f32" 32 [32] keep |a, _b, _c, _s| (f(a) as i32 as u64, false);
    "cvt_u32_f32" 32 [32] keep |a, _b, _c, _s| ((f(a) as u32).into(), false);
    "cvt_f16_f32" 32 [32] keep |a, _b, _c, _s| (from_f32(f(a)).into(), false);
    "cvt_f32_f16" 32 [32] keep |a, _b, _c, _s| (h(a).to_bits().into(), false);
    "cvt_hi_f32_f16" 32 [32] keep |a, _b, _c, _s| (h(a >> 16).to_bits().into(), false);
    "cvt_pk_rtz_f16_f32" 32 [32, 32] keep |a, b, _c, _s| (u64::from(from_f32_toward_zero(f(a)) | from_f32_toward_zero(f(b)) << 16), false);
    "cmp_lt_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) < f(b));
    "cmp_eq_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) == f(b));
    "cmp_le_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) <= f(b));
    "cmp_gt_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) > f(b));
    "cmp_lg_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) < f(b) || f(a) > f(b));
    "cmp_ge_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) >= f(b));
    "cmp_o_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !f(a).is_nan() && !f(b).is_nan());
    "cmp_u_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a).is_nan() || f(b).is_nan());
    "cmp_nge_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !(f(a) >= f(b)));
    "cmp_nlg_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !(f(a) < f(b) || f(a) > f(b)));
    "cmp_ngt_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !(f(a) > f(b)));
    "cmp_nle_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !(f(a) <= f(b)));
    "cmp_neq_f32" 0 [32, 32] scc |a, b, _c, _s| (0, f(a) != f(b));
    "cmp_nlt_f32" 0 [32, 32] scc |a, b, _c, _s| (0, !(f(a) < f(b)));
    "cmp_lt_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) < h(b));
    "cmp_eq_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) == h(b));
    "cmp_le_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) <= h(b));
    "cmp_gt_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) > h(b));
    "cmp_lg_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) < h(b) || h(a) > h(b));
    "cmp_ge_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) >= h(b));
    "cmp_o_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !h(a).is_nan() && !h(b).is_nan());
    "cmp_u_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a).is_nan() || h(b).is_nan());
    "cmp_nge_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !(h(a) >= h(b)));
    "cmp_nlg_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !(h(a) < h(b) || h(a) > h(b)));
    "cmp_ngt_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !(h(a) > h(b)));
    "cmp_nle_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !(h(a) <= h(b)));
    "cmp_neq_f16" 0 [32, 32] scc |a, b, _c, _s| (0, h(a) != h(b));
    "cmp_nlt_f16" 0 [32, 32] scc |a, b, _c, _s| (0, !(h(a) < h(b)));
}
