//! What can go wrong between this program and the HIP runtime.

use std::fmt;
use std::path::PathBuf;

use crate::Version;

/// What can go wrong between this program and the HIP runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No library of the right name was found anywhere; [`Search`](crate::Search) says where to look. Ordinary on machines
    /// without an AMD GPU.
    #[error(
        "no HIP runtime found (tried {}); install ROCm 6 or newer, or name its library folder",
        list(tried)
    )]
    NotInstalled {
        /// What was tried, in order.
        tried: Vec<Attempt>,
    },
    /// A runtime is there, older than this crate understands.
    #[error("the HIP runtime {} is {}, at least {need} is needed; update ROCm", path.display(), found_version(*found))]
    TooOld {
        /// The library as it was opened.
        path: PathBuf,
        /// Its version, when it can say.
        found: Option<Version>,
        /// The oldest major version that is understood.
        need: u32,
    },
    /// A library is there but the system cannot load it, most often because something it needs is missing.
    #[error("the HIP runtime {} cannot be loaded", path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's own words.
        #[source]
        source: libloading::Error,
    },
    /// The library lacks a function.
    #[error("the HIP runtime {} has no function `{symbol}`", path.display())]
    NoSymbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The runtime is there and sees no device. Ordinary on machines without an AMD GPU, and where the user may not open
    /// `/dev/kfd`.
    #[error(
        "the HIP runtime sees no device; is an AMD GPU there, and is this user in the `render` group?"
    )]
    NoDevice,
    /// A device was asked for by a number that none has.
    #[error("there is no HIP device {ordinal}; the runtime sees {count}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// Memory could not be had.
    #[error("out of {pool}: {} more bytes were asked for{}", bytes, room(*free, *total))]
    OutOfMemory {
        /// Which memory.
        pool: Pool,
        /// What was asked for, in bytes.
        bytes: usize,
        /// Free bytes of the device, where it could be asked.
        free: Option<u64>,
        /// All bytes of the device, where it could be asked.
        total: Option<u64>,
    },
    /// A code object that the runtime does not take.
    #[error(
        "the runtime does not load this code object of {bytes} bytes for `{arch}` (HIP error {code}, {name}: {text})"
    )]
    Module {
        /// The device's architecture.
        arch: Box<str>,
        /// The length of the code object.
        bytes: usize,
        /// `hipError_t` as a number.
        code: u32,
        /// Its name, as the runtime says it.
        name: Box<str>,
        /// Its meaning, as the runtime says it.
        text: Box<str>,
    },
    /// A code object lacks a kernel.
    #[error("the code object has no kernel `{name}`")]
    NoKernel {
        /// The kernel.
        name: Box<str>,
    },
    /// A launch that no device can take.
    #[error("kernel `{kernel}`: {what} is {found}, expected {expected}")]
    Launch {
        /// The kernel.
        kernel: Box<str>,
        /// What is wrong.
        what: &'static str,
        /// What it is.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// Two lengths that must be equal are not.
    #[error("{what} has {found} elements, expected {expected}")]
    Length {
        /// What has the wrong length.
        what: &'static str,
        /// Its length.
        found: usize,
        /// What was expected.
        expected: usize,
    },
    /// A part of a buffer that is not inside it.
    #[error("elements {start}..{end} are asked of a buffer of {len}")]
    Range {
        /// The first element.
        start: usize,
        /// The element behind the last.
        end: usize,
        /// The buffer's length in elements.
        len: usize,
    },
    /// Something that a graph or a capture cannot do.
    #[error("{what}")]
    Graph {
        /// What was asked, and why it cannot be.
        what: &'static str,
    },
    /// A node was named that the graph does not have.
    #[error("the graph has {nodes} nodes and node {node} is no kernel of it")]
    NoSuchNode {
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// A path that C cannot take.
    #[error("{} cannot be given to the runtime: it contains a zero byte", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A call failed.
    #[error("{call} failed with HIP error {code} ({name}: {text})")]
    Call {
        /// The function.
        call: &'static str,
        /// `hipError_t` as a number.
        code: u32,
        /// Its name, as the runtime says it.
        name: Box<str>,
        /// Its meaning, as the runtime says it.
        text: Box<str>,
    },
    /// A call succeeded and returned a value that has no meaning.
    #[error("{call} returned {value}, expected a number that is not negative")]
    Value {
        /// The function.
        call: &'static str,
        /// What it returned.
        value: i32,
    },
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pool {
    /// The device's own; on an APU the part of the machine's memory that the GPU may map.
    Device,
    /// Pages of the machine that are locked for the device.
    Pinned,
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device memory",
            Self::Pinned => "pinned host memory",
        })
    }
}

/// One library that was looked for and not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// A full path, or a bare name for the system's loader to find.
    pub path: PathBuf,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

fn list(tried: &[Attempt]) -> String {
    tried
        .iter()
        .map(Attempt::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn found_version(found: Option<Version>) -> String {
    found.map_or_else(|| "of version 5".to_owned(), |v| v.to_string())
}

fn room(free: Option<u64>, total: Option<u64>) -> String {
    match (free, total) {
        (Some(free), Some(total)) => format!(", {free} of {total} bytes are free"),
        _ => String::new(),
    }
}
