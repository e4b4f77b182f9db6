//! Device memory: ranges of ordinary host memory, found by address.
#![expect(
    unsafe_code,
    reason = "kernels address memory by number, as on the device"
)]

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::fault::{Access, Nearest, Trouble};

/// A range of addresses backed by host memory.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The first address that kernels use for it.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The host memory behind `start`.
    pub host: *mut u8,
    /// Whether kernels may write to it.
    pub writable: bool,
}

/// Who knows which addresses are allocated.
///
/// # Safety
/// A region that [`region`](Memory::region) returns is valid for reads, and for writes when `writable`, over all its bytes
/// until the launch that asked has returned; nothing else holds a reference into it meanwhile.
pub unsafe trait Memory {
    /// The allocation that contains `address`.
    fn region(&self, address: u64) -> Option<Region>;

    /// The allocation closest to `address`, for the message of a fault.
    fn nearest(&self, address: u64) -> Option<Nearest>;
}

/// Memory of a test: allocations that live as long as the arena.
#[derive(Default)]
pub struct Arena {
    regions: Mutex<BTreeMap<u64, Allocation>>,
}

/// Host memory that kernels reach by address. 16-byte aligned; interior mutability because kernels write while it is shared.
pub(crate) struct Block {
    words: Box<[UnsafeCell<u128>]>,
    bytes: usize,
}

// SAFETY: the cells are reached only through raw pointers; whoever launches kernels on two threads over one block answers for
// the kernels' races, as on a device.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// A part of a block as a region, for as long as the block lives.
pub(crate) struct Part<'a> {
    region: Region,
    block: PhantomData<&'a Block>,
}

impl Block {
    /// A copy of `data`.
    pub(crate) fn new(data: &[u8]) -> Self {
        let words: Box<[_]> = (0..data.len().div_ceil(16).max(1))
            .map(|_| UnsafeCell::new(0_u128))
            .collect();
        let new = Self {
            words,
            bytes: data.len(),
        };
        // SAFETY: the block has at least `data.len()` bytes and nothing else knows it yet.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), new.host(), data.len()) };
        new
    }

    fn host(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.words.as_ptr()).cast()
    }

    /// The address of its first byte.
    pub(crate) fn address(&self) -> u64 {
        self.host() as u64
    }

    /// Put 8 bytes at `offset`, while nothing else uses the block; whether they lie in it.
    pub(crate) fn write(&self, offset: u64, data: [u8; 8]) -> bool {
        let Some(part) = self.part(offset, 8, true) else {
            return false;
        };
        // SAFETY: the part has 8 bytes and nothing else holds a reference into the block.
        unsafe { part.region.host.cast::<[u8; 8]>().write_unaligned(data) };
        true
    }

    /// `bytes` bytes from `offset` on; none when the block is shorter.
    pub(crate) fn part(&self, offset: u64, bytes: u64, writable: bool) -> Option<Part<'_>> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes as u64).then(|| Part {
            region: Region {
                start: self.address() + offset,
                bytes,
                host: self.host().wrapping_add(offset as usize),
                writable,
            },
            block: PhantomData,
        })
    }
}

/// An allocation of an [`Arena`].
struct Allocation {
    block: Block,
    writable: bool,
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Allocation>> {
        self.regions
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn insert(&self, data: &[u8], writable: bool) -> u64 {
        let block = Block::new(data);
        let address = block.address();
        self.lock().insert(address, Allocation { block, writable });
        address
    }

    /// Allocate a copy of `data`; its address.
    pub fn alloc(&self, data: &[u8]) -> u64 {
        self.insert(data, true)
    }

    /// Allocate a copy of `data` that kernels may only read; its address.
    pub fn alloc_read_only(&self, data: &[u8]) -> u64 {
        self.insert(data, false)
    }

    /// The bytes of the allocation at `address`, which an `alloc` returned; none when it did not.
    pub fn read(&self, address: u64) -> Option<Vec<u8>> {
        let regions = self.lock();
        let found = &regions.get(&address)?.block;
        // SAFETY: the allocation is alive while the lock is held and its bytes are initialized.
        Some(unsafe { std::slice::from_raw_parts(found.host(), found.bytes) }.to_vec())
    }
}

// SAFETY: allocations are never freed before the arena, and `read` copies.
unsafe impl Memory for Arena {
    fn region(&self, address: u64) -> Option<Region> {
        let regions = self.lock();
        let (&start, found) = regions.range(..=address).next_back()?;
        (address - start < found.block.bytes as u64).then(|| Region {
            start,
            bytes: found.block.bytes as u64,
            host: found.block.host(),
            writable: found.writable,
        })
    }

