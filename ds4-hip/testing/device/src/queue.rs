//! Work of streams, in order, done when somebody must wait for it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Program;
use crate::memory::Memory;

/// One thing to do.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel {
        program: Arc<dyn Program>,
        name: Arc<str>,
        grid: u32,
        block: u32,
        arguments: Vec<Box<[u8]>>,
    },
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
    Fill {
        to: usize,
        byte: u8,
        bytes: usize,
    },
    /// The event's `n`-th record is reached.
    Record {
        event: usize,
        n: u64,
    },
    /// Go on when the event's `n`-th record is reached.
    Wait {
        event: usize,
        n: u64,
    },
}

impl Work {
    /// A word for it in a drawing.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Kernel {
                name, grid, block, ..
            } => format!("{name}\\n{grid} x {block}"),
            Self::Copy { bytes, .. } => format!("copy {bytes}"),
            Self::Fill { bytes, .. } => format!("fill {bytes}"),
            Self::Record { .. } => "record".to_owned(),
            Self::Wait { .. } => "wait".to_owned(),
        }
    }

    /// Do it, unless it is about events.
    pub(crate) fn run(&self, memory: &Memory) -> Result<(), String> {
        match self {
            Self::Kernel {
                program,
                name,
                grid,
                block,
                arguments,
            } => program
                .run(*grid, *block, arguments, memory)
                .map_err(|what| format!("kernel `{name}`: {what}")),
            Self::Copy { to, from, bytes } => {
                // SAFETY: the caller of hipMemcpyAsync promised both ranges until it has waited; ends on the device were
                // looked up when the copy was put in, and freeing memory waits for all work.
                unsafe { std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes) };
                Ok(())
            }
            Self::Fill { to, byte, bytes } => {
                // SAFETY: as for a copy.
                unsafe { std::ptr::write_bytes(*to as *mut u8, *byte, *bytes) };
                Ok(())
            }
            Self::Record { .. } | Self::Wait { .. } => Ok(()),
        }
    }
}

/// A stream.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) work: VecDeque<Work>,
    /// While it is captured: the graph, and the nodes that the next one comes after.
    pub(crate) capture: Option<Capture>,
}

/// Where a captured stream stands.
#[derive(Clone)]
pub(crate) struct Capture {
    pub(crate) graph: usize,
    pub(crate) after: Vec<usize>,
    /// Whether this stream began it and must end it.
    pub(crate) origin: bool,
}

/// An event: how often it was recorded, and how often that was reached.
#[derive(Default)]
pub(crate) struct Event {
    pub(crate) recorded: u64,
    pub(crate) reached: u64,
    pub(crate) at: Option<std::time::Instant>,
    pub(crate) timed: bool,
    /// The stream it was last recorded in.
    pub(crate) stream: usize,
    /// When that was in a capture: what it stands behind.
    pub(crate) capture: Option<Capture>,
}
