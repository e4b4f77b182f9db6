//! Vector instructions: to a row of the table with its operands, or to an exchange or a matrix product.

use super::operand::{Operand, What, parse};
use super::text::Words;
use crate::exec::dpp::{self, Dpp};
use crate::exec::lanes::{Exchange, Pattern};
use crate::exec::matrix::{Format, Matrix};
use crate::exec::operand::{At, Dst, Src};
use crate::exec::valu::Valu;
use crate::exec::{EXEC, Kind, NULL};
use crate::table::{self, Body, Row, Ty};

const NOTHING: Src = Src::new(At::K(0));

/// A vector instruction that is no pair.
pub(super) fn decode(words: &Words<'_>) -> Result<Kind, String> {
    let name = words.name.strip_prefix("v_").unwrap_or(words.name);
    if let Some(format) = matrix_format(name) {
        return matrix(words, format);
    }
    if let Some(pattern) = exchange_pattern(name, words) {
        return exchange(words, pattern);
    }
    if name == "permlane64_b32" || name == "nop" {
        return Ok(Kind::Nothing);
    }
    valu(words, name).map(|v| Kind::Valu(Box::new(v)))
}

/// One half of a VOPD pair.
pub(super) fn half(words: &Words<'_>) -> Result<Valu, String> {
    let name = words
        .name
        .strip_prefix("v_dual_")
        .ok_or("half of a pair without `v_dual_`")?;
    let mut all = operands(words)?;
    if name == "cndmask_b32" {
        all.push(parse("vcc_lo")?);
    }
    resolve(words, name, all)
}

fn operands(words: &Words<'_>) -> Result<Vec<Operand>, String> {
    words.operands.iter().map(|t| parse(t)).collect()
}

fn valu(words: &Words<'_>, name: &str) -> Result<Valu, String> {
    resolve(words, name, operands(words)?)
}

/// The row's key: some instructions are told apart by modifiers.
fn find(words: &Words<'_>, name: &str) -> Result<(&'static Row, bool), String> {
    let clamp = words.has("clamp");
    let mut key = name
        .strip_prefix("cmpx_")
        .map_or_else(|| name.to_owned(), |rest| format!("cmp_{rest}"));
    if matches!(name, "dot4_i32_iu8" | "dot8_i32_iu4") {
        let signs = words.bits("neg_lo", 0);
        key.push_str([":uu", ":su", ":us", ":ss"][usize::from(signs & 3)]);
    }
    if let Some(row) = table::find(&key).filter(|row| !clamp || row.dst.float()) {
        return Ok((row, clamp));
    }
    if clamp {
        // Saturating integer forms are rows of their own.
        key.push_str(".clamp");
        if let Some(row) = table::find(&key) {
            return Ok((row, false));
        }
    }
    Err("the instruction".to_owned())
}

