//! The kernels, loaded.

use std::sync::Arc;

use ds4_hip::{Device, Kernel, Module};

use super::Error;
use super::linear::{self, Linear};

/// The files of kernels, without `.hip`. Each is one code object.
pub const FILES: [&str; 2] = ["activations", "linear_decode"];

/// Every kernel, loaded on one device.
#[derive(Debug)]
pub struct Kernels {
    pub(crate) quantize_activations: Kernel,
    pub(crate) linear: Vec<Linear>,
}

impl Kernels {
    /// Load every kernel; `code` gives the code object of a [file](FILES) for the device's architecture.
    ///
    /// # Errors
    /// [`Error::NoCode`] where `code` has none; [`Error::Hip`] when the runtime does not take it or it lacks a kernel.
    pub fn load(
        device: &Arc<Device>,
        mut code: impl FnMut(&str, &str) -> Option<Vec<u8>>,
    ) -> Result<Self, Error> {
        let arch = device.props().arch.as_str();
        let mut load = |file: &'static str| {
            let found = code(file, arch).ok_or_else(|| Error::NoCode {
                file,
                arch: arch.into(),
            })?;
            Ok::<_, Error>(Module::load(device, &found)?)
        };
        let activations = load("activations")?;
        let linear_decode = load("linear_decode")?;
        Ok(Self {
            quantize_activations: activations.kernel("quantize_activations")?,
            linear: linear::load(&linear_decode)?,
        })
    }
}
