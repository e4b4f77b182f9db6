//! Global and flat memory: each lane has its own address.
//!
//! Addresses of any alignment are served, as ROCm sets the hardware up; atomics must be aligned.

use super::wave::{Lanes, Wave, each};
use crate::fault::{Done, Stop, Trouble};
use crate::memory::View;
use crate::table::atomic::Atomic;

/// What a load makes of the bytes, or which bytes a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Whole words.
    Words(u8),
    /// One byte or two to the whole register, extended with zeros or with the sign.
    Small { bytes: u8, signed: bool },
    /// One byte or two to or from one half of the register.
    Half {
        bytes: u8,
        signed: bool,
        upper: bool,
    },
}

impl Part {
    /// The value of a small load: `old` is the register before.
    pub(crate) fn extend(self, raw: u32, old: u32) -> u32 {
        let widen = |bytes: u8, signed: bool| match (bytes, signed) {
            (1, true) => raw as u8 as i8 as u32,
            (1, false) => raw & 0xff,
            (_, true) => raw as u16 as i16 as u32,
            (_, false) => raw & 0xffff,
        };
        match self {
            Part::Words(_) => raw,
            Part::Small { bytes, signed } => widen(bytes, signed),
            Part::Half {
                bytes,
                signed,
                upper: false,
            } => old & 0xffff_0000 | widen(bytes, signed) & 0xffff,
            Part::Half {
                bytes,
                signed,
                upper: true,
            } => old & 0xffff | widen(bytes, signed) << 16,
        }
    }

    /// What a small store writes.
    pub(crate) fn cut(self, value: u32) -> u32 {
        match self {
            Part::Half { upper: true, .. } => value >> 16,
            _ => value,
        }
    }
}

/// Load, store or atomic.
pub(crate) enum Action {
    Load(Part),
    Store(Part),
    /// With or without the old value as a result.
    Atomic(Atomic, bool),
}

/// A resolved memory instruction.
pub(crate) struct Vmem {
    pub(crate) action: Action,
    /// The vector register that is written, or that holds the data of a store.
    pub(crate) data: u8,
    /// The register with the result of an atomic.
    pub(crate) result: u8,
    /// The vector register of the address: 64 bits, or with `base` 32 bits without sign.
    pub(crate) address: Option<u8>,
    /// The scalar registers of the base address.
    pub(crate) base: Option<u8>,
    pub(crate) offset: i64,
}

impl Vmem {
    fn addresses(&self, w: &Wave, exec: u32) -> Done<[u64; 32]> {
        let base = match self.base {
            Some(register) => w.s64(register)?,
            None => 0,
        }
        .wrapping_add_signed(self.offset);
        let Some(register) = self.address else {
            return Ok([base; 32]);
        };
        let low = w.v(register, exec)?;
        if self.base.is_some() {
            return Ok(low.map(|x| base.wrapping_add(x.into())));
        }
        let high = w.v(register.wrapping_add(1), exec)?;
        Ok(std::array::from_fn(|l| {
            base.wrapping_add(u64::from(low[l]) | u64::from(high[l]) << 32)
        }))
    }

    /// Execute it.
    pub(crate) fn run(&self, w: &mut Wave, memory: &mut View<'_>) -> Done {
        let exec = w.exec();
        if exec == 0 {
            return Ok(());
        }
        let at = self.addresses(w, exec)?;
        match &self.action {
            Action::Load(part) => self.load(w, memory, exec, &at, *part),
            Action::Store(part) => self.store(w, memory, exec, &at, *part),
            Action::Atomic(atomic, returns) => self.atomic(w, memory, exec, &at, atomic, *returns),
        }
    }

    fn load(
        &self,
        w: &mut Wave,
        memory: &mut View<'_>,
        exec: u32,
        at: &[u64; 32],
        part: Part,
    ) -> Done {
        match part {
            Part::Words(1) => load_words::<1, 4>(w, memory, self.data, exec, at),
            Part::Words(2) => load_words::<2, 8>(w, memory, self.data, exec, at),
            Part::Words(3) => load_words::<3, 12>(w, memory, self.data, exec, at),
            Part::Words(_) => load_words::<4, 16>(w, memory, self.data, exec, at),
            Part::Small { bytes, .. } | Part::Half { bytes, .. } => {
                let mut out = *w.v_kept(self.data);
                for l in each(exec) {
                    let raw = if bytes == 1 {
                        memory.load::<1>(at[l]).map(|b| b[0].into())
                    } else {
                        memory
                            .load::<2>(at[l])
                            .map(|b| u16::from_le_bytes(b).into())
                    };
                    out[l] = part.extend(raw.map_err(|t| Stop::at(l as u32, t))?, out[l]);
                }
                w.write_v(self.data, exec, &out);
                Ok(())
            }
        }
    }

