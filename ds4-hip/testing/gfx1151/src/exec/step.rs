//! The dispatch of one instruction, and control flow.

use super::wave::{State, VCC, Wave};
use super::{Inst, Kind, lanes, lds, matrix, salu, valu};
use crate::fault::{Done, Trouble};
use crate::memory::View;

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Scc(bool),
    /// VCC is zero, or is not.
    VccZero(bool),
    ExecZero(bool),
}

/// A branch to an instruction.
pub(crate) struct Branch {
    pub(crate) when: When,
    /// Index of the instruction; none for an address where none starts.
    pub(crate) target: Option<usize>,
    pub(crate) address: u64,
}

/// What executing needs besides the wave.
pub(crate) struct Context<'a> {
    pub(crate) memory: View<'a>,
    pub(crate) lds: lds::Block,
    /// Index of the instruction at each word of the text section, and where that begins.
    pub(crate) code: &'a crate::module::Code,
    /// Host address of the code object's address 0.
    pub(crate) base: u64,
}

/// Execute `inst`, the instruction at index `w.pc`, which has been advanced already.
#[inline]
pub(crate) fn step(w: &mut Wave, inst: &Inst, c: &mut Context<'_>) -> Done {
    match &inst.kind {
        Kind::Valu(i) => valu::run(w, i)?,
        Kind::Dual(pair) => valu::run_dual(w, pair)?,
        Kind::Salu(i) => salu::run(w, i)?,
        Kind::Branch(i) => branch(w, i)?,
        Kind::Nothing => {}
        Kind::Lanes(i) => lanes::run(w, i)?,
        Kind::Matrix(i) => matrix::run(w, i)?,
        Kind::CopyScalar(i) => i.run(w)?,
        Kind::SaveExec(i) => i.run(w)?,
        Kind::LoadScalar(i) => i.run(w, &mut c.memory)?,
        Kind::Memory(i) => i.run(w, &mut c.memory)?,
        Kind::Lds(i) => lds::run(w, i, &mut c.lds)?,
        Kind::Barrier => barrier(w)?,
        Kind::End => w.state = State::Ended,
        Kind::Trap => return Err(Trouble::Trap.into()),
        Kind::GetPc(dst) => {
            let next = c.base.wrapping_add(c.code.address(w.pc));
            w.write_s64(*dst, next);
        }
        Kind::Jump { target, link } => {
            let address = w.scalar64(*target)?.wrapping_sub(c.base);
            let next = c.base.wrapping_add(c.code.address(w.pc));
            w.pc = c.code.index(address).ok_or(Trouble::Jump { address })?;
            if let Some(link) = link {
                w.write_s64(*link, next);
            }
        }
        Kind::SetMode {
            offset,
            bits,
            value,
        } => set_mode(w, *offset, *bits, w.scalar(*value)?)?,
        Kind::GetMode { offset, bits, dst } => {
            let mode = u32::from(w.denormals) << 4 >> offset;
            w.write_s(*dst, mode & ones(*bits));
        }
    }
    Ok(())
}

fn ones(bits: u8) -> u32 {
    u32::MAX >> (32 - u32::from(bits.clamp(1, 32)))
}

#[inline]
fn branch(w: &mut Wave, i: &Branch) -> Done {
    let taken = match i.when {
        When::Always => true,
        When::Scc(set) => w.scc == set,
        When::VccZero(zero) => (w.s(VCC)? == 0) == zero,
        When::ExecZero(zero) => (w.exec() == 0) == zero,
    };
    if taken {
        w.pc = i.target.ok_or(Trouble::Jump { address: i.address })?;
    }
    Ok(())
}

fn barrier(w: &mut Wave) -> Done {
    if w.exec() != w.lanes {
        return Err(Trouble::BarrierDivergence {
            what: format!(
                "the wave has lanes {:#010x} and only {:#010x} are active",
                w.lanes,
                w.exec()
            ),
        }
        .into());
    }
    w.state = State::Barrier(w.pc);
    Ok(())
}

/// Write bits of the MODE register: the rounding modes may only stay what they are, the denormal modes of f32 may change.
fn set_mode(w: &mut Wave, offset: u8, bits: u8, value: u32) -> Done {
    let mask = ones(bits) << offset;
    let old = u32::from(w.denormals) << 4;
    let new = old & !mask | value << offset & mask;
    if new & 15 != 0 {
        return Err(Trouble::NotModelled {
            what: "a rounding mode other than nearest even",
        }
        .into());
    }
    if new >> 6 & 3 != 3 {
        return Err(Trouble::NotModelled {
            what: "flushing of f16 and f64 denormals",
        }
        .into());
    }
    w.denormals = (new >> 4 & 15) as u8;
    Ok(())
}