    fn nearest(&self, address: u64) -> Option<Nearest> {
        let regions = self.lock();
        let near = |(&start, a): (&u64, &Allocation)| Nearest {
            start,
            bytes: a.block.bytes as u64,
        };
        let below = regions.range(..=address).next_back().map(near);
        let above = regions.range(address..).next().map(near);
        let distance = |n: &Nearest| {
            if n.start > address {
                n.start - address
            } else {
                address.saturating_sub(n.start + n.bytes)
            }
        };
        below.into_iter().chain(above).min_by_key(distance)
    }
}

/// What one launch sees: the caller's memory, and the launch's own regions (arguments, code, constants).
pub(crate) struct View<'a> {
    memory: &'a dyn Memory,
    own: Vec<Part<'a>>,
    /// The regions found last, by a few bits of the address: kernels walk through few allocations.
    recent: [Option<Region>; 4],
}

impl<'a> View<'a> {
    /// `memory`, and `own` before it.
    pub(crate) fn new(memory: &'a dyn Memory, own: Vec<Part<'a>>) -> Self {
        Self {
            memory,
            own,
            recent: [None; 4],
        }
    }

    /// The host memory behind `bytes` bytes at `address`.
    #[inline]
    fn find(&mut self, address: u64, bytes: u64, access: Access) -> Result<*mut u8, Trouble> {
        for region in self.recent.iter().flatten() {
            let at = address.wrapping_sub(region.start);
            if at < region.bytes
                && bytes <= region.bytes - at
                && (region.writable || access == Access::Read)
            {
                return Ok(region.host.wrapping_add(at as usize));
            }
        }
        self.find_slow(address, bytes, access)
    }

    #[cold]
    fn find_slow(&mut self, address: u64, bytes: u64, access: Access) -> Result<*mut u8, Trouble> {
        let holds = |r: &&Region| address.wrapping_sub(r.start) < r.bytes;
        let own = self.own.iter().map(|p| p.region).find(|r| holds(&r));
        let region = own
            .or_else(|| self.memory.region(address))
            .filter(|r| bytes <= r.bytes - (address - r.start));
        let Some(region) = region else {
            return Err(Trouble::OutOfBounds {
                access,
                address,
                bytes,
                nearest: self.memory.nearest(address),
            });
        };
        if access != Access::Read && !region.writable {
            return Err(Trouble::ReadOnly {
                access,
                address,
                bytes,
            });
        }
        self.recent.rotate_right(1);
        self.recent[0] = Some(region);
        Ok(region.host.wrapping_add((address - region.start) as usize))
    }

    /// `N` bytes at `address`, of any alignment.
    #[inline]
    pub(crate) fn load<const N: usize>(&mut self, address: u64) -> Result<[u8; N], Trouble> {
        let host = self.find(address, N as u64, Access::Read)?;
        // SAFETY: `find` returned host memory valid for N bytes.
        Ok(unsafe { host.cast::<[u8; N]>().read_unaligned() })
    }

    /// Put `data` at `address`, of any alignment.
    #[inline]
    pub(crate) fn store<const N: usize>(
        &mut self,
        address: u64,
        data: [u8; N],
    ) -> Result<(), Trouble> {
        let host = self.find(address, N as u64, Access::Write)?;
        // SAFETY: `find` returned host memory valid for writing N bytes.
        unsafe { host.cast::<[u8; N]>().write_unaligned(data) };
        Ok(())
    }

    /// Replace the 4 or 8 bytes at `address` by `new(old)` as one step; the old value.
    pub(crate) fn atomic(
        &mut self,
        address: u64,
        bytes: u64,
        new: impl Fn(u64) -> u64,
    ) -> Result<u64, Trouble> {
        if !address.is_multiple_of(bytes) {
            return Err(Trouble::Misaligned {
                address,
                need: bytes,
            });
        }
        let host = self.find(address, bytes, Access::Atomic)?;
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if !(host as u64).is_multiple_of(bytes) {
            return Err(Trouble::NotModelled {
                what: "device memory that is aligned otherwise than the host memory behind it",
            });
        }
        if bytes == 4 {
            // SAFETY: valid for 4 bytes, aligned (checked above).
            let cell = unsafe { AtomicU32::from_ptr(host.cast()) };
            let update = |old: u32| Some(new(old.into()) as u32);
            Ok(cell
                .fetch_update(order.0, order.1, update)
                .unwrap_or_default()
                .into())
        } else {
            // SAFETY: valid for 8 bytes, aligned (checked above).
            let cell = unsafe { AtomicU64::from_ptr(host.cast()) };
            Ok(cell
                .fetch_update(order.0, order.1, |old| Some(new(old)))
                .unwrap_or_default())
        }
    }
}