    fn store(
        &self,
        w: &mut Wave,
        memory: &mut View<'_>,
        exec: u32,
        at: &[u64; 32],
        part: Part,
    ) -> Done {
        match part {
            Part::Words(1) => store_words::<1, 4>(w, memory, self.data, exec, at),
            Part::Words(2) => store_words::<2, 8>(w, memory, self.data, exec, at),
            Part::Words(3) => store_words::<3, 12>(w, memory, self.data, exec, at),
            Part::Words(_) => store_words::<4, 16>(w, memory, self.data, exec, at),
            Part::Small { bytes, .. } | Part::Half { bytes, .. } => {
                let data = w.v(self.data, exec)?;
                for l in each(exec) {
                    let value = part.cut(data[l]);
                    let done = if bytes == 1 {
                        memory.store(at[l], [value as u8])
                    } else {
                        memory.store(at[l], (value as u16).to_le_bytes())
                    };
                    done.map_err(|t| Stop::at(l as u32, t))?;
                }
                Ok(())
            }
        }
    }

    fn atomic(
        &self,
        w: &mut Wave,
        memory: &mut View<'_>,
        exec: u32,
        at: &[u64; 32],
        atomic: &Atomic,
        returns: bool,
    ) -> Done {
        let words = atomic.bytes / 4;
        let data = gather(w, self.data, words, exec)?;
        let compare = if atomic.compares {
            gather(w, self.data.wrapping_add(words), words, exec)?
        } else {
            [0; 32]
        };
        let (mut low, mut high) = ([0; 32], [0; 32]);
        for l in each(exec) {
            let old = memory
                .atomic(at[l], atomic.bytes.into(), |old| {
                    (atomic.update)(old, data[l], compare[l])
                })
                .map_err(|t| Stop::at(l as u32, t))?;
            low[l] = old as u32;
            high[l] = (old >> 32) as u32;
        }
        if returns {
            w.write_v(self.result, exec, &low);
            if words == 2 {
                w.write_v(self.result.wrapping_add(1), exec, &high);
            }
        }
        Ok(())
    }
}

/// One or two registers as 64-bit lanes.
pub(crate) fn gather(w: &Wave, register: u8, words: u8, exec: u32) -> Done<[u64; 32]> {
    let low = w.v(register, exec)?.map(u64::from);
    if words == 1 {
        return Ok(low);
    }
    let high = w.v(register.wrapping_add(1), exec)?;
    Ok(std::array::from_fn(|l| low[l] | u64::from(high[l]) << 32))
}

fn load_words<const W: usize, const B: usize>(
    w: &mut Wave,
    memory: &mut View<'_>,
    data: u8,
    exec: u32,
    at: &[u64; 32],
) -> Done {
    let mut out: [Lanes; W] = [[0; 32]; W];
    for l in each(exec) {
        let bytes = memory.load::<B>(at[l]).map_err(|t| Stop::at(l as u32, t))?;
        for (k, word) in bytes.chunks_exact(4).enumerate() {
            out[k][l] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        }
    }
    for (k, value) in (0_u8..).zip(&out) {
        w.write_v(data.wrapping_add(k), exec, value);
    }
    Ok(())
}

fn store_words<const W: usize, const B: usize>(
    w: &Wave,
    memory: &mut View<'_>,
    data: u8,
    exec: u32,
    at: &[u64; 32],
) -> Done {
    let mut rows: [&Lanes; W] = [w.v_kept(data); W];
    for (k, row) in (0_u8..).zip(&mut rows) {
        *row = w.v(data.wrapping_add(k), exec)?;
    }
    for l in each(exec) {
        let bytes: [u8; B] = std::array::from_fn(|b| rows[b / 4][l].to_le_bytes()[b % 4]);
        memory
            .store(at[l], bytes)
            .map_err(|t: Trouble| Stop::at(l as u32, t))?;
    }
    Ok(())
}
