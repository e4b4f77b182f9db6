//! What the vector instructions compute: one row an instruction, name, operand types, formula.
//!
//! A formula is a loop over 32 lanes, or a function of one lane where speed does not matter. Operand selection, modifiers, lane
//! masks and result modifiers are the same for all rows and live in [`crate::exec`].
//! Source: AMD, "RDNA3.5 Instruction Set Architecture", chapter Instructions.

pub(crate) mod atomic;
mod bytes;
mod carry;
mod compare;
mod convert;
mod dot;
mod f16;
mod f32;
mod f64;
mod integer;
mod integer16;
mod packed;
pub(crate) mod scalar;

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use self::f32::{div_fmas, maximum, minimum};
pub(crate) use self::f64::div_fmas as div_fmas_f64;
use crate::exec::Lanes;

/// The NaN that an operation on numbers makes.
pub(crate) const QUIET_NAN: u32 = 0x7fc0_0000;

/// How an operand's or result's bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    /// 32 bits; a sign modifier turns bit 31.
    B32,
    /// f32: as `B32`, and denormal and result modes apply.
    F32,
    /// 16 bits of one half of the register.
    B16,
    /// f16 in one half of the register.
    F16,
    /// Two 16-bit values: the formula runs for each half.
    PkB16,
    /// Two f16: the formula runs for each half.
    PkF16,
    /// f32, or f16 widened to f32: chosen operand by operand.
    Mix,
    /// 64 bits in two registers; a 32-bit literal is extended with zeros.
    B64,
    /// 64 bits in two registers; a 32-bit literal is extended with its sign.
    I64,
    /// f64 in two registers; a 32-bit literal is its upper half.
    F64,
    /// A lane's bit of a scalar register.
    Mask,
}

impl Ty {
    /// 64 bits wide.
    pub(crate) fn wide(self) -> bool {
        matches!(self, Ty::B64 | Ty::I64 | Ty::F64)
    }

    /// Both halves of a register, one after the other.
    pub(crate) fn packed(self) -> bool {
        matches!(self, Ty::PkB16 | Ty::PkF16)
    }

    /// A floating-point format, to which result modifiers apply.
    pub(crate) fn float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F16 | Ty::F64 | Ty::PkF16 | Ty::Mix)
    }
}

/// The formula of a row.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// `v_mov_b32`. Compilers copy registers that only some lanes, or some paths, have written: the copy of what was never written
    /// counts as never written, and is a fault where it is used.
    Copy,
    /// `v_cndmask_b32`: operand 0 where the bit is clear, operand 1 where it is set; the other one is not looked at. As a copy.
    Select,
    /// All lanes of one operand.
    L1(fn(&Lanes, &mut Lanes)),
    /// All lanes of two.
    L2(fn(&Lanes, &Lanes, &mut Lanes)),
    /// All lanes of three.
    L3(fn(&Lanes, &Lanes, &Lanes, &mut Lanes)),
    /// One lane; operands up to 64 bits.
    S1(fn(u64) -> u64),
    /// One lane of two operands.
    S2(fn(u64, u64) -> u64),
    /// One lane of three operands.
    S3(fn(u64, u64, u64) -> u64),
    /// All lanes of up to three operands; a bit a lane goes to a scalar register.
    Flag(fn(&Lanes, &Lanes, &Lanes, &mut Lanes) -> u32),
    /// One lane, as `Flag`.
    FlagOne(fn(u64, u64, u64) -> (u64, bool)),
    /// `v_mad_u64_u32` and its sibling, as `FlagOne`. Compilers use them for their lower half alone, with an addend whose upper half
    /// nobody wrote: then the upper half of the result counts as unwritten too.
    Mad(fn(u64, u64, u64) -> (u64, bool)),
    /// `v_div_fmas_f32`: the lane's bit of VCC and three operands.
    Fmas32,
    /// `v_div_fmas_f64`.
    Fmas64,
    /// All lanes of a comparison: a bit a lane.
    Compare(fn(&Lanes, &Lanes) -> u32),
    /// One lane of a comparison.
    CompareOne(fn(u64, u64) -> bool),
}

/// One instruction.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Its name without `v_` and without the suffix of its encoding.
    pub(crate) name: &'static str,
    pub(crate) dst: Ty,
    pub(crate) src: &'static [Ty],
    pub(crate) body: Body,
}

/// The row of an instruction.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let tables = [
        f32::ROWS,
        f64::ROWS,
        f16::ROWS,
        integer::ROWS,
        integer16::ROWS,
        bytes::ROWS,
        carry::ROWS,
        dot::ROWS,
        convert::ROWS,
        compare::ROWS,
        packed::ROWS,
    ];
    ROWS.get_or_init(|| {
        tables
            .into_iter()
            .flatten()
            .map(|row| (row.name, row))
            .collect()
    })
    .get(name)
    .copied()
}

