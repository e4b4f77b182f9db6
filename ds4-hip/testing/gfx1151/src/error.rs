//! Why a code object cannot be loaded.

use std::path::PathBuf;

/// Why a code object cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no ELF file, or a truncated one.
    #[error("not an ELF code object: {what}")]
    NotElf {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A code object for something other than gfx1151 under amdhsa, code object version 5.
    #[error(
        "the code object has {field} {found:#x}, expected {expected:#x} (gfx1151, amdhsa, code object v5)"
    )]
    Target {
        /// The field of the ELF header.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The value it must have.
        expected: u64,
    },
    /// The metadata note is missing or damaged.
    #[error("the metadata note of the code object is unusable: {what}")]
    Metadata {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A relocation of a kind that AMD's loader does not define for code objects, or to a symbol that is nowhere.
    #[error("relocation of type {kind} at {address:#x} cannot be applied")]
    Relocation {
        /// `R_AMDGPU_*`.
        kind: u32,
        /// Where.
        address: u64,
    },
    /// The disassembler cannot be started.
    #[error("cannot run the disassembler {}; install llvm-19", path.display())]
    NoDisassembler {
        /// The program.
        path: PathBuf,
        /// The system's words.
        #[source]
        source: std::io::Error,
    },
    /// The disassembler failed.
    #[error("the disassembler {} failed: {message}", path.display())]
    Disassembler {
        /// The program.
        path: PathBuf,
        /// What it wrote to its error stream.
        message: String,
    },
    /// An instruction that this crate does not execute.
    #[error("unknown instruction `{text}` at {address:#x} of `{function}`: {why}")]
    UnknownInstruction {
        /// The function's symbol.
        function: String,
        /// Address within the code object.
        address: u64,
        /// The instruction as the disassembler writes it.
        text: String,
        /// What about it is unknown.
        why: String,
    },
    /// A kernel that needs per-lane memory (spills, stack), which the product's kernels may not have.
    #[error("kernel `{kernel}` uses scratch memory ({bytes} bytes a lane)")]
    Scratch {
        /// The kernel.
        kernel: String,
        /// Bytes a lane.
        bytes: u64,
    },
    /// A kernel compiled for waves of 64 lanes.
    #[error("kernel `{kernel}` is compiled for waves of 64 lanes, expected 32")]
    Wave64 {
        /// The kernel.
        kernel: String,
    },
    /// A kernel descriptor that asks for something that is not modelled.
    #[error("kernel `{kernel}` asks for {what}, which is not modelled")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// What it asks for.
        what: &'static str,
    },
}
