//! Scalar instructions and control flow.

use super::operand::{Operand, immediate, parse};
use super::text::{Line, Words};
use crate::exec::operand::At;
use crate::exec::salu::{Copy, Load, Salu, SaveExec};
use crate::exec::step::{Branch, When};
use crate::exec::{Kind, NULL};
use crate::options::Class;
use crate::table::scalar;

/// Instructions that wait, hint or pad.
const NOTHING: [&str; 18] = [
    "nop",
    "waitcnt",
    "waitcnt_vscnt",
    "waitcnt_vmcnt",
    "waitcnt_expcnt",
    "waitcnt_lgkmcnt",
    "waitcnt_depctr",
    "wait_idle",
    "clause",
    "delay_alu",
    "sleep",
    "setprio",
    "set_inst_prefetch_distance",
    "inst_prefetch",
    "icache_inv",
    "code_end",
    "version",
    "ttracedata_imm",
];

/// Decode `words`, the instruction of `line`.
pub(super) fn decode(words: &Words<'_>, line: &Line<'_>) -> Result<(Kind, Class), String> {
    let name = words.name.strip_prefix("s_").unwrap_or(words.name);
    if NOTHING.contains(&name) {
        return Ok((Kind::Nothing, Class::Wait));
    }
    if let Some(kind) = control(words, name, line)? {
        return Ok((kind, Class::Branch));
    }
    if let Some(words_loaded) = name
        .strip_prefix("load_b")
        .and_then(|bits| bits.parse::<u16>().ok())
    {
        return load(words, (words_loaded / 32) as u8).map(|l| (Kind::LoadScalar(l), Class::Smem));
    }
    let kind = match mode(words, name)? {
        Some(kind) => kind,
        None => arithmetic(words, name)?,
    };
    Ok((kind, Class::Salu))
}

fn operands(words: &Words<'_>) -> Result<Vec<Operand>, String> {
    words.operands.iter().map(|t| parse(t)).collect()
}

fn only<'a>(words: &Words<'a>, k: usize) -> Result<&'a str, String> {
    words
        .operands
        .get(k)
        .copied()
        .ok_or_else(|| "too few operands".to_owned())
}

fn control(words: &Words<'_>, name: &str, line: &Line<'_>) -> Result<Option<Kind>, String> {
    let when = match name {
        "branch" => When::Always,
        "cbranch_scc0" => When::Scc(false),
        "cbranch_scc1" => When::Scc(true),
        "cbranch_vccz" => When::VccZero(true),
        "cbranch_vccnz" => When::VccZero(false),
        "cbranch_execz" => When::ExecZero(true),
        "cbranch_execnz" => When::ExecZero(false),
        "barrier" => return Ok(Some(Kind::Barrier)),
        "endpgm" => return Ok(Some(Kind::End)),
        "trap" => return Ok(Some(Kind::Trap)),
        // The kernel's registers go back early; nothing follows but the end.
        "sendmsg" if only(words, 0)? == "sendmsg(MSG_DEALLOC_VGPRS)" => {
            return Ok(Some(Kind::Nothing));
        }
        "getpc_b64" => return Ok(Some(Kind::GetPc(parse(only(words, 0)?)?.s(2)?))),
        "setpc_b64" => {
            let target = At::S(parse(only(words, 0)?)?.s(2)?);
            return Ok(Some(Kind::Jump { target, link: None }));
        }
        "swappc_b64" => {
            let target = At::S(parse(only(words, 1)?)?.s(2)?);
            let link = Some(parse(only(words, 0)?)?.s(2)?);
            return Ok(Some(Kind::Jump { target, link }));
        }
        _ => return Ok(None),
    };
    // The text may name a label instead of the distance; the low half of the encoding always has it.
    let distance = i64::from(line.encoding as u16 as i16);
    Ok(Some(Kind::Branch(Branch {
        when,
        target: None,
        address: line.address.wrapping_add_signed(4 + 4 * distance),
    })))
}

