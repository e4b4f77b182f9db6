//! Operands: from text to registers and constants.

use super::text::number;
use crate::exec::operand::{At, Src};
use crate::exec::{EXEC, M0, NULL, VCC};
use crate::float16;
use crate::table::Ty;

/// An operand before its format is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) what: What,
    pub(crate) neg: bool,
    pub(crate) abs: bool,
}

/// What the text names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// A vector register, or the first of `count`.
    V {
        first: u8,
        count: u8,
    },
    /// A scalar register, or the first of `count`.
    S {
        first: u8,
        count: u8,
    },
    /// An inline integer.
    Int(i64),
    /// A literal of 32 bits.
    Literal(u32),
    /// An inline float; its value as f64 and as f32, which differ for 1/2π.
    Float(f64, f32),
    Scc,
    Vccz,
    Execz,
    /// `off`: no scalar base.
    Off,
}

/// Read one operand.
///
/// # Errors
/// Says what is not understood.
pub(crate) fn parse(text: &str) -> Result<Operand, String> {
    let (mut rest, mut neg, mut abs) = (text, false, false);
    if let Some(inner) = rest.strip_prefix("neg(").and_then(|t| t.strip_suffix(')')) {
        (rest, neg) = (inner, true);
    } else if let Some(inner) = rest.strip_prefix('-')
        && !inner.starts_with(|c: char| c.is_ascii_digit())
    {
        (rest, neg) = (inner, true);
    }
    for (open, close) in [("|", '|'), ("abs(", ')')] {
        if let Some(inner) = rest.strip_prefix(open).and_then(|t| t.strip_suffix(close)) {
            (rest, abs) = (inner, true);
        }
    }
    let what = what(rest).ok_or_else(|| format!("operand `{text}`"))?;
    Ok(Operand { what, neg, abs })
}

fn what(text: &str) -> Option<What> {
    let s = |first, count| Some(What::S { first, count });
    match text {
        "vcc_lo" => return s(VCC, 1),
        "vcc_hi" => return s(VCC + 1, 1),
        "vcc" => return s(VCC, 2),
        "exec_lo" => return s(EXEC, 1),
        "exec_hi" => return s(EXEC + 1, 1),
        "exec" => return s(EXEC, 2),
        "m0" => return s(M0, 1),
        "null" => return s(NULL, 1),
        "off" => return Some(What::Off),
        "src_scc" => return Some(What::Scc),
        "src_vccz" => return Some(What::Vccz),
        "src_execz" => return Some(What::Execz),
        _ => {}
    }
    if let Some((first, count)) = text.strip_prefix('v').and_then(range) {
        return (u16::from(first) + u16::from(count) <= 256).then_some(What::V { first, count });
    }
    if let Some((first, count)) = text.strip_prefix('s').and_then(range) {
        return (first + count <= VCC).then_some(What::S { first, count });
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).ok().map(What::Literal);
    }
    if let Some(hex) = text.strip_prefix("-0x") {
        return i64::from_str_radix(hex, 16).ok().map(|n| What::Int(-n));
    }
    match text.parse() {
        Ok(int) => Some(What::Int(int)),
        Err(_) if text.contains('.') => Some(What::Float(text.parse().ok()?, text.parse().ok()?)),
        Err(_) => None,
    }
}

/// `7` or `[4:7]`: first and count.
fn range(text: &str) -> Option<(u8, u8)> {
    match text.strip_prefix('[') {
        Some(rest) => {
            let (first, last) = rest.strip_suffix(']')?.split_once(':')?;
            let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
            Some((first, last.checked_sub(first)?.checked_add(1)?))
        }
        None => Some((text.parse().ok()?, 1)),
    }
}

