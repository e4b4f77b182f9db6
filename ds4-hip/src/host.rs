//! Pinned memory: pages of the host that the device reaches too.
#![expect(unsafe_code, reason = "lends memory that C allocated as slices")]

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use bytemuck::Pod;

use crate::buffer::Allocation;
use crate::{Device, Error, Pool, View, ViewMut};

/// Host memory for `len` values of `T`, locked in place and mapped for the device.
///
/// The host sees it as a slice, a kernel takes it through [`HostBuffer::view`]. Zeroed when made.
pub struct HostBuffer<T> {
    memory: Arc<Allocation>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Pod> HostBuffer<T> {
    /// Locked memory for `len` values, all zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with the pool and the size; [`Error::Call`] when the runtime refuses.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory {
            pool: Pool::Pinned,
            bytes: usize::MAX,
            free: None,
            total: None,
        })?;
        let memory = Allocation::new(device, Pool::Pinned, bytes)?;
        let mut made = Self {
            memory,
            len,
            values: PhantomData,
        };
        made.as_mut_slice().fill(T::zeroed());
        Ok(made)
    }

    /// What is in it.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the allocation holds `len` values, any bits are a `T`, it was zeroed when made, and this handle is borrowed.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }

    /// What is in it, to change.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as for `as_slice`, and the handle is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }

    /// All of it, for a kernel or a copy to read.
    pub fn view(&self) -> View<'_, T> {
        View {
            memory: &self.memory,
            start: 0,
            len: self.len,
            values: PhantomData,
        }
    }

    /// All of it, for a kernel or a copy to write.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut {
            memory: &self.memory,
            start: 0,
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

    fn start(&self) -> NonNull<T> {
        // HIP aligns to a page; without values there is no address to look at.
        NonNull::new(self.memory.at.cast::<T>()).unwrap_or(NonNull::dangling())
    }
}

impl<T> std::fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuffer")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<HostBuffer<f32>>();
};
