//! Devices: what a GPU is called, what it can do, how much memory it has.
#![expect(unsafe_code, reason = "calls the HIP runtime")]

use std::sync::Arc;

use crate::call::call;
use crate::{Error, Hip, Props, sys};

/// One device, open. Everything made on it keeps it open.
///
/// A [`Device`] may be used from every thread: calls that HIP ties to a thread's current device set it first.
pub struct Device {
    hip: Arc<Hip>,
    ordinal: i32,
    props: Props,
}

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that can still be allocated, as the runtime says it.
    pub free: u64,
    /// All bytes the device may use.
    pub total: u64,
}

impl Device {
    /// Open device `ordinal`, counted from 0.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where the runtime sees none, [`Error::NoSuchDevice`] for a number none has, [`Error::Call`] when
    /// the runtime refuses.
    pub fn open(hip: &Arc<Hip>, ordinal: u32) -> Result<Arc<Self>, Error> {
        let count = hip.device_count()?;
        if count == 0 {
            return Err(Error::NoDevice);
        }
        let Some(number) = i32::try_from(ordinal).ok().filter(|_| ordinal < count) else {
            return Err(Error::NoSuchDevice { ordinal, count });
        };
        let mut raw = sys::hipDeviceProp_tR0600::default();
        // SAFETY: the runtime fills one struct of this layout, which is that of HIP 6 and newer; older ones are not loaded.
        unsafe { call!(hip, hipGetDevicePropertiesR0600(&raw mut raw, number)) }?;
        Ok(Arc::new(Self {
            hip: Arc::clone(hip),
            ordinal: number,
            props: Props::new(&raw),
        }))
    }

    /// What the device is and can do.
    pub fn props(&self) -> &Props {
        &self.props
    }

    /// The runtime it was opened with.
    pub fn hip(&self) -> &Arc<Hip> {
        &self.hip
    }

    /// Its memory now.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn memory(&self) -> Result<Memory, Error> {
        self.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the function writes two sizes through pointers that are valid for the call.
        unsafe { call!(self.hip, hipMemGetInfo(&raw mut free, &raw mut total)) }?;
        Ok(Memory {
            free: free as u64,
            total: total as u64,
        })
    }

    /// Wait until all work of all streams is done.
    ///
    /// # Errors
    /// [`Error::Call`] with what went wrong in work that was not waited for yet.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: takes nothing and touches no memory of ours but what earlier calls promised to keep.
        unsafe { call!(self.hip, hipDeviceSynchronize()) }
    }

    /// Make it the calling thread's current device, which the next call will act on.
    pub(crate) fn bind(&self) -> Result<(), Error> {
        // SAFETY: takes a number; an unknown one is an error.
        unsafe { call!(self.hip, hipSetDevice(self.ordinal)) }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.ordinal)
            .field("name", &self.props.name)
            .field("arch", &self.props.arch)
            .finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Device>();
};
