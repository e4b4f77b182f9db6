//! Tensors of a file: where they are, what they hold, and which of them cannot be used.

use std::fmt;

use bytemuck::{AnyBitPattern, PodCastError};

use crate::directory::Entry;
use crate::error::Malformed;
use crate::ty::ROCMFP2_ID;
use crate::{Dims, Error, RocmFp2Layout, TensorType, rocmfp2};

/// Where a tensor's bytes are in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Bytes from the start of the file; in a [`Plan`](crate::Plan), whose header has no size yet, from the start of the data.
    pub offset: u64,
    /// Length in bytes; 0 when the type is unknown.
    pub bytes: u64,
}

/// One line of the tensor table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, unique in the model.
    pub name: Box<str>,
    /// Shape, fastest extent first.
    pub dims: Dims,
    /// Format of the blocks.
    pub ty: TensorType,
    /// Place in the file.
    pub extent: Extent,
    /// Index of the file in [`crate::Gguf::shards`]; 0 unless the model is split.
    pub shard: u32,
}

/// A tensor and its bytes, borrowed from the mapping.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    /// Its line of the table.
    pub info: &'a TensorInfo,
    /// Packed rows, `rows · row_bytes` long; empty when the type is unknown.
    pub bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    /// The bytes as blocks, or as numbers: `f32` for F32, `i32` for I32, a 34-byte struct for Q8_0.
    ///
    /// Only the size of `T` is compared with the type's block; look at `info.ty` first.
    ///
    /// # Errors
    /// [`Error::View`] when a `T` is not as large as one block, or the data lies at an address a `T` cannot have.
    pub fn blocks<T: AnyBitPattern>(&self) -> Result<&'a [T], Error> {
        let fail = |why| Error::View {
            name: self.info.name.clone(),
            ty: self.info.ty,
            want: std::any::type_name::<T>(),
            why,
        };
        if size_of::<T>() != self.info.ty.block_bytes() || size_of::<T>() == 0 {
            return Err(fail("its blocks have another size"));
        }
        bytemuck::try_cast_slice(self.bytes).map_err(|error| match error {
            PodCastError::TargetAlignmentGreaterAndInputNotAligned => {
                fail("the data is not aligned for it")
            }
            _ => fail("the data is not a whole number of blocks"),
        })
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.info, f)
    }
}

/// A tensor whose type has no known layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported<'a> {
    /// The tensor.
    pub name: &'a str,
    /// The id in the file.
    pub id: u32,
    /// Why the id means nothing here.
    pub reason: Reason,
}

/// Why a type id has no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No known producer writes it.
    Unknown,
    /// ggml gave the id up.
    Retired,
    /// Several producers write different things under it, or none has published what it writes.
    Ambiguous(&'static str),
    /// Id 107 in a file with neither a key nor enough blocks to tell.
    LayoutUndecided {
        /// Blocks that could be looked at.
        blocks: u64,
    },
}

impl Reason {
    /// Why `id` has no layout.
    pub(crate) fn of(id: u32, undecided_blocks: u64) -> Self {
        match id {
            4 | 5 | 31..=33 | 36..=38 => Self::Retired,
            42 => Self::Ambiguous("Q2_0, TQ3_0 or F8_E4M3_B128, depending on who wrote the file"),
            109 => Self::Ambiguous("a 5-bit ROCmFPX type whose layout is not published"),
            110 => Self::Ambiguous("a 7-bit ROCmFPX type of which two layouts exist"),
            ROCMFP2_ID => Self::LayoutUndecided {
                blocks: undecided_blocks,
            },
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown type"),
            Self::Retired => f.write_str("type retired by ggml"),
            Self::Ambiguous(what) => f.write_str(what),
            Self::LayoutUndecided { blocks } => write!(
                f,
                "one of three layouts of ROCmFP2, and {blocks} blocks are too few to tell which ({} are needed); \
                 name it with OpenOptions::rocmfp2_layout or the key {}",
                rocmfp2::ENOUGH,
                RocmFp2Layout::KEY
            ),
        }
    }
}

/// Give the entries of one file types and extents, and check that they lie inside its `len` bytes and apart.
///
/// Id 107 is sized as any of its layouts and typed as two-scale until the layout is decided.
pub(crate) fn resolve(
    entries: Vec<Entry>,
    len: u64,
    shard: u32,
) -> Result<Vec<TensorInfo>, Malformed> {
    let tensors = entries
        .into_iter()
        .map(|entry| size(entry, len, shard))
        .collect::<Result<Vec<_>, _>>()?;
    check_apart(&tensors)?;
    Ok(tensors)
}

fn size(entry: Entry, len: u64, shard: u32) -> Result<TensorInfo, Malformed> {
    let Entry {
        name,
        dims,
        type_id,
        start,
    } = entry;
    let ty = TensorType::from_id_with(type_id, RocmFp2Layout::TwoScale)
        .unwrap_or(TensorType::Unknown(type_id));
    let bytes = if let TensorType::Unknown(_) = ty {
        0
    } else {
        tensor_bytes(&name, &dims, ty)?
    };
    if start.checked_add(bytes).is_none_or(|end| end > len) {
        return Err(Malformed::OutOfFile {
            name,
            start,
            bytes,
            len,
        });
    }
    Ok(TensorInfo {
        name,
        dims,
        ty,
        extent: Extent {
            offset: start,
            bytes,
        },
        shard,
    })
}

/// Bytes of a tensor of a known type.
pub(crate) fn tensor_bytes(name: &str, dims: &Dims, ty: TensorType) -> Result<u64, Malformed> {
    let cols = dims.cols();
    if !cols.is_multiple_of(ty.block_len() as u64) {
        return Err(Malformed::Row {
            name: name.into(),
            ty,
            cols,
        });
    }
    ty.row_bytes(cols)
        .ok()
        .and_then(|row| row.checked_mul(dims.rows()))
        .ok_or_else(|| Malformed::TooLarge {
            name: name.into(),
            ty,
            elements: dims.elements(),
        })
}

/// No two tensors share a byte. A tensor of unknown size counts as one byte.
fn check_apart(tensors: &[TensorInfo]) -> Result<(), Malformed> {
    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    by_offset.sort_by_key(|tensor| tensor.extent.offset);
    for pair in by_offset.windows(2) {
        let [first, second] = [pair[0], pair[1]];
        // Ends are inside the file, so nothing overflows.
        let end = first.extent.offset + first.extent.bytes.max(1);
        if second.extent.offset < end {
            return Err(Malformed::Overlap {
                name: second.name.clone(),
                start: second.extent.offset,
                other: first.name.clone(),
                end,
            });
        }
    }
    Ok(())
}
