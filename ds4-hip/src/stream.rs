//! Streams: work in order.
#![expect(unsafe_code, reason = "owns a HIP handle")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use bytemuck::Pod;

use crate::call::{call, status};
use crate::{Device, Error, Event, Pool, View, ViewMut, sys};

/// `hipStreamNonBlocking`: no order with the null stream, which is never used and cannot be captured.
const NON_BLOCKING: u32 = 1;

/// What must outlive work that a graph will do again.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// Work in order on one device. Work of two streams has no order but what [events](Event) make.
///
/// Copies between device memory are put into the stream and done later; those from and to slices of the host are waited for.
/// Dropping a stream waits for its work.
pub struct Stream {
    pub(crate) raw: sys::hipStream_t,
    device: Arc<Device>,
    /// While the stream is captured: what the graph will have to own.
    pub(crate) captured: RefCell<Option<Vec<Keep>>>,
}

// SAFETY: HIP allows a stream to be used from any thread, one at a time; the type is not `Sync`.
unsafe impl Send for Stream {}

impl Stream {
    /// A stream of its own, without order to any other.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn new(device: &Arc<Device>) -> Result<Self, Error> {
        device.bind()?;
        let mut raw = null_mut();
        // SAFETY: the function writes a handle through a pointer that is valid for the call.
        unsafe {
            call!(
                device.hip(),
                hipStreamCreateWithFlags(&raw mut raw, NON_BLOCKING)
            )
        }?;
        Ok(Self {
            raw,
            device: Arc::clone(device),
            captured: RefCell::new(None),
        })
    }

    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Wait until all its work is done.
    ///
    /// # Errors
    /// [`Error::Call`] with what went wrong in work that was not waited for yet; [`Error::Graph`] while it is captured.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.not_captured("a stream cannot be waited for while it is captured")?;
        // SAFETY: the handle is ours and lives.
        unsafe { call!(self.device.hip(), hipStreamSynchronize(self.raw)) }
    }

    /// Whether all its work is done.
    ///
    /// # Errors
    /// As for [`Stream::synchronize`].
    pub fn is_idle(&self) -> Result<bool, Error> {
        self.not_captured("a stream cannot be asked while it is captured")?;
        // SAFETY: the handle is ours and lives.
        ready(&self.device, unsafe {
            call!(self.device.hip(), hipStreamQuery(self.raw))
        })
    }

    /// Let the work that follows wait for `event`.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        // SAFETY: both handles are ours and live; the runtime keeps what it needs of the event.
        unsafe {
            call!(
                self.device.hip(),
                hipStreamWaitEvent(self.raw, event.raw, 0)
            )
        }
    }

    /// Copy `from` to `to` on the device. Put into the stream; where one of them is pinned host memory it is waited for, since
    /// the host may change it next.
    ///
    /// # Errors
    /// [`Error::Length`] when they differ in length, [`Error::Call`] when the runtime refuses.
    pub fn copy<T: Pod>(&self, from: View<'_, T>, to: &mut ViewMut<'_, T>) -> Result<(), Error> {
        same_length("the destination of a copy", to.len(), from.len())?;
        let host = from.memory.pool == Pool::Pinned || to.memory.pool == Pool::Pinned;
        if host {
            self.not_captured("a copy of pinned memory is waited for and cannot be captured")?;
        }
        self.keep(from.memory);
        self.keep(to.memory);
        let (source, target, bytes) = (from.address(), to.address(), from.bytes());
        // SAFETY: both ranges are inside memory that lives: views are, and a graph keeps what it mentions.
        unsafe {
            self.copy_raw(
                target as *mut c_void,
                source as *const c_void,
                bytes,
                sys::hipMemcpyKind::hipMemcpyDefault,
            )
        }?;
        if host {
            self.synchronize_borrowed()
        } else {
            Ok(())
        }
    }

    /// Set every byte of `to` to `byte`. Put into the stream.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn fill<T: Pod>(&self, to: &mut ViewMut<'_, T>, byte: u8) -> Result<(), Error> {
        if to.is_empty() {
            return Ok(());
        }
        self.keep(to.memory);
        let (target, bytes) = (to.address(), to.bytes());
        // SAFETY: the range is inside memory that lives.
        unsafe {
            call!(
                self.device.hip(),
                hipMemsetAsync(target as *mut c_void, i32::from(byte), bytes, self.raw)
            )
        }
    }

    /// Copy values of the host to the device; they are there when this returns.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ, [`Error::Call`] when the runtime refuses, [`Error::Graph`] while the stream
    /// is captured.
    pub fn upload<T: Pod>(&self, from: &[T], to: &mut ViewMut<'_, T>) -> Result<(), Error> {
        same_length("the destination of an upload", to.len(), from.len())?;
        self.not_captured("an upload is waited for and cannot be captured")?;
        let (source, target, bytes) = (from.as_ptr().cast(), to.address(), size_of_val(from));
        // SAFETY: both ranges are valid for `bytes` until the stream is waited for, which is below.
        unsafe {
            self.copy_raw(
                target as *mut c_void,
                source,
                bytes,
                sys::hipMemcpyKind::hipMemcpyHostToDevice,
            )
        }?;
        self.synchronize_borrowed()
    }

    /// Copy values of the device to the host; they are there when this returns.
    ///
    /// # Errors
    /// As for [`Stream::upload`].
    pub fn download<T: Pod>(&self, from: View<'_, T>, to: &mut [T]) -> Result<(), Error> {
        same_length("the destination of a download", to.len(), from.len())?;
        self.not_captured("a download is waited for and cannot be captured")?;
        let (source, target, bytes) = (from.address(), to.as_mut_ptr().cast(), size_of_val(to));
        // SAFETY: both ranges are valid for `bytes` until the stream is waited for, which is below; any bits are a `T`.
        unsafe {
            self.copy_raw(
                target,
                source as *const c_void,
                bytes,
                sys::hipMemcpyKind::hipMemcpyDeviceToHost,
            )
        }?;
        self.synchronize_borrowed()
    }

    /// All values of `from`, on the host.
    ///
    /// # Errors
    /// As for [`Stream::upload`].
    pub fn read<T: Pod>(&self, from: View<'_, T>) -> Result<Vec<T>, Error> {
        let mut values = vec![T::zeroed(); from.len()];
        self.download(from, &mut values)?;
        Ok(values)
    }

    /// Keep `owner` for the graph that is being captured, if one is.
    pub(crate) fn keep<K: Any + Send + Sync>(&self, owner: &Arc<K>) {
        if let Some(kept) = self.captured.borrow_mut().as_mut() {
            let owner: Keep = Arc::clone(owner) as Keep;
            kept.push(owner);
        }
    }

    /// Wait for work that uses what was only borrowed. When the runtime refuses to wait for the stream, it is asked to wait for
    /// the device: the borrow ends with this call, whatever it returns.
    fn synchronize_borrowed(&self) -> Result<(), Error> {
        self.synchronize().inspect_err(|_| {
            if let Err(error) = self.device.synchronize() {
                tracing::warn!(%error, "a copy may not be done");
            }
        })
    }

    fn not_captured(&self, what: &'static str) -> Result<(), Error> {
        match *self.captured.borrow() {
            Some(_) => Err(Error::Graph { what }),
            None => Ok(()),
        }
    }

    /// Put a copy into the stream.
    ///
    /// # Safety
    /// Both ranges are valid for `bytes` until the copy is done.
    unsafe fn copy_raw(
        &self,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: sys::hipMemcpyKind,
    ) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            call!(
                self.device.hip(),
                hipMemcpyAsync(to, from, bytes, kind, self.raw)
            )
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let hip = self.device.hip();
        // Work may still use what the caller frees next.
        // SAFETY: the handle is ours and lives.
        let waited = unsafe { call!(hip, hipStreamSynchronize(self.raw)) };
        // SAFETY: the handle came from hipStreamCreateWithFlags and is destroyed only here.
        let gone = unsafe { call!(hip, hipStreamDestroy(self.raw)) };
        for result in [waited, gone] {
            if let Err(error) = result {
                tracing::warn!(%error, "stream not ended in order");
            }
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("captured", &self.captured.borrow().is_some())
            .finish_non_exhaustive()
    }
}

/// The answer to "is it done?": not yet is no error, and must not be remembered as one.
pub(crate) fn ready(device: &Device, answer: Result<(), Error>) -> Result<bool, Error> {
    match answer {
        Ok(()) => Ok(true),
        Err(error) if status(&error) == Some(sys::hipError_t::hipErrorNotReady) => {
            device.hip().forget_last_error();
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn same_length(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Length {
            what,
            found,
            expected,
        })
    }
}
