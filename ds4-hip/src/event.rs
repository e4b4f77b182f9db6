//! Events: points in a stream's order.
#![expect(unsafe_code, reason = "owns a HIP handle")]

use std::ptr::null_mut;
use std::sync::Arc;

use crate::call::call;
use crate::stream::ready;
use crate::{Device, Error, Stream, sys};

/// `hipEventDisableTiming`.
const NO_TIME: u32 = 2;

/// A point in a stream's order: others wait for it, or the time between two is read.
pub struct Event {
    pub(crate) raw: sys::hipEvent_t,
    device: Arc<Device>,
}

// SAFETY: HIP allows an event to be used from any one thread at a time; the type is not `Sync`.
unsafe impl Send for Event {}

impl Event {
    /// An event that is only waited for: the cheaper kind.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn new(device: &Arc<Device>) -> Result<Self, Error> {
        Self::with_flags(device, NO_TIME)
    }

    /// An event that also remembers when it was reached.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn timed(device: &Arc<Device>) -> Result<Self, Error> {
        Self::with_flags(device, 0)
    }

    /// Put it at the end of what is in `stream` now.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn record(&mut self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: both handles are ours and live.
        unsafe { call!(self.device.hip(), hipEventRecord(self.raw, stream.raw)) }
    }

    /// Wait until it is reached; at once when it was never recorded.
    ///
    /// # Errors
    /// [`Error::Call`] with what went wrong in the work before it.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the handle is ours and lives.
        unsafe { call!(self.device.hip(), hipEventSynchronize(self.raw)) }
    }

    /// Whether it was reached.
    ///
    /// # Errors
    /// As for [`Event::synchronize`].
    pub fn is_reached(&self) -> Result<bool, Error> {
        // SAFETY: the handle is ours and lives.
        ready(&self.device, unsafe {
            call!(self.device.hip(), hipEventQuery(self.raw))
        })
    }

    /// Milliseconds from `start` to this one. Both must be [timed](Event::timed) and reached.
    ///
    /// # Errors
    /// [`Error::Call`] when one of them is not.
    pub fn ms_since(&self, start: &Self) -> Result<f32, Error> {
        let mut ms = 0.0;
        // SAFETY: the function writes one float through a pointer that is valid for the call; both handles live.
        unsafe {
            call!(
                self.device.hip(),
                hipEventElapsedTime(&raw mut ms, start.raw, self.raw)
            )
        }?;
        Ok(ms)
    }

    fn with_flags(device: &Arc<Device>, flags: u32) -> Result<Self, Error> {
        device.bind()?;
        let mut raw = null_mut();
        // SAFETY: the function writes a handle through a pointer that is valid for the call.
        unsafe { call!(device.hip(), hipEventCreateWithFlags(&raw mut raw, flags)) }?;
        Ok(Self {
            raw,
            device: Arc::clone(device),
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle came from hipEventCreateWithFlags and is destroyed only here.
        let gone = unsafe { call!(self.device.hip(), hipEventDestroy(self.raw)) };
        if let Err(error) = gone {
            tracing::warn!(%error, "event not destroyed");
        }
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").finish_non_exhaustive()
    }
}