/// An f32 result as bits; a NaN that no operand brought is the positive quiet one.
#[inline(always)]
pub(crate) fn f32_bits(result: f32, nan_in: bool) -> u32 {
    if result.is_nan() && !nan_in {
        QUIET_NAN
    } else {
        result.to_bits()
    }
}

macro_rules! row {
    ($name:literal, $dst:ident, [$($src:ident),*], $body:expr) => {
        $crate::table::Row {
            name: $name,
            dst: $crate::table::Ty::$dst,
            src: &[$($crate::table::Ty::$src),*],
            body: $body,
        }
    };
}

/// A loop over lanes whose operands are words.
macro_rules! words {
    (|$a:ident| $e:expr) => {
        $crate::table::Body::L1(|a, d| {
            for l in 0..32 {
                let $a: u32 = a[l];
                d[l] = $e;
            }
        })
    };
    (|$a:ident, $b:ident| $e:expr) => {
        $crate::table::Body::L2(|a, b, d| {
            for l in 0..32 {
                let ($a, $b): (u32, u32) = (a[l], b[l]);
                d[l] = $e;
            }
        })
    };
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        $crate::table::Body::L3(|a, b, c, d| {
            for l in 0..32 {
                let ($a, $b, $c): (u32, u32, u32) = (a[l], b[l], c[l]);
                d[l] = $e;
            }
        })
    };
}

/// A loop over lanes whose operands and result are f32.
macro_rules! floats {
    (|$a:ident| $e:expr) => {
        $crate::table::Body::L1(|a, d| {
            for l in 0..32 {
                let $a = f32::from_bits(a[l]);
                let nan = $a.is_nan();
                d[l] = $crate::table::f32_bits($e, nan);
            }
        })
    };
    (|$a:ident, $b:ident| $e:expr) => {
        $crate::table::Body::L2(|a, b, d| {
            for l in 0..32 {
                let ($a, $b) = (f32::from_bits(a[l]), f32::from_bits(b[l]));
                let nan = $a.is_nan() | $b.is_nan();
                d[l] = $crate::table::f32_bits($e, nan);
            }
        })
    };
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        $crate::table::Body::L3(|a, b, c, d| {
            for l in 0..32 {
                let ($a, $b) = (f32::from_bits(a[l]), f32::from_bits(b[l]));
                let $c = f32::from_bits(c[l]);
                let nan = $a.is_nan() | $b.is_nan() | $c.is_nan();
                d[l] = $crate::table::f32_bits($e, nan);
            }
        })
    };
}

/// A loop over lanes whose operands are f16, widened to f32, and whose result is f32 rounded to f16.
macro_rules! halves {
    (|$a:ident| $e:expr) => {
        $crate::table::Body::L1(|a, d| {
            for l in 0..32 {
                let $a = $crate::float16::to_f32(a[l]);
                let r: f32 = f32::from_bits($crate::table::f32_bits($e, $a.is_nan()));
                d[l] = $crate::float16::from_f32(r);
            }
        })
    };
    (|$a:ident, $b:ident| $e:expr) => {
        $crate::table::Body::L2(|a, b, d| {
            for l in 0..32 {
                let $a = $crate::float16::to_f32(a[l]);
                let $b = $crate::float16::to_f32(b[l]);
                let nan = $a.is_nan() | $b.is_nan();
                let r: f32 = f32::from_bits($crate::table::f32_bits($e, nan));
                d[l] = $crate::float16::from_f32(r);
            }
        })
    };
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        $crate::table::Body::L3(|a, b, c, d| {
            for l in 0..32 {
                let $a = $crate::float16::to_f32(a[l]);
                let $b = $crate::float16::to_f32(b[l]);
                let $c = $crate::float16::to_f32(c[l]);
                let nan = $a.is_nan() | $b.is_nan() | $c.is_nan();
                let r: f32 = f32::from_bits($crate::table::f32_bits($e, nan));
                d[l] = $crate::float16::from_f32(r);
            }
        })
    };
}

/// One lane at a time whose operands and result are f64.
macro_rules! doubles {
    (|$a:ident| $e:expr) => {
        $crate::table::Body::S1(|a| {
            let $a = f64::from_bits(a);
            $crate::table::f64_bits($e, $a.is_nan())
        })
    };
    (|$a:ident, $b:ident| $e:expr) => {
        $crate::table::Body::S2(|a, b| {
            let ($a, $b) = (f64::from_bits(a), f64::from_bits(b));
            $crate::table::f64_bits($e, $a.is_nan() | $b.is_nan())
        })
    };
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        $crate::table::Body::S3(|a, b, c| {
            let ($a, $b, $c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            let nan = $a.is_nan() | $b.is_nan() | $c.is_nan();
            $crate::table::f64_bits($e, nan)
        })
    };
}

use {doubles, floats, halves, row, words};

/// An f64 result as bits, as [`f32_bits`].
pub(crate) fn f64_bits(result: f64, nan_in: bool) -> u64 {
    if result.is_nan() && !nan_in {
        0x7ff8_0000_0000_0000
    } else {
        result.to_bits()
    }
}
