//! Launches: a kernel, its grid, its arguments.
#![expect(unsafe_code, reason = "hands arguments to a kernel")]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use bytemuck::Pod;

use crate::buffer::Allocation;
use crate::call::call;
use crate::{Error, Kernel, Stream, View, ViewMut};

/// Arguments a kernel may have.
const MAX_ARGUMENTS: usize = 24;

/// A number that a kernel takes by value.
pub trait Scalar: Pod + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($type:ty),*) => { $( impl sealed::Sealed for $type {} impl Scalar for $type {} )* };
}
scalars!(u32, i32, f32, u64, i64);

/// The values of a kernel's arguments, in order. Each has a word of its own, at an address that HIP is given: the memory must
/// outlive a graph that mentions it, since some runtimes keep addresses and not values.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    words: [u64; MAX_ARGUMENTS],
    count: usize,
}

impl Arguments {
    /// The addresses of the values. Good as long as `self` stays where it is.
    pub(crate) fn addresses(&self) -> [*mut c_void; MAX_ARGUMENTS] {
        let mut addresses = [null_mut(); MAX_ARGUMENTS];
        for (address, word) in addresses.iter_mut().zip(&self.words) {
            // HIP declares the values mutable and only reads them.
            *address = std::ptr::from_ref(word).cast_mut().cast();
        }
        addresses
    }
}

/// A kernel with its grid and arguments, built up and then [run](Launch::run) or put into a graph.
#[must_use = "a launch does nothing until it is run or put into a graph"]
pub struct Launch<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) arguments: Arguments,
    memory: [Option<&'a Arc<Allocation>>; MAX_ARGUMENTS],
    too_many: bool,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(kernel: &'a Kernel, grid: u32, block: u32) -> Self {
        Self {
            kernel,
            grid,
            block,
            arguments: Arguments {
                words: [0; MAX_ARGUMENTS],
                count: 0,
            },
            memory: [None; MAX_ARGUMENTS],
            too_many: false,
        }
    }

    /// The next argument: the address of what is read.
    pub fn arg<'b: 'a, T: Pod>(self, view: &View<'b, T>) -> Self {
        self.push(view.address(), Some(view.memory))
    }

    /// The next argument: the address of what is written.
    pub fn arg_mut<'b: 'a, T: Pod>(self, view: &mut ViewMut<'b, T>) -> Self {
        self.push(view.address(), Some(view.memory))
    }

    /// The next argument: a number.
    pub fn scalar<T: Scalar>(self, value: T) -> Self {
        let mut word = [0; 8];
        let bytes = bytemuck::bytes_of(&value);
        word[..bytes.len()].copy_from_slice(bytes);
        self.push(u64::from_ne_bytes(word), None)
    }

    /// Put it into `stream`.
    ///
    /// # Errors
    /// [`Error::Launch`] for a grid or a block that no device can take or more than 24 arguments, [`Error::Call`] when the
    /// runtime refuses.
    ///
    /// # Safety
    /// The arguments are those the kernel declares, in number, order and width. All that the kernel reads or writes through
    /// them lies inside the views given, or in memory that lives until the work is done; nobody changes it meanwhile, and
    /// pinned memory is not looked at by the host, until the stream has been waited for.
    pub unsafe fn run(self, stream: &Stream) -> Result<(), Error> {
        self.check()?;
        let capturing = stream.captured.borrow().is_some();
        if capturing {
            self.keep(&mut |owner| stream.keep(owner));
            let owned = Arc::new(self.arguments.clone());
            stream.keep(&owned);
            stream.keep(self.kernel.module());
            // SAFETY: the caller's promise; the values live as long as the graph, which keeps them.
            unsafe { self.submit(stream, &owned) }
        } else {
            // SAFETY: the caller's promise; HIP copies the values before it returns.
            unsafe { self.submit(stream, &self.arguments) }
        }
    }

    /// Whether any device could take it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let max_block = self.kernel.module().device().props().max_block;
        let wrong = |what, found: u32, expected| Error::Launch {
            kernel: self.kernel.name().into(),
            what,
            found: u64::from(found),
            expected,
        };
        if self.too_many {
            return Err(wrong("the number of arguments", 25, "at most 24"));
        }
        if self.grid == 0 || self.grid > i32::MAX.cast_unsigned() {
            return Err(wrong("the number of blocks", self.grid, "1 to 2147483647"));
        }
        if self.block == 0 || self.block > max_block {
            return Err(wrong(
                "the number of threads of a block",
                self.block,
                "1 to what the device allows",
            ));
        }
        Ok(())
    }

    /// Name every piece of memory it mentions.
    pub(crate) fn keep(&self, keep: &mut dyn FnMut(&Arc<Allocation>)) {
        for memory in self.memory.iter().flatten() {
            keep(memory);
        }
    }

    fn push(mut self, word: u64, memory: Option<&'a Arc<Allocation>>) -> Self {
        let at = self.arguments.count;
        if at == MAX_ARGUMENTS {
            self.too_many = true;
            return self;
        }
        self.arguments.words[at] = word;
        self.memory[at] = memory;
        self.arguments.count += 1;
        self
    }

    /// # Safety
    /// As for [`Launch::run`]; `arguments` live until HIP has them.
    unsafe fn submit(&self, stream: &Stream, arguments: &Arguments) -> Result<(), Error> {
        let mut addresses = arguments.addresses();
        let hip = stream.device().hip();
        // SAFETY: the caller's promise, and the handles live.
        unsafe {
            call!(
                hip,
                hipModuleLaunchKernel(
                    self.kernel.raw,
                    self.grid,
                    1,
                    1,
                    self.block,
                    1,
                    1,
                    0,
                    stream.raw,
                    addresses.as_mut_ptr(),
                    null_mut()
                )
            )
        }
    }
}

impl std::fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.kernel.name())
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("arguments", &&self.arguments.words[..self.arguments.count])
            .finish_non_exhaustive()
    }
}
