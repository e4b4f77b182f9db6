//! LDS: the block's shared memory, and the exchanges between lanes that go through its crossbar.

use super::race::Races;
use super::vmem::{Part, gather};
use super::wave::{Lanes, Wave, each};
use crate::fault::{Access, Done, Stop, Trouble};
use crate::table::atomic::Atomic;

/// The LDS of the block that runs.
pub(crate) struct Block {
    data: Vec<u8>,
    /// Per byte 1 when something was written.
    written: Option<Vec<u8>>,
    races: Option<Races>,
}

impl Block {
    /// `bytes` of LDS with the checks that are asked for.
    pub(crate) fn new(bytes: u32, check_undefined: bool, check_races: bool) -> Self {
        Self {
            data: vec![0; bytes as usize],
            written: check_undefined.then(|| vec![0; bytes as usize]),
            races: check_races.then(|| Races::new(bytes)),
        }
    }

    /// A new block begins.
    pub(crate) fn reset(&mut self) {
        const POISON: u8 = 0xcd;
        self.data.fill(POISON);
        if let Some(written) = &mut self.written {
            written.fill(0);
        }
        self.barrier();
    }

    /// All waves have met.
    pub(crate) fn barrier(&mut self) {
        if let Some(races) = &mut self.races {
            races.barrier();
        }
    }

    #[inline]
    fn check(
        &mut self,
        wave: u32,
        offset: u64,
        bytes: u32,
        access: Access,
    ) -> Result<usize, Trouble> {
        let lds_bytes = self.data.len() as u32;
        if offset + u64::from(bytes) > u64::from(lds_bytes) {
            return Err(Trouble::LdsOutOfBounds {
                access,
                offset,
                bytes,
                lds_bytes,
            });
        }
        if let Some(races) = &mut self.races {
            races.access(wave, offset as u32, bytes, access)?;
        }
        Ok(offset as usize)
    }

    #[inline]
    fn load<const N: usize>(
        &mut self,
        wave: u32,
        offset: u64,
        access: Access,
    ) -> Result<[u8; N], Trouble> {
        let at = self.check(wave, offset, N as u32, access)?;
        if let Some(written) = &self.written
            && let Some(k) = written[at..at + N].iter().position(|&w| w == 0)
        {
            return Err(Trouble::UndefinedLds {
                offset: (at + k) as u32,
            });
        }
        let mut out = [0; N];
        out.copy_from_slice(&self.data[at..at + N]);
        Ok(out)
    }

    #[inline]
    fn store<const N: usize>(
        &mut self,
        wave: u32,
        offset: u64,
        value: [u8; N],
        access: Access,
    ) -> Result<(), Trouble> {
        let at = self.check(wave, offset, N as u32, access)?;
        self.data[at..at + N].copy_from_slice(&value);
        if let Some(written) = &mut self.written {
            written[at..at + N].fill(1);
        }
        Ok(())
    }
}

/// What is done.
pub(crate) enum Action {
    /// At one or two offsets.
    Load(Part),
    Store(Part),
    Atomic(Atomic, bool),
    /// Each lane reads the data of the lane that its address names; an inactive one gives 0.
    Pull,
    /// Each lane sends its data to the lane that its address names.
    Push,
    /// A fixed pattern: for each lane the lane it reads.
    Swizzle([u8; 32]),
}

/// A resolved LDS instruction.
pub(crate) struct Lds {
    pub(crate) action: Action,
    pub(crate) dst: u8,
    pub(crate) address: u8,
    pub(crate) data: [u8; 2],
    /// Bytes added to the address; two for the forms with two addresses.
    pub(crate) offsets: [u32; 2],
    pub(crate) two: bool,
}

/// Execute it.
pub(crate) fn run(w: &mut Wave, i: &Lds, lds: &mut Block) -> Done {
    let exec = w.exec();
    match &i.action {
        Action::Load(part) => {
            let at = *w.v(i.address, exec)?;
            load(w, lds, i.dst, exec, &at, i.offsets[0], *part)?;
            if i.two {
                let words = if let Part::Words(n) = part { *n } else { 1 };
                load(
                    w,
                    lds,
                    i.dst.wrapping_add(words),
                    exec,
                    &at,
                    i.offsets[1],
                    *part,
                )?;
            }
        }
        Action::Store(part) => {
            let at = *w.v(i.address, exec)?;
            store(w, lds, i.data[0], exec, &at, i.offsets[0], *part)?;
            if i.two {
                store(w, lds, i.data[1], exec, &at, i.offsets[1], *part)?;
            }
        }
        Action::Atomic(atomic, returns) => run_atomic(w, i, lds, atomic, *returns)?,
        Action::Pull => {
            let (at, from) = (*w.v(i.address, exec)?, *w.v_kept(i.data[0]));
            let (mut out, mut read) = ([0; 32], 0_u32);
            for l in each(exec) {
                let source = at[l].wrapping_add(i.offsets[0]) / 4 % 32;
                if exec >> source & 1 == 1 {
                    out[l] = from[source as usize];
                    read |= 1 << source;
                }
            }
            w.written(i.data[0], read)?;
            w.write_v(i.dst, exec, &out);
        }
        Action::Push => {
            let (at, from) = (*w.v(i.address, exec)?, *w.v(i.data[0], exec)?);
            let mut out = [0; 32];
            for l in each(exec) {
                out[(at[l].wrapping_add(i.offsets[0]) / 4 % 32) as usize] = from[l];
            }
            w.write_v(i.dst, exec, &out);
        }
        Action::Swizzle(source) => {
            let from = *w.v_kept(i.address);
            let (mut out, mut read) = ([0; 32], 0_u32);
            for l in each(exec) {
                let s = source[l] & 31;
                if exec >> s & 1 == 1 {
                    out[l] = from[usize::from(s)];
                    read |= 1 << s;
                }
            }
            w.written(i.address, read)?;
            w.write_v(i.dst, exec, &out);
        }
    }
    Ok(())
}

