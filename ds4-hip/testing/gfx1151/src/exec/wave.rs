//! A wave: 32 lanes with their registers, and which of those hold a value.

use super::operand::{At, Src};
use crate::fault::{Done, Stop, Trouble};

/// One 32-bit value a lane.
pub(crate) type Lanes = [u32; 32];

/// Number of VCC_LO among the scalar registers.
pub(crate) const VCC: u8 = 106;
/// Number of NULL: reads as zero, writes vanish.
pub(crate) const NULL: u8 = 124;
/// Number of M0.
pub(crate) const M0: u8 = 125;
/// Number of EXEC_LO.
pub(crate) const EXEC: u8 = 126;

/// Where a wave is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// At the barrier with this instruction index.
    Barrier(usize),
    Ended,
}

/// The registers of one wave.
pub(crate) struct Wave {
    v: Box<[Lanes; 256]>,
    /// A bit a lane: written.
    v_written: Box<[u32; 256]>,
    s: [u32; 128],
    s_written: u128,
    pub(crate) scc: bool,
    /// Denormal mode, as in [`crate::descriptor::FloatMode`].
    pub(crate) denormals: u8,
    /// Index of the next instruction.
    pub(crate) pc: usize,
    pub(crate) state: State,
    /// Number within the block.
    pub(crate) index: u32,
    /// The lanes that exist: all but in the last wave of a block whose size is no multiple of 32.
    pub(crate) lanes: u32,
    check: bool,
}

impl Wave {
    /// A wave with nothing in its registers.
    pub(crate) fn new(check: bool) -> Self {
        Self {
            v: Box::new([[0; 32]; 256]),
            v_written: Box::new([0; 256]),
            s: [0; 128],
            s_written: 0,
            scc: false,
            denormals: 15,
            pc: 0,
            state: State::Ready,
            index: 0,
            lanes: 0,
            check,
        }
    }

    /// Make it the wave `index` of a new block, at instruction `pc`, with `lanes` switched on; `vgprs` is what the kernel uses.
    pub(crate) fn reset(&mut self, index: u32, lanes: u32, pc: usize, denormals: u8, vgprs: u32) {
        // What was never written must not be a plausible value, nor one that depends on the block before.
        const POISON: u32 = 0xdead_beef;
        let used = self.v.len().min(vgprs as usize);
        self.v[..used].fill([POISON; 32]);
        self.s = [POISON; 128];
        self.v_written.fill(0);
        self.s_written = 0;
        self.scc = false;
        self.denormals = denormals;
        self.pc = pc;
        self.state = State::Ready;
        self.index = index;
        self.lanes = lanes;
        for (register, value) in [(EXEC, lanes), (EXEC + 1, 0), (NULL, 0)] {
            self.write_s(register, value);
        }
    }

    /// The active lanes.
    #[inline]
    pub(crate) fn exec(&self) -> u32 {
        self.s[EXEC as usize]
    }

    /// A scalar register.
    #[inline]
    pub(crate) fn s(&self, register: u8) -> Done<u32> {
        if self.check && self.s_written >> (register & 127) & 1 == 0 {
            return Err(Trouble::UndefinedSgpr { register }.into());
        }
        Ok(self.s[usize::from(register & 127)])
    }

    /// A pair of scalar registers; NULL is a pair of zeros.
    #[inline]
    pub(crate) fn s64(&self, register: u8) -> Done<u64> {
        if register == NULL {
            return Ok(0);
        }
        Ok(u64::from(self.s(register)?) | u64::from(self.s(register + 1)?) << 32)
    }

    /// Write a scalar register.
    #[inline]
    pub(crate) fn write_s(&mut self, register: u8, value: u32) {
        let value = if register == NULL { 0 } else { value };
        self.s[usize::from(register & 127)] = value;
        self.s_written |= 1 << (register & 127);
    }

    /// A scalar register as it is, and whether it was written.
    pub(crate) fn kept_s(&self, register: u8) -> (u32, bool) {
        let at = register & 127;
        (self.s[usize::from(at)], self.s_written >> at & 1 == 1)
    }

    /// Make a scalar register what [`kept_s`](Wave::kept_s) returned.
    pub(crate) fn put_s(&mut self, register: u8, (value, written): (u32, bool)) {
        self.write_s(register, value);
        if !written && register < NULL {
            self.s_written &= !(1 << register);
        }
    }

    /// Write a pair of scalar registers.
    #[inline]
    pub(crate) fn write_s64(&mut self, register: u8, value: u64) {
        self.write_s(register, value as u32);
        if register != NULL {
            self.write_s(register + 1, (value >> 32) as u32);
        }
    }

