//! Global, flat and LDS instructions.

use super::operand::{Operand, What, parse};
use super::text::{Words, number};
use crate::exec::lds::{self, Lds};
use crate::exec::vmem::{self, Part, Vmem};
use crate::exec::{Kind, dpp};
use crate::table::atomic;

/// The name after `load_` or `store_`, and what of a register it moves.
fn part(name: &str) -> Option<Part> {
    let small = |bytes, signed| Some(Part::Small { bytes, signed });
    let half = |bytes, signed, upper| {
        Some(Part::Half {
            bytes,
            signed,
            upper,
        })
    };
    match name {
        "b32" => Some(Part::Words(1)),
        "b64" => Some(Part::Words(2)),
        "b96" => Some(Part::Words(3)),
        "b128" => Some(Part::Words(4)),
        "u8" | "b8" => small(1, false),
        "i8" => small(1, true),
        "u16" | "b16" => small(2, false),
        "i16" => small(2, true),
        "d16_u8" | "u8_d16" => half(1, false, false),
        "d16_i8" | "i8_d16" => half(1, true, false),
        "d16_b16" | "u16_d16" => half(2, false, false),
        "d16_hi_u8" | "u8_d16_hi" | "d16_hi_b8" | "b8_d16_hi" => half(1, false, true),
        "d16_hi_i8" | "i8_d16_hi" => half(1, true, true),
        "d16_hi_b16" | "u16_d16_hi" | "b16_d16_hi" => half(2, false, true),
        _ => None,
    }
}

fn registers(part: Part) -> u8 {
    match part {
        Part::Words(n) => n,
        _ => 1,
    }
}

fn operands(words: &Words<'_>) -> Result<Vec<Operand>, String> {
    words.operands.iter().map(|t| parse(t)).collect()
}

struct Operands<I>(I);

impl<I: Iterator<Item = Operand>> Operands<I> {
    fn next(&mut self) -> Result<Operand, String> {
        self.0.next().ok_or_else(|| "too few operands".to_owned())
    }

    fn v(&mut self, count: u8) -> Result<u8, String> {
        self.next()?.v(count)
    }

    fn end(&mut self) -> Result<(), String> {
        match self.0.next() {
            Some(_) => Err("too many operands".to_owned()),
            None => Ok(()),
        }
    }
}

/// `global_*` and `flat_*`; `name` is what follows.
pub(super) fn global(words: &Words<'_>, name: &str, flat: bool) -> Result<Kind, String> {
    let mut rest = Operands(operands(words)?.into_iter());
    let unknown = || "the instruction".to_owned();
    let (data, action);
    let mut result = 0;
    let mut address = None;
    if let Some(kind) = name.strip_prefix("load_") {
        let part = part(kind).ok_or_else(unknown)?;
        data = rest.v(registers(part))?;
        action = vmem::Action::Load(part);
    } else if let Some(kind) = name.strip_prefix("store_") {
        let part = part(kind).ok_or_else(unknown)?;
        address = Some(rest.next()?);
        data = rest.v(registers(part))?;
        action = vmem::Action::Store(part);
    } else {
        let kind = name.strip_prefix("atomic_").ok_or_else(unknown)?;
        let atomic = atomic::find(kind).ok_or_else(unknown)?;
        let returns = words.has("glc");
        let count = atomic.bytes / 4;
        if returns {
            result = rest.v(count)?;
        }
        address = Some(rest.next()?);
        data = rest.v(if atomic.compares { 2 * count } else { count })?;
        action = vmem::Action::Atomic(atomic, returns);
    }
    let address = match address {
        Some(address) => address,
        None => rest.next()?,
    };
    let base = if flat { None } else { Some(rest.next()?) };
    rest.end()?;
    let base = match base.map(|b| b.what) {
        None | Some(What::Off) => None,
        Some(What::S { first, count: 2 }) => Some(first),
        Some(_) => return Err("the base address".to_owned()),
    };
    let address = match (address.what, base) {
        (What::V { .. }, None) => Some(address.v(2)?),
        (What::V { .. }, Some(_)) => Some(address.v(1)?),
        (What::Off, Some(_)) => None,
        _ => return Err("the address".to_owned()),
    };
    Ok(Kind::Memory(Box::new(Vmem {
        action,
        data,
        result,
        address,
        base,
        offset: words.number("offset").unwrap_or(0),
    })))
}

