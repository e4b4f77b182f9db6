#![doc = include_str!("../README.md")]

mod decode;
mod descriptor;
mod device;
mod elf;
mod error;
mod exec;
mod fault;
mod float16;
mod launch;
mod memory;
mod module;
mod note;
mod options;
mod simd;
mod table;
mod tools;

pub use error::Error;
pub use fault::{Access, Fault, Nearest, Trouble};
pub use memory::{Arena, Memory, Region};
pub use module::{Kernel, Module};
pub use note::Argument;
pub use options::{Class, Options, Order, Stats};
pub use tools::Tools;