fn resolve(words: &Words<'_>, name: &str, all: Vec<Operand>) -> Result<Valu, String> {
    let (row, clamp) = find(words, name)?;
    let mut rest = all.into_iter();
    let mut next = || rest.next().ok_or_else(|| "too few operands".to_owned());
    let compare = matches!(row.body, Body::Compare(_) | Body::CompareOne(_));
    let mut flags = NULL;
    let dst = if name.starts_with("cmpx_") {
        Dst::S(EXEC)
    } else if compare {
        Dst::S(next()?.s(1)?)
    } else {
        let first = next()?.v(if row.dst.wide() { 2 } else { 1 })?;
        if matches!(row.body, Body::Flag(_) | Body::FlagOne(_) | Body::Mad(_)) {
            flags = next()?.s(1)?;
        }
        Dst::V(first)
    };
    let accumulates = ["fmac_", "dot2acc_", "pk_fmac_"]
        .iter()
        .any(|p| name.starts_with(p));
    let mixed = row.src.contains(&Ty::Mix);
    let packed = row.dst.packed();
    let op_sel = words.bits("op_sel", 0);
    let op_sel_hi = words.bits("op_sel_hi", if packed { 7 } else { 0 });
    let (mut src, mut src_ty) = ([NOTHING; 3], [Ty::B64; 3]);
    for (k, &ty) in row.src.iter().enumerate() {
        src_ty[k] = ty;
        src[k] = if k == 2 && accumulates {
            match dst {
                Dst::V(register) => Src::new(At::V(register)),
                Dst::S(_) => NOTHING,
            }
        } else {
            let operand = next()?;
            check_width(&operand, ty)?;
            operand.source(ty, mixed && op_sel_hi >> k & 1 == 1)?
        };
        if ty == Ty::Mask {
            check_mask(&src[k])?;
        }
    }
    if next().is_ok() {
        return Err("too many operands".to_owned());
    }
    let high = name == "fma_mixhi_f16"
        || matches!(row.dst, Ty::B16 | Ty::F16) && op_sel >> row.src.len() & 1 == 1;
    Ok(Valu {
        body: row.body,
        dst_ty: row.dst,
        src_ty,
        dst,
        flags,
        src,
        op_sel,
        op_sel_hi,
        neg_lo: words.bits("neg_lo", 0),
        neg_hi: words.bits("neg_hi", 0),
        high,
        scale: scale(words)?,
        clamp,
        dpp: exchange_of_operand(words)?,
    })
}

/// Registers named for an operand must be as many as its format takes.
fn check_width(operand: &Operand, ty: Ty) -> Result<(), String> {
    let want = if ty.wide() { 2 } else { 1 };
    match operand.what {
        What::V { count, .. } if count != want => {
            Err(format!("{count} registers for an operand of {want}"))
        }
        What::S { first, count } if count != want && first != NULL => {
            Err(format!("{count} registers for an operand of {want}"))
        }
        _ => Ok(()),
    }
}

fn check_mask(src: &Src) -> Result<(), String> {
    match src.at {
        At::V(_) => Err("a vector register as a lane mask".to_owned()),
        _ => Ok(()),
    }
}

fn scale(words: &Words<'_>) -> Result<f32, String> {
    match (words.get("mul"), words.get("div")) {
        (None, None) => Ok(1.0),
        (Some("2"), None) => Ok(2.0),
        (Some("4"), None) => Ok(4.0),
        (None, Some("2")) => Ok(0.5),
        _ => Err("the result modifier".to_owned()),
    }
}

/// The DPP pattern of an instruction, if it has one.
fn exchange_of_operand(words: &Words<'_>) -> Result<Option<Dpp>, String> {
    let fetch_inactive = words.number("fi") == Some(1);
    if words.has("dpp8") {
        let choice = words.list("dpp8").ok_or("the dpp8 pattern")?;
        return Ok(Some(Dpp {
            source: dpp::eight(choice),
            zero: true,
            fetch_inactive,
            writes: u32::MAX,
        }));
    }
    let Some(&(key, value)) = words
        .modifiers
        .iter()
        .find(|(k, _)| k.starts_with("row_") && *k != "row_mask" || *k == "quad_perm")
    else {
        return if words.has("row_mask") {
            Err("the DPP control".to_owned())
        } else {
            Ok(None)
        };
    };
    let source = if key == "quad_perm" {
        words.list(key).map(dpp::quad)
    } else if value.is_empty() {
        dpp::row_control(key, 0)
    } else {
        value.parse().ok().and_then(|n| dpp::row_control(key, n))
    };
    let field = |key| match words.number(key) {
        Some(n) if (0..16).contains(&n) => Ok(n as u8),
        Some(_) => Err(format!("the value of {key}")),
        None => Ok(15),
    };
    Ok(Some(Dpp {
        source: source.ok_or_else(|| format!("the DPP control {key}:{value}"))?,
        zero: words.number("bound_ctrl") == Some(1),
        fetch_inactive,
        writes: dpp::mask(field("row_mask")?, field("bank_mask")?),
    }))
}

