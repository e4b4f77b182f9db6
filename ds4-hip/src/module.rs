//! Modules: code objects that the runtime has loaded, and the kernels in them.
#![expect(unsafe_code, reason = "owns a HIP handle")]

use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use crate::call::{call, name, status, text};
use crate::{Device, Error, Launch, sys};

/// A loaded code object. Stays loaded as long as one of its kernels lives.
pub struct Module {
    raw: sys::hipModule_t,
    device: Arc<Device>,
}

// SAFETY: a loaded module does not change, and HIP allows its use from every thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Load `code`: what the compiler made for the device's [architecture](crate::Props::arch).
    ///
    /// # Errors
    /// [`Error::Module`] for code that the runtime does not take.
    pub fn load(device: &Arc<Device>, code: &[u8]) -> Result<Arc<Self>, Error> {
        device.bind()?;
        // Looked at until a zero byte by runtimes that take text, and read in words by those that take machine code.
        let mut image: Vec<u64> = vec![0; code.len() / 8 + 1];
        bytemuck::cast_slice_mut::<u64, u8>(&mut image)[..code.len()].copy_from_slice(code);
        let mut raw = null_mut();
        // SAFETY: the image is readable, ends in a zero byte and outlives the call; the runtime copies what it needs.
        let loaded = unsafe {
            call!(
                device.hip(),
                hipModuleLoadData(&raw mut raw, image.as_ptr().cast())
            )
        };
        match loaded {
            Ok(()) => Ok(Arc::new(Self {
                raw,
                device: Arc::clone(device),
            })),
            Err(error) => match status(&error) {
                Some(sys::hipError_t::hipErrorOutOfMemory) | None => Err(error),
                Some(code_of) => Err(Error::Module {
                    arch: device.props().arch.as_str().into(),
                    bytes: code.len(),
                    code: code_of.0,
                    name: name(device.hip(), code_of),
                    text: text(device.hip(), code_of),
                }),
            },
        }
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoKernel`] when the code object has none.
    pub fn kernel(self: &Arc<Self>, kernel: &str) -> Result<Kernel, Error> {
        let absent = || Error::NoKernel {
            name: kernel.into(),
        };
        let c_name = CString::new(kernel).map_err(|_| absent())?;
        let mut raw = null_mut();
        // SAFETY: the module lives, the name ends in a zero byte, the handle is written through a valid pointer.
        let found = unsafe {
            call!(
                self.device.hip(),
                hipModuleGetFunction(&raw mut raw, self.raw, c_name.as_ptr())
            )
        };
        match found {
            Ok(()) => Ok(Kernel {
                raw,
                name: kernel.into(),
                module: Arc::clone(self),
            }),
            Err(error) if status(&error) == Some(sys::hipError_t::hipErrorNotFound) => {
                self.device.hip().forget_last_error();
                Err(absent())
            }
            Err(error) => Err(error),
        }
    }

    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle came from hipModuleLoadData; every kernel of it keeps this alive.
        let gone = unsafe { call!(self.device.hip(), hipModuleUnload(self.raw)) };
        if let Err(error) = gone {
            tracing::warn!(%error, "module not unloaded");
        }
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").finish_non_exhaustive()
    }
}

/// A function that runs on the device.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) raw: sys::hipFunction_t,
    name: Box<str>,
    module: Arc<Module>,
}

// SAFETY: a kernel is a constant of its module, which is kept.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// What a kernel needs of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Vector registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a block, known when it was compiled.
    pub lds_bytes: u32,
    /// Bytes of scratch memory of a thread: 0 unless registers spill.
    pub scratch_bytes: u32,
    /// Threads a block may have.
    pub max_block: u32,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module it is in.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// What it needs, as the runtime says it.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime does not say.
    pub fn resources(&self) -> Result<Resources, Error> {
        use sys::hipFunction_attribute as attribute;
        Ok(Resources {
            registers: self.attribute(attribute::HIP_FUNC_ATTRIBUTE_NUM_REGS)?,
            lds_bytes: self.attribute(attribute::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            scratch_bytes: self.attribute(attribute::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_block: self.attribute(attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// Blocks of `block` threads that one compute unit holds at a time.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime does not say.
    pub fn blocks_per_unit(&self, block: u32) -> Result<u32, Error> {
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(block).unwrap_or(c_int::MAX);
        // SAFETY: the kernel lives; one int is written through a valid pointer.
        unsafe {
            call!(
                self.module.device.hip(),
                hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut blocks,
                    self.raw,
                    threads,
                    0
                )
            )
        }?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// A launch of `grid` blocks of `block` threads, to be given its arguments.
    pub fn launch(&self, grid: u32, block: u32) -> Launch<'_> {
        Launch::new(self, grid, block)
    }

    fn attribute(&self, attribute: sys::hipFunction_attribute) -> Result<u32, Error> {
        let mut value: c_int = 0;
        // SAFETY: the kernel lives; one int is written through a valid pointer.
        unsafe {
            call!(
                self.module.device.hip(),
                hipFuncGetAttribute(&raw mut value, attribute, self.raw)
            )
        }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kernel").field(&self.name).finish()
    }
}
