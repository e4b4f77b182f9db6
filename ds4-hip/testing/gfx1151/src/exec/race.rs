//! Races in LDS: two waves, the same bytes, no barrier between, at least one of them not just reading.
//!
//! Per word of LDS: who wrote and who read each byte since the last barrier of the block. Atomics race with plain accesses only.

use crate::fault::{Access, Trouble};

#[derive(Clone, Copy, Default)]
struct Word {
    /// The stretch between barriers that the rest of this record is about.
    epoch: u32,
    /// Waves that made an atomic access to the word.
    atomic: u32,
    /// Per byte the wave that wrote it, plus 1.
    writer: [u8; 4],
    /// Per byte the waves that read it.
    readers: [u32; 4],
}

/// The record of one block's LDS.
pub(crate) struct Races {
    words: Vec<Word>,
    epoch: u32,
}

impl Races {
    /// For `bytes` of LDS.
    pub(crate) fn new(bytes: u32) -> Self {
        Self {
            words: vec![Word::default(); bytes.div_ceil(4) as usize],
            epoch: 1,
        }
    }

    /// All waves have met: nothing before races with anything after.
    pub(crate) fn barrier(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or_else(|| {
            self.words.fill(Word::default());
            1
        });
    }

    /// Record an access of `wave` (at most 32 waves a block) to `bytes` bytes at `offset`, which lie in the block's LDS.
    pub(crate) fn access(
        &mut self,
        wave: u32,
        offset: u32,
        bytes: u32,
        access: Access,
    ) -> Result<(), Trouble> {
        let me = 1_u32 << (wave & 31);
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let stop = end.min((at | 3) + 1);
            let word = &mut self.words[(at / 4) as usize];
            if word.epoch != self.epoch {
                *word = Word {
                    epoch: self.epoch,
                    ..Word::default()
                };
            }
            let race = |offset, other, mask: u32| {
                Err(Trouble::LdsRace {
                    access,
                    offset,
                    other,
                    other_wave: mask.trailing_zeros(),
                })
            };
            if access != Access::Atomic && word.atomic & !me != 0 {
                return race(at, Access::Atomic, word.atomic & !me);
            }
            for byte in at..stop {
                let k = (byte & 3) as usize;
                let writer = word.writer[k];
                if writer != 0 && u32::from(writer) != wave + 1 {
                    return race(byte, Access::Write, 1 << (writer - 1));
                }
                if access != Access::Read && word.readers[k] & !me != 0 {
                    return race(byte, Access::Read, word.readers[k] & !me);
                }
                match access {
                    Access::Read => word.readers[k] |= me,
                    Access::Write => word.writer[k] = wave as u8 + 1,
                    Access::Atomic => {}
                }
            }
            if access == Access::Atomic {
                word.atomic |= me;
            }
            at = stop;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conflicting_accesses_of_other_waves_race() {
        let mut races = Races::new(64);
        races.access(0, 0, 4, Access::Write).unwrap();
        races.access(0, 0, 4, Access::Read).unwrap();
        races.access(1, 4, 8, Access::Read).unwrap();
        races.access(2, 4, 8, Access::Read).unwrap();
        assert!(matches!(
            races.access(1, 2, 1, Access::Read),
            Err(Trouble::LdsRace {
                offset: 2,
                other: Access::Write,
                other_wave: 0,
                ..
            })
        ));
        assert!(matches!(
            races.access(1, 8, 4, Access::Write),
            Err(Trouble::LdsRace {
                other: Access::Read,
                other_wave: 2,
                ..
            })
        ));
        races.barrier();
        races.access(1, 0, 4, Access::Write).unwrap();
    }

    #[test]
    fn bytes_of_one_word_are_apart_and_atomics_agree() {
        let mut races = Races::new(64);
        races.access(0, 0, 2, Access::Write).unwrap();
        races.access(1, 2, 2, Access::Write).unwrap();
        races.access(0, 8, 4, Access::Atomic).unwrap();
        races.access(1, 8, 4, Access::Atomic).unwrap();
        assert!(races.access(1, 8, 4, Access::Read).is_err());
    }
}
