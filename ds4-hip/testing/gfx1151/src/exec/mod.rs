//! Execution: one resolved instruction on one wave.

pub(crate) mod dpp;
pub(crate) mod lanes;
pub(crate) mod lds;
pub(crate) mod matrix;
pub(crate) mod operand;
pub(crate) mod race;
pub(crate) mod salu;
pub(crate) mod step;
pub(crate) mod valu;
pub(crate) mod vmem;
mod wave;

pub(crate) use wave::{EXEC, Lanes, M0, NULL, State, VCC, Wave};

use crate::options::Class;

/// A resolved instruction.
pub(crate) struct Inst {
    pub(crate) kind: Kind,
    pub(crate) class: Class,
}

/// What an instruction does, operands resolved.
pub(crate) enum Kind {
    Valu(Box<valu::Valu>),
    /// Two that issue together: both read before either writes.
    Dual(Box<[valu::Valu; 2]>),
    Lanes(Box<lanes::Exchange>),
    Matrix(Box<matrix::Matrix>),
    Salu(salu::Salu),
    CopyScalar(salu::Copy),
    SaveExec(salu::SaveExec),
    LoadScalar(salu::Load),
    Branch(step::Branch),
    /// To the address in a pair of scalar registers; the return address goes to `link`.
    Jump {
        target: operand::At,
        link: Option<u8>,
    },
    /// The address of the next instruction.
    GetPc(u8),
    SetMode {
        offset: u8,
        bits: u8,
        value: operand::At,
    },
    GetMode {
        offset: u8,
        bits: u8,
        dst: u8,
    },
    Memory(Box<vmem::Vmem>),
    Lds(Box<lds::Lds>),
    Barrier,
    Nothing,
    Trap,
    End,
}
