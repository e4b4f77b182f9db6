//! From the disassembler's text to resolved instructions.
//!
//! The text of `llvm-objdump` is the compiler's own reading of the bits; nothing here decodes bits a second time.

mod memory;
pub(crate) mod operand;
mod scalar;
pub(crate) mod text;
mod vector;

use self::text::{Line, Words};
use crate::exec::{Inst, Kind};
use crate::options::Class;

/// Decode one instruction.
///
/// # Errors
/// Says which part of it is unknown.
pub(crate) fn decode(line: &Line<'_>) -> Result<Inst, String> {
    let text = line.text;
    if let Some((x, y)) = text.split_once(" :: ") {
        let pair = [vector::half(&Words::new(x))?, vector::half(&Words::new(y))?];
        return Ok(Inst {
            kind: Kind::Dual(Box::new(pair)),
            class: Class::Valu,
        });
    }
    let name = text.split(' ').next().unwrap_or_default();
    if name == "s_delay_alu" {
        return Ok(Inst {
            kind: Kind::Nothing,
            class: Class::Wait,
        });
    }
    let words = Words::new(text);
    let (kind, class) = if name.starts_with("s_") {
        scalar::decode(&words, line)?
    } else if name.starts_with("v_") {
        let kind = vector::decode(&words)?;
        let class = match kind {
            Kind::Matrix(_) => Class::Wmma,
            _ => Class::Valu,
        };
        (kind, class)
    } else if let Some(rest) = name.strip_prefix("ds_") {
        (memory::lds(&words, rest)?, Class::Lds)
    } else if let Some(rest) = name.strip_prefix("global_") {
        (memory::global(&words, rest, false)?, Class::Vmem)
    } else if let Some(rest) = name.strip_prefix("flat_") {
        (memory::global(&words, rest, true)?, Class::Vmem)
    } else if matches!(name, "buffer_gl0_inv" | "buffer_gl1_inv") {
        (Kind::Nothing, Class::Wait)
    } else {
        return Err("the instruction".to_owned());
    };
    Ok(Inst { kind, class })
}