fn exchange_pattern(name: &str, words: &Words<'_>) -> Option<Pattern> {
    let op_sel = words.bits("op_sel", 0);
    let (fetch_inactive, zero) = (op_sel & 1 == 1, op_sel & 2 == 2);
    Some(match name {
        "readlane_b32" => Pattern::ReadLane,
        "readfirstlane_b32" => Pattern::ReadFirst,
        "writelane_b32" => Pattern::WriteLane,
        "swap_b32" => Pattern::Swap,
        "movrels_b32" => Pattern::FromIndexed,
        "movreld_b32" => Pattern::ToIndexed,
        "permlane16_b32" => Pattern::Row {
            fetch_inactive,
            zero,
        },
        "permlanex16_b32" => Pattern::OtherRow {
            fetch_inactive,
            zero,
        },
        _ => return None,
    })
}

fn exchange(words: &Words<'_>, pattern: Pattern) -> Result<Kind, String> {
    let all = operands(words)?;
    let (dst, sources) = all.split_first().ok_or("too few operands")?;
    let want = match pattern {
        Pattern::ReadFirst | Pattern::Swap | Pattern::FromIndexed | Pattern::ToIndexed => 1,
        Pattern::ReadLane | Pattern::WriteLane => 2,
        Pattern::Row { .. } | Pattern::OtherRow { .. } => 3,
    };
    if sources.len() != want {
        return Err(format!("{} operands instead of {want}", sources.len()));
    }
    let mut src = [NOTHING; 3];
    for (slot, operand) in src.iter_mut().zip(sources) {
        *slot = operand.source(Ty::B32, false)?;
    }
    let scalar_result = matches!(pattern, Pattern::ReadLane | Pattern::ReadFirst);
    let vector_source = !matches!(pattern, Pattern::WriteLane | Pattern::ToIndexed);
    if vector_source && !matches!(src[0].at, At::V(_)) && !scalar_result {
        return Err("a scalar as the operand that lanes exchange".to_owned());
    }
    Ok(Kind::Lanes(Box::new(Exchange {
        pattern,
        dst: if scalar_result { dst.s(1)? } else { dst.v(1)? },
        src,
    })))
}

fn matrix_format(name: &str) -> Option<Format> {
    Some(match name {
        "wmma_f32_16x16x16_f16" => Format::F32F16,
        "wmma_f32_16x16x16_bf16" => Format::F32Bf16,
        "wmma_f16_16x16x16_f16" => Format::F16F16,
        "wmma_bf16_16x16x16_bf16" => Format::Bf16Bf16,
        "wmma_i32_16x16x16_iu8" => Format::I32Iu8,
        "wmma_i32_16x16x16_iu4" => Format::I32Iu4,
        _ => return None,
    })
}

fn matrix(words: &Words<'_>, format: Format) -> Result<Kind, String> {
    let all = operands(words)?;
    let [dst, a, b, c] = all.as_slice() else {
        return Err(format!("{} operands instead of 4", all.len()));
    };
    let factor = match format {
        Format::I32Iu8 => 4,
        Format::I32Iu4 => 2,
        _ => 8,
    };
    a.v(factor)?;
    b.v(factor)?;
    let ty = match format {
        Format::F16F16 | Format::Bf16Bf16 => Ty::F16,
        _ => Ty::B32,
    };
    if matches!(c.what, What::V { .. }) {
        c.v(8)?;
    }
    Ok(Kind::Matrix(Box::new(Matrix {
        format,
        dst: dst.v(8)?,
        src: [
            a.source(Ty::B32, false)?,
            b.source(Ty::B32, false)?,
            c.source(ty, false)?,
        ],
        neg_lo: words.bits("neg_lo", 0),
        neg_hi: words.bits("neg_hi", 0),
        upper: words.bits("op_sel", 0) & 4 != 0,
        clamp: words.has("clamp"),
    })))
}