impl Operand {
    /// In the format `ty`; `half` says that a mixed operand is f16.
    pub(crate) fn source(&self, ty: Ty, half: bool) -> Result<Src, String> {
        let bits16 = |x: u32| u64::from(x & 0xffff);
        let at = match self.what {
            What::V { first, .. } => At::V(first),
            What::S { first, .. } => At::S(first),
            What::Scc => At::Scc,
            What::Vccz => At::Vccz,
            What::Execz => At::Execz,
            What::Off => return Err("operand `off`".to_owned()),
            What::Int(n) => At::K(match ty {
                Ty::B64 | Ty::I64 | Ty::F64 => n as u64,
                Ty::B16 | Ty::F16 => bits16(n as u32),
                _ => u64::from(n as u32),
            }),
            What::Literal(bits) => At::K(match ty {
                Ty::F64 => u64::from(bits) << 32,
                Ty::I64 => bits as i32 as u64,
                Ty::B16 | Ty::F16 => bits16(bits),
                _ => bits.into(),
            }),
            What::Float(wide, narrow) => At::K(match ty {
                Ty::B64 | Ty::I64 | Ty::F64 => wide.to_bits(),
                Ty::B16 | Ty::F16 | Ty::PkF16 => float16::from_f64(wide).into(),
                Ty::Mix if half => float16::from_f64(wide).into(),
                _ => narrow.to_bits().into(),
            }),
        };
        Ok(Src {
            at,
            neg: self.neg,
            abs: self.abs,
        })
    }

    /// A scalar operand.
    pub(crate) fn scalar(&self, wide: bool) -> Result<At, String> {
        let ty = if wide { Ty::B64 } else { Ty::B32 };
        match self.source(ty, false)?.at {
            At::V(_) => Err("a vector register as a scalar operand".to_owned()),
            at => Ok(at),
        }
    }

    /// The first of exactly `count` vector registers.
    pub(crate) fn v(&self, count: u8) -> Result<u8, String> {
        match self.what {
            What::V { first, count: n } if n == count => Ok(first),
            other => Err(format!("{other:?} instead of {count} vector registers")),
        }
    }

    /// The first of exactly `count` scalar registers; NULL stands for any number.
    pub(crate) fn s(&self, count: u8) -> Result<u8, String> {
        match self.what {
            What::S { first, count: n } if n == count || first == NULL => Ok(first),
            other => Err(format!("{other:?} instead of {count} scalar registers")),
        }
    }
}

/// An immediate number.
pub(crate) fn immediate(text: &str) -> Result<i64, String> {
    number(text).ok_or_else(|| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_take_the_format_of_their_operand() {
        let k = |text: &str, ty| parse(text).unwrap().source(ty, false).unwrap().at;
        assert_eq!(k("1.0", Ty::F32), At::K(0x3f80_0000));
        assert_eq!(k("1.0", Ty::F16), At::K(0x3c00));
        assert_eq!(k("1.0", Ty::F64), At::K(0x3ff0_0000_0000_0000));
        assert_eq!(k("-4.0", Ty::F32), At::K(0xc080_0000));
        assert_eq!(k("0.15915494", Ty::F32), At::K(0x3e22_f983));
        assert_eq!(
            k("0.15915494309189532", Ty::F64),
            At::K(0x3fc4_5f30_6dc9_c882)
        );
        assert_eq!(k("-1", Ty::B64), At::K(u64::MAX));
        assert_eq!(k("-1", Ty::F16), At::K(0xffff));
        assert_eq!(k("0x40590000", Ty::F64), At::K(0x4059_0000_0000_0000));
        assert_eq!(k("0xffffffff", Ty::B64), At::K(0xffff_ffff));
        assert_eq!(k("0xffffffff", Ty::I64), At::K(u64::MAX));
    }

    #[test]
    fn registers_and_modifiers_are_read() {
        let x = parse("-|v7|").unwrap();
        assert_eq!((x.v(1), x.neg, x.abs), (Ok(7), true, true));
        assert_eq!(parse("v[4:7]").unwrap().v(4), Ok(4));
        assert_eq!(parse("neg(1.0)").unwrap().what, What::Float(1.0, 1.0));
        for bad in [
            "ttmp3",
            "v256",
            "s106",
            "v[3:1]",
            "src_shared_base",
            "v[250:259]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