fn load(
    w: &mut Wave,
    lds: &mut Block,
    dst: u8,
    exec: u32,
    at: &Lanes,
    offset: u32,
    part: Part,
) -> Done {
    let wave = w.index;
    let place = |l: usize| u64::from(at[l]) + u64::from(offset);
    match part {
        Part::Words(words) => {
            for k in 0..words {
                let mut out = [0; 32];
                for l in each(exec) {
                    let word = lds
                        .load::<4>(wave, place(l) + 4 * u64::from(k), Access::Read)
                        .map_err(|t| Stop::at(l as u32, t))?;
                    out[l] = u32::from_le_bytes(word);
                }
                w.write_v(dst.wrapping_add(k), exec, &out);
            }
        }
        Part::Small { bytes, .. } | Part::Half { bytes, .. } => {
            let mut out = *w.v_kept(dst);
            for l in each(exec) {
                let raw = if bytes == 1 {
                    lds.load::<1>(wave, place(l), Access::Read)
                        .map(|b| b[0].into())
                } else {
                    lds.load::<2>(wave, place(l), Access::Read)
                        .map(|b| u16::from_le_bytes(b).into())
                };
                out[l] = part.extend(raw.map_err(|t| Stop::at(l as u32, t))?, out[l]);
            }
            w.write_v(dst, exec, &out);
        }
    }
    Ok(())
}

fn store(
    w: &Wave,
    lds: &mut Block,
    data: u8,
    exec: u32,
    at: &Lanes,
    offset: u32,
    part: Part,
) -> Done {
    let wave = w.index;
    let place = |l: usize| u64::from(at[l]) + u64::from(offset);
    match part {
        Part::Words(words) => {
            for k in 0..words {
                let value = w.v(data.wrapping_add(k), exec)?;
                for l in each(exec) {
                    let to = place(l) + 4 * u64::from(k);
                    lds.store(wave, to, value[l].to_le_bytes(), Access::Write)
                        .map_err(|t| Stop::at(l as u32, t))?;
                }
            }
        }
        Part::Small { bytes, .. } | Part::Half { bytes, .. } => {
            let data = w.v(data, exec)?;
            for l in each(exec) {
                let value = part.cut(data[l]);
                let done = if bytes == 1 {
                    lds.store(wave, place(l), [value as u8], Access::Write)
                } else {
                    lds.store(wave, place(l), (value as u16).to_le_bytes(), Access::Write)
                };
                done.map_err(|t| Stop::at(l as u32, t))?;
            }
        }
    }
    Ok(())
}

fn run_atomic(w: &mut Wave, i: &Lds, lds: &mut Block, atomic: &Atomic, returns: bool) -> Done {
    let exec = w.exec();
    let at = *w.v(i.address, exec)?;
    let words = atomic.bytes / 4;
    let data = gather(w, i.data[0], words, exec)?;
    let compare = if atomic.compares {
        gather(w, i.data[1], words, exec)?
    } else {
        [0; 32]
    };
    let (mut low, mut high) = ([0; 32], [0; 32]);
    for l in each(exec) {
        let place = u64::from(at[l]) + u64::from(i.offsets[0]);
        let old = one_atomic(lds, w.index, place, atomic, data[l], compare[l])
            .map_err(|t| Stop::at(l as u32, t))?;
        low[l] = old as u32;
        high[l] = (old >> 32) as u32;
    }
    if returns {
        w.write_v(i.dst, exec, &low);
        if words == 2 {
            w.write_v(i.dst.wrapping_add(1), exec, &high);
        }
    }
    Ok(())
}

fn one_atomic(
    lds: &mut Block,
    wave: u32,
    place: u64,
    atomic: &Atomic,
    data: u64,
    compare: u64,
) -> Result<u64, Trouble> {
    let need = u64::from(atomic.bytes);
    if !place.is_multiple_of(need) {
        return Err(Trouble::Misaligned {
            address: place,
            need,
        });
    }
    if atomic.bytes == 4 {
        let old = u32::from_le_bytes(lds.load(wave, place, Access::Atomic)?).into();
        let new = (atomic.update)(old, data, compare) as u32;
        lds.store(wave, place, new.to_le_bytes(), Access::Atomic)?;
        Ok(old)
    } else {
        let old = u64::from_le_bytes(lds.load(wave, place, Access::Atomic)?);
        let new = (atomic.update)(old, data, compare);
        lds.store(wave, place, new.to_le_bytes(), Access::Atomic)?;
        Ok(old)
    }
}
