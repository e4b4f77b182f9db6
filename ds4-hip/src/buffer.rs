//! Device memory: an owner that frees once, and parts of it that are borrowed.
#![expect(unsafe_code, reason = "owns device memory")]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::ptr::null_mut;
use std::sync::Arc;

use bytemuck::Pod;

use crate::call::{call, status};
use crate::{Device, Error, Pool, Stream, sys};

/// A piece of memory that a device can reach, owned. Shared by the handle that made it and by graphs whose nodes mention it.
pub(crate) struct Allocation {
    /// Where the host side of the runtime knows it.
    pub(crate) at: *mut c_void,
    /// Where the device sees it.
    device_at: u64,
    pub(crate) bytes: usize,
    pub(crate) pool: Pool,
    pub(crate) device: Arc<Device>,
}

// SAFETY: the address is used on the device, or on the host by a handle that holds the borrow rules; freeing from another
// thread than the one that allocated is allowed by HIP.
unsafe impl Send for Allocation {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Ask `pool` for memory. A multiple of 16 bytes, so that what is loaded 16 bytes at a time may be read to its end, and
    /// never none, since HIP gives no address for that.
    pub(crate) fn new(device: &Arc<Device>, pool: Pool, bytes: usize) -> Result<Arc<Self>, Error> {
        device.bind()?;
        let hip = device.hip();
        let mut at = null_mut();
        let size = bytes.max(1).checked_next_multiple_of(16).unwrap_or(bytes);
        let made = match pool {
            // SAFETY: the function writes an address through a pointer that is valid for the call.
            Pool::Device => unsafe { call!(hip, hipMalloc(&raw mut at, size)) },
            // SAFETY: as above; the default flags map the pages for the device.
            Pool::Pinned => unsafe { call!(hip, hipHostMalloc(&raw mut at, size, 0)) },
        };
        match made {
            Ok(()) => {
                let mut made = Self {
                    at,
                    device_at: at as u64,
                    bytes,
                    pool,
                    device: Arc::clone(device),
                };
                if pool == Pool::Pinned {
                    let mut mapped = null_mut();
                    // SAFETY: the address came from hipHostMalloc; the function writes another through a valid pointer.
                    unsafe { call!(hip, hipHostGetDevicePointer(&raw mut mapped, at, 0)) }?;
                    made.device_at = mapped as u64;
                }
                Ok(Arc::new(made))
            }
            Err(error) if status(&error) == Some(sys::hipError_t::hipErrorOutOfMemory) => {
                hip.forget_last_error();
                let room = device.memory().ok();
                Err(Error::OutOfMemory {
                    pool,
                    bytes,
                    free: room.map(|r| r.free),
                    total: room.map(|r| r.total),
                })
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let hip = self.device.hip();
        let freed = match self.pool {
            // SAFETY: the address came from hipMalloc and is freed only here; the runtime waits for work that uses it.
            Pool::Device => unsafe { call!(hip, hipFree(self.at)) },
            // SAFETY: as above, from hipHostMalloc.
            Pool::Pinned => unsafe { call!(hip, hipHostFree(self.at)) },
        };
        if let Err(error) = freed {
            tracing::warn!(%error, pool = %self.pool, bytes = self.bytes, "memory not freed");
        }
    }
}

/// Device memory for `len` values of `T`. Freed when the last of the buffer and the graphs that mention it goes.
pub struct Buffer<T> {
    memory: Arc<Allocation>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Memory for `len` values; what is in it is whatever was there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with the pool, the size and what is free; [`Error::Call`] when the runtime refuses.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory {
            pool: Pool::Device,
            bytes: usize::MAX,
            free: None,
            total: None,
        })?;
        Ok(Self {
            memory: Allocation::new(device, Pool::Device, bytes)?,
            len,
            values: PhantomData,
        })
    }

    /// Memory that holds `values`; they are there when this returns.
    ///
    /// # Errors
    /// As for [`Buffer::new`] and [`Stream::upload`].
    pub fn from_slice(stream: &Stream, values: &[T]) -> Result<Self, Error> {
        let mut buffer = Self::new(stream.device(), values.len())?;
        stream.upload(values, &mut buffer.view_mut())?;
        Ok(buffer)
    }

    /// All of it, for reading.
    pub fn view(&self) -> View<'_, T> {
        View {
            memory: &self.memory,
            start: 0,
            len: self.len,
            values: PhantomData,
        }
    }

    /// All of it, for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut {
            memory: &self.memory,
            start: 0,
            len: self.len,
            values: PhantomData,
        }
    }

    /// A part of it, for reading; in values.
    ///
    /// # Errors
    /// [`Error::Range`] when the part is not inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>, Error> {
        self.view().slice(range)
    }

    /// A part of it, for writing; in values.
    ///
    /// # Errors
    /// [`Error::Range`] when the part is not inside.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>, Error> {
        self.view_mut().slice(range)
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len)
            .field("bytes", &self.memory.bytes)
            .finish_non_exhaustive()
    }
}

/// A part of a [`Buffer`] or of pinned memory that is read.
pub struct View<'a, T> {
    pub(crate) memory: &'a Arc<Allocation>,
    /// In bytes.
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) values: PhantomData<&'a [T]>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

/// A part of a [`Buffer`] or of pinned memory that is written.
pub struct ViewMut<'a, T> {
    pub(crate) memory: &'a Arc<Allocation>,
    /// In bytes.
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) values: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> View<'a, T> {
    /// A part of the part; in values.
    ///
    /// # Errors
    /// [`Error::Range`] when it is not inside.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<View<'a, T>, Error> {
        let (start, len) = inside(range, self.len)?;
        Ok(View {
            start: self.start + start * size_of::<T>(),
            len,
            ..self
        })
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        address(self.memory, self.start)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<'a, T: Pod> ViewMut<'a, T> {
    /// A part of the part; in values.
    ///
    /// # Errors
    /// [`Error::Range`] when it is not inside.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<ViewMut<'a, T>, Error> {
        let (start, len) = inside(range, self.len)?;
        Ok(ViewMut {
            start: self.start + start * size_of::<T>(),
            len,
            ..self
        })
    }

    /// The same part for reading, as long as this one is not used.
    pub fn as_view(&self) -> View<'_, T> {
        View {
            memory: self.memory,
            start: self.start,
            len: self.len,
            values: PhantomData,
        }
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        address(self.memory, self.start)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

fn address(memory: &Allocation, start: usize) -> u64 {
    memory.device_at + start as u64
}

/// Start and length of `range` in a buffer of `len`.
fn inside(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize), Error> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start > end || end > len {
        return Err(Error::Range { start, end, len });
    }
    Ok((start, end - start))
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Buffer<f32>>();
};