/// `ds_*`; `name` is what follows.
pub(super) fn lds(words: &Words<'_>, name: &str) -> Result<Kind, String> {
    let mut rest = Operands(operands(words)?.into_iter());
    let unknown = || "the instruction".to_owned();
    if words.has("gds") {
        return Err("global data share".to_owned());
    }
    if name == "swizzle_b32" {
        let (dst, address) = (rest.v(1)?, rest.v(1)?);
        let source = swizzle(words.get("offset").unwrap_or("0"))?;
        return Ok(finish(
            lds::Action::Swizzle(source),
            dst,
            address,
            [0; 2],
            [0; 2],
            false,
        ));
    }
    let offset = words.number("offset").unwrap_or(0) as u32;
    let (mut dst, mut data) = (0, [0; 2]);
    if name == "bpermute_b32" || name == "permute_b32" {
        let action = if name == "permute_b32" {
            lds::Action::Push
        } else {
            lds::Action::Pull
        };
        dst = rest.v(1)?;
        let address = rest.v(1)?;
        data[0] = rest.v(1)?;
        rest.end()?;
        return Ok(finish(action, dst, address, data, [offset, 0], false));
    }
    let two_offsets = |bytes: u32, name: &str| {
        let unit = bytes * if name.contains("stride64") { 64 } else { 1 };
        ["offset0", "offset1"].map(|key| words.number(key).unwrap_or(0) as u32 * unit)
    };
    if let Some(kind) = name.strip_prefix("load_") {
        let kind_of_one = kind
            .trim_start_matches("2addr_")
            .trim_start_matches("stride64_");
        let two = kind != kind_of_one;
        let part = part(kind_of_one).ok_or_else(unknown)?;
        let count = registers(part);
        dst = rest.v(if two { 2 * count } else { count })?;
        let address = rest.v(1)?;
        rest.end()?;
        let offsets = if two {
            two_offsets(4 * u32::from(count), kind)
        } else {
            [offset, 0]
        };
        return Ok(finish(
            lds::Action::Load(part),
            dst,
            address,
            data,
            offsets,
            two,
        ));
    }
    if let Some(kind) = name.strip_prefix("store_") {
        let kind_of_one = kind
            .trim_start_matches("2addr_")
            .trim_start_matches("stride64_");
        let two = kind != kind_of_one;
        let part = part(kind_of_one).ok_or_else(unknown)?;
        let count = registers(part);
        let address = rest.v(1)?;
        data[0] = rest.v(count)?;
        if two {
            data[1] = rest.v(count)?;
        }
        rest.end()?;
        let offsets = if two {
            two_offsets(4 * u32::from(count), kind)
        } else {
            [offset, 0]
        };
        return Ok(finish(
            lds::Action::Store(part),
            dst,
            address,
            data,
            offsets,
            two,
        ));
    }
    let (plain, returns) = match name.split_once("_rtn_") {
        Some((op, ty)) => (format!("{op}_{ty}"), true),
        None => (name.to_owned(), false),
    };
    let atomic = atomic::find(&plain).ok_or_else(unknown)?;
    let count = atomic.bytes / 4;
    if returns {
        dst = rest.v(count)?;
    }
    let address = rest.v(1)?;
    data[0] = rest.v(count)?;
    if atomic.compares {
        data[1] = rest.v(count)?;
    }
    rest.end()?;
    Ok(finish(
        lds::Action::Atomic(atomic, returns),
        dst,
        address,
        data,
        [offset, 0],
        false,
    ))
}

fn finish(
    action: lds::Action,
    dst: u8,
    address: u8,
    data: [u8; 2],
    offsets: [u32; 2],
    two: bool,
) -> Kind {
    Kind::Lds(Box::new(Lds {
        action,
        dst,
        address,
        data,
        offsets,
        two,
    }))
}

/// The pattern of `ds_swizzle_b32`, by name or as the raw offset: for each lane the lane it reads.
fn swizzle(text: &str) -> Result<[u8; 32], String> {
    let unknown = || format!("the swizzle `{text}`");
    let masks = |and: u8, or: u8, xor: u8| std::array::from_fn(|l| (l as u8 & and | or) ^ xor);
    let Some(inner) = text
        .strip_prefix("swizzle(")
        .and_then(|t| t.strip_suffix(')'))
    else {
        let raw = number(text).ok_or_else(unknown)? as u16;
        return match raw {
            0..=0x7fff => Ok(masks(
                raw as u8 & 31,
                (raw >> 5) as u8 & 31,
                (raw >> 10) as u8 & 31,
            )),
            0x8000..=0xbfff => Ok(dpp::quad(std::array::from_fn(|k| {
                (raw >> (2 * k)) as u8 & 3
            }))),
            0xc000..=0xdfff => Ok(rotate(
                raw >> 10 & 1 == 1,
                (raw >> 5) as u8 & 31,
                raw as u8 & 31,
            )),
            _ => Err(unknown()),
        };
    };
    let mut fields = inner.split(',').map(str::trim);
    let mode = fields.next().unwrap_or_default();
    if mode == "BITMASK_PERM" {
        let bits = fields.next().ok_or_else(unknown)?.trim_matches('"');
        let (mut and, mut or, mut xor) = (0, 0, 0);
        if bits.len() != 5 {
            return Err(unknown());
        }
        for c in bits.chars() {
            (and, or, xor) = (and << 1, or << 1, xor << 1);
            match c {
                '0' => {}
                '1' => or |= 1,
                'p' => and |= 1,
                'i' => (and, xor) = (and | 1, xor | 1),
                _ => return Err(unknown()),
            }
        }
        return Ok(masks(and, or, xor));
    }
    let numbers: Vec<u8> = fields
        .map(|n| n.parse().map_err(|_| unknown()))
        .collect::<Result<_, _>>()?;
    match (mode, &numbers[..]) {
        ("SWAP", &[n @ (1 | 2 | 4 | 8 | 16)]) => Ok(masks(31, 0, n)),
        ("REVERSE", &[n @ (2 | 4 | 8 | 16 | 32)]) => Ok(masks(31, 0, n - 1)),
        ("BROADCAST", &[n @ (2 | 4 | 8 | 16 | 32), lane]) if lane < n => Ok(masks(32 - n, lane, 0)),
        ("QUAD_PERM", &[a, b, c, d]) => Ok(dpp::quad([a, b, c, d])),
        ("ROTATE", &[direction, count]) if count < 32 => Ok(rotate(direction == 1, count, 0)),
        _ => Err(unknown()),
    }
}

/// Rotation of the lanes; those in `mask` of the lane number stay.
fn rotate(right: bool, by: u8, mask: u8) -> [u8; 32] {
    std::array::from_fn(|l| {
        let l = l as u8;
        let turned = if right {
            l.wrapping_sub(by)
        } else {
            l.wrapping_add(by)
        };
        l & mask | turned & 31 & !mask
    })
}
