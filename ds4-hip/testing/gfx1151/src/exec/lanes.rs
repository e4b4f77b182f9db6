//! Exchange between lanes in vector registers, and between vector and scalar registers.

use super::operand::{At, Src};
use super::wave::{M0, Wave, each};
use crate::fault::{Done, Trouble};

/// What is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One lane of a vector register to a scalar register; ignores EXEC.
    ReadLane,
    /// The first active lane, or lane 0 when none is active.
    ReadFirst,
    /// A scalar to one lane; ignores EXEC.
    WriteLane,
    /// Any lane of the same row of 16.
    Row { fetch_inactive: bool, zero: bool },
    /// Any lane of the other row.
    OtherRow { fetch_inactive: bool, zero: bool },
    /// Two registers trade their values.
    Swap,
    /// The vector register that lies M0 registers after the source.
    FromIndexed,
    /// To the vector register that lies M0 registers after the destination.
    ToIndexed,
}

/// A resolved exchange.
pub(crate) struct Exchange {
    pub(crate) pattern: Pattern,
    /// A scalar register for the lane reads, else a vector register.
    pub(crate) dst: u8,
    pub(crate) src: [Src; 3],
}

/// Execute it.
pub(crate) fn run(w: &mut Wave, i: &Exchange) -> Done {
    let exec = w.exec();
    match i.pattern {
        Pattern::ReadLane | Pattern::ReadFirst => {
            let lane = match i.pattern {
                Pattern::ReadLane => w.scalar(i.src[1].at)? & 31,
                _ => exec.trailing_zeros() & 31,
            };
            let value = match i.src[0].at {
                At::V(register) => w.v(register, 1 << lane)?[lane as usize],
                at => w.scalar(at)?,
            };
            w.write_s(i.dst, value);
        }
        Pattern::WriteLane => {
            let (value, lane) = (w.scalar(i.src[0].at)?, w.scalar(i.src[1].at)?);
            w.write_lane(i.dst, lane as usize & 31, value);
        }
        Pattern::Swap => {
            let At::V(other) = i.src[0].at else {
                return Ok(());
            };
            let (a, b) = (*w.v(i.dst, exec)?, *w.v(other, exec)?);
            w.write_v(i.dst, exec, &b);
            w.write_v(other, exec, &a);
        }
        Pattern::FromIndexed => {
            let At::V(first) = i.src[0].at else {
                return Ok(());
            };
            let value = *w.v(indexed(w, first)?, exec)?;
            w.write_v(i.dst, exec, &value);
        }
        Pattern::ToIndexed => {
            let value = *w.plain(&i.src[0], exec, &mut [0; 32])?;
            w.write_v(indexed(w, i.dst)?, exec, &value);
        }
        Pattern::Row {
            fetch_inactive,
            zero,
        } => permute(w, i, 0, fetch_inactive, zero)?,
        Pattern::OtherRow {
            fetch_inactive,
            zero,
        } => permute(w, i, 16, fetch_inactive, zero)?,
    }
    Ok(())
}

/// The register M0 after `first`.
fn indexed(w: &Wave, first: u8) -> Done<u8> {
    let index = u64::from(first) + u64::from(w.s(M0)?);
    u8::try_from(index).map_err(|_| {
        Trouble::NotModelled {
            what: "a register index beyond the last register",
        }
        .into()
    })
}

/// `v_permlane16` and, with `flip` 16, `v_permlanex16`: operands 1 and 2 hold 16 lane numbers of 4 bits.
fn permute(w: &mut Wave, i: &Exchange, flip: usize, fetch_inactive: bool, zero: bool) -> Done {
    let exec = w.exec();
    let select = u64::from(w.scalar(i.src[1].at)?) | u64::from(w.scalar(i.src[2].at)?) << 32;
    let At::V(register) = i.src[0].at else {
        return Ok(());
    };
    let readable = if fetch_inactive { u32::MAX } else { exec };
    let (from, mut out) = (w.v_kept(register), [0; 32]);
    let (mut lanes, mut read) = (0_u32, 0_u32);
    for l in each(exec) {
        let source = l & 16 ^ flip | (select >> (4 * (l & 15)) & 15) as usize;
        if readable >> source & 1 == 1 {
            out[l] = from[source];
            read |= 1 << source;
            lanes |= 1 << l;
        } else if zero {
            lanes |= 1 << l;
        }
    }
    w.written(register, read)?;
    w.write_v(i.dst, lanes, &out);
    Ok(())
}
