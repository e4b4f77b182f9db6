//! Memory that notices when it is used wrongly.
//!
//! ```text
//! page ............................ page | guard page
//! |  unused  |  bytes of the allocation |slack|  no access
//!            ^ address, a multiple of 256     ^ end of the last page
//! ```

use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::thread::{self, ThreadId};

/// What new memory is filled with: as f32 a small negative number that no correct sum contains, as an index far outside.
pub const POISON: u8 = 0xa5;

/// Addresses are multiples of this, as those of HIP are at least.
const ALIGN: usize = 256;

const PAGE: usize = 4096;

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Its first byte.
    pub start: usize,
    /// Its length in bytes, as asked for.
    pub bytes: usize,
    base: usize,
    mapped: usize,
    thread: ThreadId,
}

/// All memory of the device.
#[derive(Debug, Default)]
pub struct Memory {
    allocations: BTreeMap<usize, Allocation>,
    used: usize,
}

impl Memory {
    /// Map `bytes`, at least one. `None` when the system has no more.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let room = bytes.checked_next_multiple_of(PAGE)?.max(PAGE);
        let mapped = room.checked_add(PAGE)?;
        // SAFETY: a new private mapping, at an address of the system's choice.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = base as usize;
        // SAFETY: the last page of the mapping made above.
        let guarded = unsafe { libc::mprotect((base + room) as *mut _, PAGE, libc::PROT_NONE) };
        if guarded != 0 {
            // SAFETY: the mapping made above, which nobody knows yet.
            unsafe { libc::munmap(base as *mut _, mapped) };
            return None;
        }
        // SAFETY: all pages before the guard page were mapped for writing above.
        unsafe { std::ptr::write_bytes(base as *mut u8, POISON, room) };
        let start = base + (room - bytes) / ALIGN * ALIGN;
        self.allocations.insert(
            start,
            Allocation {
                start,
                bytes,
                base,
                mapped,
                thread: thread::current().id(),
            },
        );
        self.used += bytes;
        Some(start)
    }

    /// Unmap what starts at `start`; whether the bytes around it were as they must be. `None` when nothing starts there.
    pub(crate) fn free(&mut self, start: usize) -> Option<bool> {
        let gone = self.allocations.remove(&start)?;
        self.used -= gone.bytes;
        let end = gone.base + gone.mapped - PAGE;
        let untouched = poisoned(gone.base, gone.start) && poisoned(gone.start + gone.bytes, end);
        // SAFETY: the mapping was made by `allocate` and is no longer listed.
        unsafe { libc::munmap(gone.base as *mut _, gone.mapped) };
        Some(untouched)
    }

    /// The allocation that `address` is inside of.
    pub fn find(&self, address: usize) -> Option<&Allocation> {
        let (_, near) = self.allocations.range(..=address).next_back()?;
        (address < near.start + near.bytes.max(1)).then_some(near)
    }

    /// Whether `bytes` at `address` are inside one allocation.
    pub fn contains(&self, address: usize, bytes: usize) -> bool {
        self.find(address)
            .is_some_and(|a| bytes <= a.start + a.bytes - address.min(a.start + a.bytes))
    }

    /// The allocation that begins nearest before `address`, for a message.
    pub fn nearest(&self, address: usize) -> Option<&Allocation> {
        self.allocations
            .range(..=address)
            .next_back()
            .or_else(|| self.allocations.iter().next())
            .map(|(_, a)| a)
    }

    /// Bytes in all allocations.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Allocations that the calling thread made.
    pub(crate) fn mine(&self) -> usize {
        let me = thread::current().id();
        self.allocations.values().filter(|a| a.thread == me).count()
    }
}

fn poisoned(from: usize, to: usize) -> bool {
    // SAFETY: both ends are in pages that `allocate` mapped for reading, in front of the guard page.
    let bytes = unsafe { std::slice::from_raw_parts(from as *const u8, to - from) };
    bytes.iter().all(|&b| b == POISON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_behind_an_allocation_is_seen_when_it_is_freed() {
        let mut memory = Memory::default();
        for (bytes, touch, untouched) in [(100, 99, true), (100, 100, false), (4096, 4095, true)] {
            let start = memory.allocate(bytes).unwrap();
            assert_eq!(start % ALIGN, 0);
            // SAFETY: inside the pages of the allocation.
            unsafe { ((start + touch) as *mut u8).write(1) };
            assert_eq!(memory.free(start), Some(untouched));
            assert_eq!(memory.free(start), None);
        }
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn ranges_are_inside_or_not() {
        let mut memory = Memory::default();
        let start = memory.allocate(1000).unwrap();
        assert!(memory.contains(start, 1000));
        assert!(memory.contains(start + 999, 1));
        assert!(!memory.contains(start + 1, 1000));
        assert!(!memory.contains(start - 1, 1));
        assert!(!memory.contains(start + 1000, 1));
        assert!(!memory.contains(start, usize::MAX));
        memory.free(start);
    }
}
