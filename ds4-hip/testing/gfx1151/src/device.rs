//! The interpreter behind HIP's C interface: this crate as a library that the unmodified program opens.
#![expect(unsafe_code, reason = "hands the device's memory to the interpreter")]

use std::sync::Arc;

use ds4_hip_testing::{Code, Executor, Needs, Program, memory};

use crate::{Memory, Module, Nearest, Options, Region, Tools};

ds4_hip_testing::lookalike!(Gfx1151);

/// Runs kernels by interpreting their machine code.
struct Gfx1151;

impl Executor for Gfx1151 {
    fn arch(&self) -> &str {
        "gfx1151"
    }

    fn name(&self) -> String {
        "interpreter of gfx1151".to_owned()
    }

    fn load(&self, image: &[u8]) -> Result<Box<dyn Code>, String> {
        let module = Module::load(image, &Tools::default()).map_err(|e| e.to_string())?;
        Ok(Box::new(Loaded(Arc::new(module))))
    }
}

struct Loaded(Arc<Module>);

impl Code for Loaded {
    fn kernel(&self, name: &str) -> Option<Box<dyn Program>> {
        let kernel = self.0.kernel(name)?;
        Some(Box::new(Interpreted {
            bytes: kernel.args().map(|a| a.bytes).collect(),
            name: name.to_owned(),
            module: Arc::clone(&self.0),
        }))
    }
}

struct Interpreted {
    module: Arc<Module>,
    name: String,
    bytes: Vec<u32>,
}

impl Program for Interpreted {
    fn argument_bytes(&self) -> &[u32] {
        &self.bytes
    }

    fn needs(&self) -> Needs {
        self.module
            .kernel(&self.name)
            .map(|kernel| Needs {
                registers: kernel.vgprs(),
                lds_bytes: kernel.lds_bytes(),
                // Code that needs any is not loaded.
                scratch_bytes: 0,
                max_block: kernel.max_block(),
            })
            .unwrap_or_default()
    }

    fn run(
        &self,
        grid: u32,
        block: u32,
        arguments: &[Box<[u8]>],
        memory: &memory::Memory,
    ) -> Result<(), String> {
        let kernel = self
            .module
            .kernel(&self.name)
            .ok_or("the module lost the kernel")?;
        let mut words = vec![0; kernel.args_bytes()];
        for (argument, value) in kernel.args().zip(arguments) {
            let at = argument.offset as usize;
            words[at..at + value.len()].copy_from_slice(value);
        }
        kernel
            .launch(
                [grid, 1, 1],
                [block, 1, 1],
                &words,
                &Allocations(memory),
                &Options::default(),
            )
            .map(drop)
            .map_err(|fault| fault.to_string())
    }
}

/// The look-alike's memory as the interpreter asks for it.
struct Allocations<'a>(&'a memory::Memory);

// SAFETY: allocations are mapped for reading and writing, and none is freed while a kernel runs: the look-alike holds its lock.
unsafe impl Memory for Allocations<'_> {
    fn region(&self, address: u64) -> Option<Region> {
        let found = self.0.find(address as usize)?;
        Some(Region {
            start: found.start as u64,
            bytes: found.bytes as u64,
            host: found.start as *mut u8,
            writable: true,
        })
    }

    fn nearest(&self, address: u64) -> Option<Nearest> {
        let found = self.0.nearest(address as usize)?;
        Some(Nearest {
            start: found.start as u64,
            bytes: found.bytes as u64,
        })
    }
}
