//! The kernel descriptor `NAME.kd`: 64 bytes that the command processor reads before a kernel starts.
//!
//! ```text
//! byte  0  group_segment_fixed_size    u32    LDS
//! byte  4  private_segment_fixed_size  u32    scratch
//! byte  8  kernarg_size                u32
//! byte 16  kernel_code_entry_byte_offset i64  from the descriptor's own address
//! byte 44  compute_pgm_rsrc3           u32
//! byte 48  compute_pgm_rsrc1           u32    float mode, register counts
//! byte 52  compute_pgm_rsrc2           u32    which ids go where
//! byte 56  kernel_code_properties      u16    which user SGPRs there are
//! ```
//! Source: LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor and Initial Kernel Execution State.

use crate::Error;

/// What a register of the first wave state holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Address of the AQL dispatch packet, two registers.
    DispatchPacket,
    /// Address of the argument block, two registers.
    Arguments,
    /// Number of the dispatch, two registers.
    DispatchId,
    /// Workgroup id along one axis.
    BlockId(usize),
}

/// Denormals: whether sources and results that are denormal become zero. Fields of `MODE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatMode {
    /// Bits 0 and 1: f32 sources and results keep denormals. Bits 2 and 3: the same for f16 and f64.
    pub(crate) denormals: u8,
}

/// What this crate needs of a descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    pub(crate) entry: u64,
    pub(crate) lds_bytes: u32,
    /// What the first SGPRs hold, from s0 on.
    pub(crate) sgprs: Vec<(u8, Initial)>,
    pub(crate) mode: FloatMode,
}

/// Read the descriptor of `kernel` at `address`.
///
/// # Errors
/// [`Error::Scratch`], [`Error::Wave64`], [`Error::Descriptor`].
pub(crate) fn read(kernel: &str, bytes: &[u8; 64], address: u64) -> Result<Descriptor, Error> {
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let unsupported = |what| {
        Err(Error::Descriptor {
            kernel: kernel.to_owned(),
            what,
        })
    };
    let (lds_bytes, scratch) = (u32_at(0), u32_at(4));
    let offset = i64::from_le_bytes(std::array::from_fn(|i| bytes[16 + i]));
    let (rsrc1, rsrc2) = (u32_at(48), u32_at(52));
    let properties = u32_at(56) & 0xffff;
    let preload = u32_at(56) >> 16;
    if scratch != 0 || rsrc2 & 1 != 0 {
        return Err(Error::Scratch {
            kernel: kernel.to_owned(),
            bytes: scratch.into(),
        });
    }
    if properties & 1 << 10 == 0 {
        return Err(Error::Wave64 {
            kernel: kernel.to_owned(),
        });
    }
    let round = rsrc1 >> 12 & 15;
    let denormals = (rsrc1 >> 16 & 15) as u8;
    if round != 0 {
        return unsupported("a rounding mode other than nearest even");
    }
    if denormals >> 2 != 3 {
        return unsupported("flushing of f16 and f64 denormals");
    }
    if preload != 0 {
        return unsupported("preloaded arguments");
    }
    if rsrc2 >> 10 & 1 != 0 {
        return unsupported("the workgroup info register");
    }
    let user = rsrc2 >> 1 & 31;
    let mut sgprs = Vec::new();
    let mut next = 0;
    let fields = [
        (0, 4, None, "the private segment buffer"),
        (1, 2, Some(Initial::DispatchPacket), ""),
        (2, 2, None, "the queue pointer"),
        (3, 2, Some(Initial::Arguments), ""),
        (4, 2, Some(Initial::DispatchId), ""),
        (5, 2, None, "flat scratch"),
        (6, 1, None, "the private segment size"),
    ];
    for (bit, count, holds, what) in fields {
        if properties & 1 << bit != 0 {
            match holds {
                Some(holds) => sgprs.push((next, holds)),
                None => return unsupported(what),
            }
            next += count;
        }
    }
    if u32::from(next) > user {
        return unsupported("fewer user SGPRs than it enables");
    }
    // Workgroup ids follow the user SGPRs, whether or not all of those are used.
    next = user as u8;
    for axis in 0..3 {
        if rsrc2 >> (7 + axis) & 1 != 0 {
            sgprs.push((next, Initial::BlockId(axis)));
            next += 1;
        }
    }
    Ok(Descriptor {
        entry: address.wrapping_add_signed(offset),
        lds_bytes,
        sgprs,
        mode: FloatMode { denormals },
    })
}