    /// A scalar operand of 32 bits.
    #[inline]
    pub(crate) fn scalar(&self, at: At) -> Done<u32> {
        match at {
            At::S(register) => self.s(register),
            At::K(value) => Ok(value as u32),
            At::Scc => Ok(self.scc.into()),
            At::Vccz => Ok((self.s(VCC)? == 0).into()),
            At::Execz => Ok((self.exec() == 0).into()),
            At::V(register) => {
                // A scalar use of a vector register exists only for lane reads, which do not come here.
                Err(Trouble::UndefinedVgpr { register }.into())
            }
        }
    }

    /// A scalar operand of 64 bits.
    #[inline]
    pub(crate) fn scalar64(&self, at: At) -> Done<u64> {
        match at {
            At::S(register) => self.s64(register),
            At::K(value) => Ok(value),
            other => Ok(self.scalar(other)?.into()),
        }
    }

    /// That `lanes` of a vector register were written.
    #[inline]
    pub(crate) fn written(&self, register: u8, lanes: u32) -> Done {
        let missing = lanes & !self.v_written[usize::from(register)];
        if missing != 0 && self.check {
            return Err(Stop::at(
                missing.trailing_zeros(),
                Trouble::UndefinedVgpr { register },
            ));
        }
        Ok(())
    }

    /// All lanes of a vector register of which `lanes` are needed.
    #[inline]
    pub(crate) fn v(&self, register: u8, lanes: u32) -> Done<&Lanes> {
        self.written(register, lanes)?;
        Ok(&self.v[usize::from(register)])
    }

    /// A vector register as it is, written or not: what an instruction keeps of its destination.
    #[inline]
    pub(crate) fn v_kept(&self, register: u8) -> &Lanes {
        &self.v[usize::from(register)]
    }

    /// One operand of 32 bits a lane, of which `lanes` are needed, without its modifiers.
    #[inline]
    pub(crate) fn plain<'a>(
        &'a self,
        src: &Src,
        lanes: u32,
        buffer: &'a mut Lanes,
    ) -> Done<&'a Lanes> {
        match src.at {
            At::V(register) => self.v(register, lanes),
            At::K(value) => {
                *buffer = [value as u32; 32];
                Ok(buffer)
            }
            at => {
                *buffer = [self.scalar(at)?; 32];
                Ok(buffer)
            }
        }
    }

    /// The lanes in which a vector register has been written.
    pub(crate) fn written_lanes(&self, register: u8) -> u32 {
        if self.check {
            self.v_written[usize::from(register)]
        } else {
            u32::MAX
        }
    }

    /// Make a vector register unwritten in `lanes`.
    pub(crate) fn forget(&mut self, register: u8, lanes: u32) {
        self.v_written[usize::from(register)] &= !lanes;
    }

    /// A pair of vector registers of which only the lower one must have been written.
    pub(crate) fn wide_low(&self, register: u8, lanes: u32) -> Done<[u64; 32]> {
        let low = self.v(register, lanes)?;
        let high = self.v_kept(register.wrapping_add(1));
        Ok(std::array::from_fn(|l| {
            u64::from(low[l]) | u64::from(high[l]) << 32
        }))
    }

    /// One operand of 64 bits a lane.
    pub(crate) fn wide(&self, src: &Src, lanes: u32) -> Done<[u64; 32]> {
        Ok(match src.at {
            At::V(register) => {
                let low = self.v(register, lanes)?;
                let high = self.v(register.wrapping_add(1), lanes)?;
                std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
            }
            at => [self.scalar64(at)?; 32],
        })
    }

    /// Write the lanes in `lanes` of a vector register.
    #[inline]
    pub(crate) fn write_v(&mut self, register: u8, lanes: u32, value: &Lanes) {
        let to = &mut self.v[usize::from(register)];
        if lanes == u32::MAX {
            *to = *value;
        } else {
            for l in 0..32 {
                let keep = (lanes >> l & 1).wrapping_sub(1);
                to[l] = to[l] & keep | value[l] & !keep;
            }
        }
        self.v_written[usize::from(register)] |= lanes;
    }

    /// Write one lane of a vector register.
    #[inline]
    pub(crate) fn write_lane(&mut self, register: u8, lane: usize, value: u32) {
        self.v[usize::from(register)][lane & 31] = value;
        self.v_written[usize::from(register)] |= 1 << (lane & 31);
    }
}

/// The numbers of the lanes in a mask, ascending.
#[inline]
pub(crate) fn each(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}