fn load(words: &Words<'_>, count: u8) -> Result<Load, String> {
    if !matches!(count, 1 | 2 | 4 | 8 | 16) {
        return Err("the width of the load".to_owned());
    }
    let all = operands(words)?;
    let [dst, base, last] = all.as_slice() else {
        return Err(format!("{} operands instead of 3", all.len()));
    };
    let (register, first) = match last.scalar(false)? {
        At::S(register) => (register, 0),
        // Immediate offsets are signed numbers of 21 bits, written in hexadecimal.
        At::K(bits) => (NULL, i64::from(bits as u32 as i32)),
        _ => return Err("the offset".to_owned()),
    };
    Ok(Load {
        words: count,
        dst: dst.s(count)?,
        base: base.s(2)?,
        register,
        offset: first + words.number("offset").unwrap_or(0),
    })
}

/// Instructions about the MODE register.
fn mode(words: &Words<'_>, name: &str) -> Result<Option<Kind>, String> {
    let whole = |offset, bits, text: &str| -> Result<Option<Kind>, String> {
        Ok(Some(Kind::SetMode {
            offset,
            bits,
            value: At::K(immediate(text)? as u64),
        }))
    };
    match name {
        "denorm_mode" => whole(4, 4, only(words, 0)?),
        "round_mode" => whole(0, 4, only(words, 0)?),
        "setreg_imm32_b32" => {
            let (offset, bits) = field(only(words, 0)?)?;
            whole(offset, bits, only(words, 1)?)
        }
        "setreg_b32" => {
            let (offset, bits) = field(only(words, 0)?)?;
            let value = parse(only(words, 1)?)?.scalar(false)?;
            Ok(Some(Kind::SetMode {
                offset,
                bits,
                value,
            }))
        }
        "getreg_b32" => {
            let (offset, bits) = field(only(words, 1)?)?;
            let dst = parse(only(words, 0)?)?.s(1)?;
            Ok(Some(Kind::GetMode { offset, bits, dst }))
        }
        _ => Ok(None),
    }
}

/// `hwreg(HW_REG_MODE, offset, bits)`, where only the denormal and rounding bits (0 to 7) are known.
fn field(text: &str) -> Result<(u8, u8), String> {
    let unknown = || format!("the hardware register `{text}`");
    let inner = text
        .strip_prefix("hwreg(HW_REG_MODE")
        .and_then(|t| t.strip_suffix(')'))
        .ok_or_else(unknown)?;
    let numbers: Vec<u8> = inner
        .split(',')
        .skip(1)
        .map(|n| n.trim().parse().map_err(|_| unknown()))
        .collect::<Result<_, _>>()?;
    match numbers[..] {
        [offset, bits] if bits >= 1 && offset.saturating_add(bits) <= 8 => Ok((offset, bits)),
        _ => Err(unknown()),
    }
}

fn arithmetic(words: &Words<'_>, name: &str) -> Result<Kind, String> {
    if let Some((op, new)) = SaveExec::find(name) {
        return Ok(Kind::SaveExec(SaveExec {
            op,
            new,
            dst: parse(only(words, 0)?)?.s(1)?,
            src: parse(only(words, 1)?)?.scalar(false)?,
        }));
    }
    if let Some(wide) = ["mov_b32", "mov_b64"].iter().position(|n| *n == name) {
        let wide = wide == 1;
        return Ok(Kind::CopyScalar(Copy {
            dst: parse(only(words, 0)?)?.s(if wide { 2 } else { 1 })?,
            src: parse(only(words, 1)?)?.scalar(wide)?,
            wide,
        }));
    }
    let row = scalar::find(name).ok_or("the instruction")?;
    let all = operands(words)?;
    let mut rest = all.as_slice();
    let mut dst = NULL;
    if row.dst != 0 {
        let (first, tail) = rest.split_first().ok_or("too few operands")?;
        dst = first.s(row.dst / 32)?;
        rest = tail;
    }
    let (mut src, mut wide) = ([At::K(0); 3], 0);
    if rest.len() > row.src.len() || rest.len() + 1 < row.src.len() {
        return Err(format!("{} operands", rest.len()));
    }
    for (k, &bits) in row.src.iter().enumerate() {
        wide |= u8::from(bits == 64) << k;
        src[k] = match rest.get(k) {
            Some(operand) => operand.scalar(bits == 64)?,
            None if row.dst != 0 => At::S(dst),
            None => return Err("too few operands".to_owned()),
        };
    }
    Ok(Kind::Salu(Salu {
        step: row.step,
        bits: row.dst,
        dst,
        src,
        wide,
        scc: row.scc,
    }))
}
