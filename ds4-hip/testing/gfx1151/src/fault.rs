//! What stops a launch: where, and what happened.

use std::fmt;

/// Whether memory was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write that other waves see as one step.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atomic => "atomic access",
        })
    }
}

/// The allocation closest to an address that is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// Memory outside every allocation, or across the end of one.
    #[error("{access} of {bytes} bytes at {address:#x} is out of bounds{}", near(*address, nearest))]
    OutOfBounds {
        /// Read or write.
        access: Access,
        /// First byte.
        address: u64,
        /// How many.
        bytes: u64,
        /// The closest allocation.
        nearest: Option<Nearest>,
    },
    /// A store to memory that kernels may not write: arguments, code, constants.
    #[error("{access} of {bytes} bytes at {address:#x}, which is read-only")]
    ReadOnly {
        /// Write or atomic.
        access: Access,
        /// First byte.
        address: u64,
        /// How many.
        bytes: u64,
    },
    /// An address that the hardware does not serve at this alignment.
    #[error("address {address:#x} is not a multiple of {need}")]
    Misaligned {
        /// The address; an offset in LDS for LDS instructions.
        address: u64,
        /// The alignment in bytes.
        need: u64,
    },
    /// LDS beyond the block's allocation.
    #[error("{access} of {bytes} bytes at LDS offset {offset:#x}, the block has {lds_bytes} bytes")]
    LdsOutOfBounds {
        /// Read or write.
        access: Access,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u32,
        /// The block's LDS.
        lds_bytes: u32,
    },
    /// A vector register read in a lane that never wrote it.
    #[error("v{register} is read before anything was written to it in this lane")]
    UndefinedVgpr {
        /// The register.
        register: u8,
    },
    /// A scalar register read before it was written.
    #[error("scalar register {register} is read before anything was written to it")]
    UndefinedSgpr {
        /// The register: 0..=105 are s0 to s105, 106 and 107 VCC, 125 M0.
        register: u8,
    },
    /// LDS read before it was written.
    #[error("LDS offset {offset:#x} is read before anything was written to it")]
    UndefinedLds {
        /// The first such byte.
        offset: u32,
    },
    /// Two waves touched the same LDS bytes with no barrier between, at least one of them writing.
    #[error(
        "{access} at LDS offset {offset:#x} races with the {other} by wave {other_wave}: no barrier lies between"
    )]
    LdsRace {
        /// This wave's access.
        access: Access,
        /// The byte.
        offset: u32,
        /// The earlier access.
        other: Access,
        /// Who made it.
        other_wave: u32,
    },
    /// Not all waves, or not all lanes of a wave, came to the same barrier.
    #[error("barrier reached divergently: {what}")]
    BarrierDivergence {
        /// What differs.
        what: String,
    },
    /// A matrix instruction with lanes switched off.
    #[error("a matrix instruction runs with lanes switched off (EXEC = {exec:#010x})")]
    MatrixLanesOff {
        /// The mask of active lanes.
        exec: u32,
    },
    /// A jump to where no instruction starts.
    #[error("jump to {address:#x}, where no instruction starts")]
    Jump {
        /// The target.
        address: u64,
    },
    /// The launch ran longer than its limit.
    #[error("more than {limit} wave instructions: raise the limit, or the kernel does not end")]
    StepLimit {
        /// The limit, in wave instructions.
        limit: u64,
    },
    /// The kernel stopped itself (`s_trap`).
    #[error("the kernel trapped")]
    Trap,
    /// A mode or a register that is not modelled.
    #[error("{what} is not modelled")]
    NotModelled {
        /// What.
        what: &'static str,
    },
    /// The launch itself does not fit the kernel.
    #[error("the launch does not fit the kernel: {what} is {found}, at most {limit} allowed")]
    Launch {
        /// Which quantity.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What the kernel or the device allows.
        limit: u64,
    },
    /// Fewer argument bytes than the kernel reads.
    #[error("the kernel takes {expected} bytes of arguments, {found} were given")]
    Arguments {
        /// Bytes of explicit arguments.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
}

fn near(address: u64, nearest: &Option<Nearest>) -> String {
    let Some(n) = nearest else {
        return "; nothing is allocated".to_owned();
    };
    let end = n.start.saturating_add(n.bytes);
    if address >= end {
        format!(
            "; the nearest allocation ({} bytes at {:#x}) ends {} bytes before",
            n.bytes,
            n.start,
            address - end
        )
    } else if address < n.start {
        format!(
            "; the nearest allocation ({} bytes at {:#x}) starts {} bytes after",
            n.bytes,
            n.start,
            n.start - address
        )
    } else {
        format!(
            "; it crosses the end of the allocation of {} bytes at {:#x}",
            n.bytes, n.start
        )
    }
}

/// A launch that stopped: the place in the program and in the grid, and what happened there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// The instruction as the disassembler writes it; empty before the first one.
    pub instruction: String,
    /// Its address within the code object.
    pub address: u64,
    /// The block (workgroup).
    pub block: [u32; 3],
    /// The wave within the block.
    pub wave: u32,
    /// The lane, where one lane is to blame.
    pub lane: Option<u32>,
    /// What happened.
    pub trouble: Trouble,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kernel, self.trouble)?;
        let [x, y, z] = self.block;
        write!(f, " (block {x},{y},{z} wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, " lane {lane}")?;
        }
        if !self.instruction.is_empty() {
            write!(f, ", `{}` at {:#x}", self.instruction, self.address)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Fault {}

/// A trouble and the lane it happened in, before the launch adds the rest.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) lane: Option<u32>,
    pub(crate) trouble: Trouble,
}

impl Stop {
    /// At `lane`.
    pub(crate) fn at(lane: u32, trouble: Trouble) -> Box<Self> {
        Box::new(Self {
            lane: Some(lane),
            trouble,
        })
    }
}

impl From<Trouble> for Box<Stop> {
    fn from(trouble: Trouble) -> Self {
        Box::new(Stop {
            lane: None,
            trouble,
        })
    }
}

/// What an instruction returns: boxed, so that the path without trouble moves one word.
pub(crate) type Done<T = ()> = Result<T, Box<Stop>>;
