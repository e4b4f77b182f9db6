//! Every handle and every error path, on the look-alike that runs kernels on the CPU.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests end where something fails, and say aloud what they leave out"
)]

mod errors;
mod graphs;
mod kernels;
mod memory;
mod order;

use std::path::PathBuf;
use std::sync::Arc;

use ds4_hip::{Device, Hip, Module, Search};
use ds4_hip_compile::{Compiler, Target};
use ds4_hip_testing::Control;
use libloading::Library;

/// The look-alike as this test opened it, and what controls it.
struct Bench {
    device: Arc<Device>,
    // The same library that `device` opened: the system gives it out again.
    library: Library,
}

impl Bench {
    fn new() -> Self {
        let path = lookalike();
        let hip = Hip::load_with(&Search::library(&path)).unwrap();
        Self {
            device: Device::open(&hip, 0).unwrap(),
            library: open(&path),
        }
    }

    /// The kernels of `vector.hip`; `None`, said aloud, where there is no compiler.
    fn module(&self) -> Option<Arc<Module>> {
        Some(Module::load(&self.device, &code()?).unwrap())
    }

    fn control(&self, what: Control, value: u64) -> u64 {
        control(&self.library, what, value)
    }
}

/// The look-alike: cargo builds it for these tests and puts it beside them.
fn lookalike() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.with_file_name("libds4_hip_cpu.so");
    assert!(path.exists(), "cargo builds {}", path.display());
    path
}

fn code() -> Option<Vec<u8>> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let compiler = match Compiler::find(Target::Host) {
        Ok(found) => found.include(here.join("include")),
        Err(why) => {
            println!("SKIPPED: {why}");
            return None;
        }
    };
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let path = compiler
        .compile(&here.join("tests/data/vector.hip"), &cache)
        .unwrap();
    Some(std::fs::read(path).unwrap())
}

#[expect(unsafe_code, reason = "opens the library under test a second time")]
fn open(path: &PathBuf) -> Library {
    // SAFETY: it is loaded already; its initialisers are those of Rust.
    unsafe { Library::new(path) }.unwrap()
}

#[expect(unsafe_code, reason = "asks the library under test")]
fn control(library: &Library, what: Control, value: u64) -> u64 {
    // SAFETY: the look-alike declares it so.
    let function = unsafe { library.get::<extern "C" fn(u32, u64) -> u64>("ds4_testing") }.unwrap();
    function(what as u32, value)
}
