//! Scalar arithmetic, masks of active lanes, and loads of scalars.

use super::operand::At;
use super::wave::{EXEC, NULL, Wave};
use crate::fault::{Done, Trouble};
use crate::memory::View;
use crate::table::scalar::Step;

/// A resolved scalar instruction.
pub(crate) struct Salu {
    pub(crate) step: Step,
    /// Bits of the result; 0 for comparisons.
    pub(crate) bits: u8,
    pub(crate) dst: u8,
    pub(crate) src: [At; 3],
    /// Bit k: operand k is 64 bits wide.
    pub(crate) wide: u8,
    pub(crate) scc: bool,
}

/// Execute it.
#[inline]
pub(crate) fn run(w: &mut Wave, i: &Salu) -> Done {
    let get = |k: usize| {
        if i.wide >> k & 1 == 1 {
            w.scalar64(i.src[k])
        } else {
            w.scalar(i.src[k]).map(u64::from)
        }
    };
    let (value, scc) = (i.step)(get(0)?, get(1)?, get(2)?, w.scc);
    match i.bits {
        32 => w.write_s(i.dst, value as u32),
        64 => w.write_s64(i.dst, value),
        _ => {}
    }
    if i.scc {
        w.scc = scc;
    }
    Ok(())
}

/// `s_mov_b32` and `s_mov_b64`: a copy of what was never written counts as never written, as for vector registers.
pub(crate) struct Copy {
    pub(crate) dst: u8,
    pub(crate) src: At,
    pub(crate) wide: bool,
}

impl Copy {
    /// Execute it.
    pub(crate) fn run(&self, w: &mut Wave) -> Done {
        if let (At::S(from), true) = (self.src, self.src != At::S(NULL)) {
            // Both are read before either is written: the pairs may overlap.
            let low = w.kept_s(from);
            let high = w.kept_s(from.wrapping_add(1));
            w.put_s(self.dst, low);
            if self.wide && self.dst != NULL {
                w.put_s(self.dst + 1, high);
            }
        } else if self.wide {
            let value = w.scalar64(self.src)?;
            w.write_s64(self.dst, value);
        } else {
            let value = w.scalar(self.src)?;
            w.write_s(self.dst, value);
        }
        Ok(())
    }
}

/// A new EXEC from a source and the old one.
pub(crate) type Masking = fn(u32, u32) -> u32;

/// `s_OP_saveexec` and `s_OP_wrexec`: EXEC becomes `op(source, EXEC)`.
pub(crate) struct SaveExec {
    pub(crate) op: Masking,
    /// The destination gets the new EXEC instead of the old.
    pub(crate) new: bool,
    pub(crate) dst: u8,
    pub(crate) src: At,
}

impl SaveExec {
    /// By the name without `s_` and without the suffix; whether the destination gets the new EXEC.
    pub(crate) fn find(name: &str) -> Option<(Masking, bool)> {
        let (name, new) = match name.strip_suffix("_saveexec_b32") {
            Some(name) => (name, false),
            None => (name.strip_suffix("_wrexec_b32")?, true),
        };
        let op: Masking = match name {
            "and" => |s, e| s & e,
            "or" => |s, e| s | e,
            "xor" => |s, e| s ^ e,
            "nand" => |s, e| !(s & e),
            "nor" => |s, e| !(s | e),
            "xnor" => |s, e| !(s ^ e),
            "and_not0" => |s, e| !s & e,
            "or_not0" => |s, e| !s | e,
            "and_not1" => |s, e| s & !e,
            "or_not1" => |s, e| s | !e,
            _ => return None,
        };
        Some((op, new))
    }

    /// Execute it.
    pub(crate) fn run(&self, w: &mut Wave) -> Done {
        let (source, old) = (w.scalar(self.src)?, w.exec());
        let exec = (self.op)(source, old);
        w.write_s(self.dst, if self.new { exec } else { old });
        w.write_s(EXEC, exec);
        w.scc = exec != 0;
        Ok(())
    }
}

/// A scalar load of 1 to 16 words.
pub(crate) struct Load {
    pub(crate) words: u8,
    pub(crate) dst: u8,
    pub(crate) base: u8,
    /// A scalar register added to the address; [`NULL`] for none.
    pub(crate) register: u8,
    pub(crate) offset: i64,
}

impl Load {
    /// Execute it.
    pub(crate) fn run(&self, w: &mut Wave, memory: &mut View<'_>) -> Done {
        let mut address = w.s64(self.base)?.wrapping_add_signed(self.offset);
        if self.register != NULL {
            address = address.wrapping_add(w.s(self.register)?.into());
        }
        if address % 4 != 0 {
            return Err(Trouble::Misaligned { address, need: 4 }.into());
        }
        for k in 0..self.words {
            let word = memory.load::<4>(address.wrapping_add(4 * u64::from(k)))?;
            w.write_s(self.dst.wrapping_add(k), u32::from_le_bytes(word));
        }
        Ok(())
    }
}
