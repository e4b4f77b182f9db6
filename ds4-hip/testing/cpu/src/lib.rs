//! A `libamdhip64` that runs kernels on the CPU.
//!
//! Its code objects are shared libraries: kernels compiled for the host with the HOST branch of `gpu_port.h`, which brings
//! fibers, barriers and wave operations along. Its architecture is called `host`.
#![expect(unsafe_code, reason = "loads libraries and calls C functions in them")]

use std::env::temp_dir;
use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use ds4_hip_testing::memory::Memory;
use ds4_hip_testing::{Code, Executor, Needs, Program};
use libloading::Library;

ds4_hip_testing::lookalike!(Cpu);

/// Runs kernels in fibers.
pub struct Cpu;

/// `gp_host::Signature` of `gpu_host.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Signature {
    arguments: u32,
    block: u32,
    bytes: [u32; 24],
}

/// `gp_host::Launch` of `gpu_host.h`.
#[repr(C)]
struct Launch {
    grid: u32,
    block: u32,
    threads: u32,
}

/// What `GP_KERNEL` makes of a kernel: 0, or 1 with a message of at most so many bytes.
type Entry = unsafe extern "C" fn(*const Launch, *mut *mut c_void, *mut c_char, u64) -> i32;

impl Executor for Cpu {
    fn arch(&self) -> &str {
        "host"
    }

    fn name(&self) -> String {
        "CPU, in place of a GPU".to_owned()
    }

    fn load(&self, image: &[u8]) -> Result<Box<dyn Code>, String> {
        let library = open(image)?;
        Ok(Box::new(Host(Arc::new(library))))
    }
}

struct Host(Arc<Library>);

impl Code for Host {
    fn kernel(&self, name: &str) -> Option<Box<dyn Program>> {
        // SAFETY: `GP_KERNEL` declares both symbols so; a library of another kind has no such pair.
        let signature =
            unsafe { self.0.get::<*const Signature>(format!("{name}__signature")) }.ok()?;
        // SAFETY: a constant of the library, which is loaded.
        let signature = unsafe { **signature };
        // SAFETY: as for the signature.
        let entry = *unsafe { self.0.get::<Entry>(name) }.ok()?;
        if signature.arguments as usize > signature.bytes.len() {
            return None;
        }
        Some(Box::new(Kernel {
            entry,
            signature,
            _library: Arc::clone(&self.0),
        }))
    }
}

struct Kernel {
    entry: Entry,
    signature: Signature,
    _library: Arc<Library>,
}

impl Program for Kernel {
    fn argument_bytes(&self) -> &[u32] {
        &self.signature.bytes[..self.signature.arguments as usize]
    }

    fn needs(&self) -> Needs {
        Needs {
            max_block: self.signature.block,
            ..Needs::default()
        }
    }

    fn run(
        &self,
        grid: u32,
        block: u32,
        arguments: &[Box<[u8]>],
        _memory: &Memory,
    ) -> Result<(), String> {
        if block != self.signature.block {
            return Err(format!(
                "launched with blocks of {block} threads, compiled for {}",
                self.signature.block
            ));
        }
        // In words, so that each value is aligned as its type may want it.
        let mut words: Vec<u64> = arguments
            .iter()
            .map(|value| {
                let mut word = [0; 8];
                let bytes = value.len().min(8);
                word[..bytes].copy_from_slice(&value[..bytes]);
                u64::from_ne_bytes(word)
            })
            .collect();
        let mut pointers: Vec<*mut c_void> = words
            .iter_mut()
            .map(|word| std::ptr::from_mut(word).cast())
            .collect();
        let launch = Launch {
            grid,
            block,
            threads: available_parallelism().map_or(1, |n| n.get() as u32),
        };
        let mut message = [0u8; 256];
        // SAFETY: the entry is a kernel's, with as many values as its signature says; what they point at is the promise of
        // whoever launched it, and a guard page behind each allocation ends the process that breaks it.
        let failed = unsafe {
            (self.entry)(
                &raw const launch,
                pointers.as_mut_ptr(),
                message.as_mut_ptr().cast(),
                message.len() as u64,
            )
        };
        if failed == 0 {
            return Ok(());
        }
        let end = message.iter().position(|&b| b == 0).unwrap_or(0);
        Err(String::from_utf8_lossy(&message[..end]).into_owned())
    }
}

/// Load a shared library from memory, through a file that is gone when this returns.
///
/// The system knows loaded libraries by their paths, so that each gets one of its own.
fn open(image: &[u8]) -> Result<Library, String> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let n = OPENED.fetch_add(1, Ordering::Relaxed);
    let path = temp_dir().join(format!("ds4-kernels-{}-{n}.so", std::process::id()));
    let mut file = File::create_new(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let written = file.write_all(image).map_err(|e| e.to_string());
    drop(file);
    // SAFETY: what its initialisers do is that of kernels compiled from our sources: nothing.
    let loaded = written.and_then(|()| unsafe { Library::new(&path) }.map_err(|e| e.to_string()));
    std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    loaded
}
