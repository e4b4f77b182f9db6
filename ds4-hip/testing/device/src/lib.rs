//! A device of our own behind HIP's C interface, so that the unmodified program runs where no GPU is.
//!
//! [`Device`] is everything of a HIP runtime but the execution of kernels: memory with guard pages, streams whose work waits
//! until somebody waits for it, events, modules, graphs and captures, and the injection of errors. How a kernel runs is an
//! [`Executor`]'s affair. [`lookalike!`] makes of an executor the C functions of `libamdhip64`; a `cdylib` crate holds that one
//! line.
//!
//! It is stricter than a real runtime where that finds mistakes:
//! * Work is not begun before it must be. What is read without waiting for it is old.
//! * New memory is filled with [`memory::POISON`], and a page behind each allocation cannot be touched.
//! * Bytes between the end of an allocation and that page are looked at when it is freed.
//! * A handle that is used after it was destroyed is `hipErrorInvalidHandle`, not a crash.
//!
//! A kernel that fails makes the next wait fail with `hipErrorLaunchFailure`, and `hipGetErrorString` says what happened. Unlike
//! on a real device that is forgotten then: tests of one process share one device.
#![expect(
    unsafe_code,
    clippy::multiple_unsafe_ops_per_block,
    reason = "is the other side of a C interface: reads and writes what callers' pointers name"
)]

#[doc(hidden)]
pub mod abi;
mod device;
mod exports;
mod faults;
mod graph;
pub mod memory;
mod queue;

pub use device::Device;
#[doc(hidden)]
pub use ds4_hip::sys;
pub use faults::Control;

/// Runs kernels.
pub trait Executor: Send + Sync + 'static {
    /// What `gcnArchName` says: programs choose code objects by it.
    fn arch(&self) -> &str;

    /// What the device is called.
    fn name(&self) -> String;

    /// Take a code object.
    ///
    /// # Errors
    /// Why it cannot be taken, in words.
    fn load(&self, image: &[u8]) -> Result<Box<dyn Code>, String>;
}

/// A code object that was taken.
pub trait Code: Send {
    /// The kernel of this name, if there is one.
    fn kernel(&self, name: &str) -> Option<Box<dyn Program>>;
}

/// A kernel.
pub trait Program: Send + Sync {
    /// Bytes of each argument, in order.
    fn argument_bytes(&self) -> &[u32];

    /// What it needs.
    fn needs(&self) -> Needs;

    /// Run it: `grid` blocks of `block` threads. `arguments` has one entry for each of [`Program::argument_bytes`].
    ///
    /// # Errors
    /// What went wrong on the device, in words.
    fn run(
        &self,
        grid: u32,
        block: u32,
        arguments: &[Box<[u8]>],
        memory: &memory::Memory,
    ) -> Result<(), String>;
}

/// What a kernel needs, as `hipFuncGetAttribute` tells it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Vector registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a block.
    pub lds_bytes: u32,
    /// Bytes of scratch memory of a thread.
    pub scratch_bytes: u32,
    /// Threads a block may have.
    pub max_block: u32,
}
