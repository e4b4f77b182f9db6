//! One file's header: metadata and tensor table, read and checked; the meaning of the types comes later.
//!
//! ```text
//! 0    magic "GGUF"          4 bytes; "GGRQ" while a requantization overwrites the file in place
//! 4    version               u32     2 or 3
//! 8    tensors               u64
//! 16   keys                  u64
//! 24   keys × { key: string, type: u32, value }
//!      tensors × { name: string, rank: u32, ne: u64 × rank, type: u32, offset: u64 }
//!      zeros up to a multiple of the alignment; here the data starts, offsets count from here
//! ```
//! Source: ggml-org/ggml:docs/gguf.md. `general.alignment` is 32 when absent.

use std::collections::HashSet;

use crate::bytes::Bytes;
use crate::cursor::{Cursor, Subject};
use crate::error::Malformed;
use crate::value::{Text, Value, ValueType};
use crate::{ArrayBuf, Dims, Metadata};

/// The key of the alignment of tensors.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";

/// Alignment without the key.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;

/// Largest alignment: beyond huge pages there is nothing to align to, and padding is written in full.
const MAX_ALIGNMENT: u64 = 16 << 20;

/// What a reader accepts before it has seen anything it can trust.
///
/// Lengths are checked against the size of the file in any case. These limits bound the memory that a crafted large
/// file can claim: about 250 bytes a tensor and 350 bytes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of metadata and tensor table together. Default 256 MiB; published models need 5 to 20 MiB.
    pub header_bytes: u64,
    /// Tensors in one file. Default 1 048 576.
    pub tensors: u64,
    /// Metadata keys in one file. Default 65 536.
    pub keys: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 256 << 20,
            tensors: 1 << 20,
            keys: 1 << 16,
        }
    }
}

/// One tensor of the table, before its type has a meaning.
pub(crate) struct Entry {
    pub(crate) name: Box<str>,
    pub(crate) dims: Dims,
    pub(crate) type_id: u32,
    /// From the start of the file.
    pub(crate) start: u64,
}

/// One file's header.
pub(crate) struct Directory {
    pub(crate) version: u32,
    pub(crate) metadata: Metadata,
    pub(crate) alignment: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Directory {
    /// Read the header at the start of `file`.
    pub(crate) fn read(file: &Bytes, limits: &Limits) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(file, limits.header_bytes);
        let version = read_version(&mut cursor)?;
        let tensors = cursor.u64()?;
        let keys = cursor.u64()?;
        for (what, found, limit) in [
            ("tensors", tensors, limits.tensors),
            ("keys", keys, limits.keys),
        ] {
            if found > limit {
                return Err(Malformed::CountLimit { what, found, limit });
            }
        }
        let metadata = read_metadata(&mut cursor, file, keys)?;
        let alignment = alignment(&metadata)?;
        let mut entries = read_entries(&mut cursor, tensors)?;
        place(&mut entries, cursor.position() as u64, alignment)?;
        Ok(Self {
            version,
            metadata,
            alignment,
            entries,
        })
    }
}

/// The magic of a model that is being overwritten in place, by a requantization.
pub const UNFINISHED: [u8; 4] = *b"GGRQ";

/// Whether a file that starts like this is being overwritten: [`UNFINISHED`], or what a write of it, or over it, that was
/// torn can leave.
pub fn is_unfinished(magic: [u8; 4]) -> bool {
    [UNFINISHED, *b"GGRF", *b"GGUQ"].contains(&magic)
}

/// Magic and version.
fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, Malformed> {
    let magic = cursor.u32()?.to_le_bytes();
    match &magic {
        b"GGUF" => {}
        found if is_unfinished(*found) => return Err(Malformed::Unfinished),
        b"FUGG" => return Err(Malformed::BigEndian),
        _ => return Err(Malformed::Magic { found: magic }),
    }
    match cursor.u32()? {
        version @ (2 | 3) => Ok(version),
        // A big-endian file keeps the order of the magic's letters and swaps the version.
        swapped if (1..=0xffff).contains(&swapped.swap_bytes()) => Err(Malformed::BigEndian),
        found => Err(Malformed::Version { found }),
    }
}

fn read_metadata(cursor: &mut Cursor<'_>, file: &Bytes, keys: u64) -> Result<Metadata, Malformed> {
    let mut metadata = Metadata::new();
    cursor.subject = Subject::Keys(keys);
    // A key of one byte, its type, a value of one byte.
    cursor.expect_items(keys, 8 + 1 + 4 + 1)?;
    for index in 0..keys {
        cursor.subject = Subject::Key(index);
        let key = cursor.name()?;
        cursor.subject = Subject::Value(key);
        let ty = cursor.value_type()?;
        let value = read_value(cursor, file, ty)?;
        if metadata.set(key, value).is_some() {
            return Err(Malformed::DuplicateKey { key: key.into() });
        }
    }
    Ok(metadata)
}

fn read_value(cursor: &mut Cursor<'_>, file: &Bytes, ty: ValueType) -> Result<Value, Malformed> {
    Ok(match ty {
        ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array()?)),
        ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array()?)),
        ValueType::U16 => Value::U16(u16::from_le_bytes(cursor.array()?)),
        ValueType::I16 => Value::I16(i16::from_le_bytes(cursor.array()?)),
        ValueType::U32 => Value::U32(u32::from_le_bytes(cursor.array()?)),
        ValueType::I32 => Value::I32(i32::from_le_bytes(cursor.array()?)),
        ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array()?)),
        ValueType::U64 => Value::U64(u64::from_le_bytes(cursor.array()?)),
        ValueType::I64 => Value::I64(i64::from_le_bytes(cursor.array()?)),
        ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        ValueType::Bool => Value::Bool(file[cursor.elements(ty, 1, 0)?] == [1]),
        ValueType::String => Value::String(Text(file.slice(cursor.string()?))),
        ValueType::Array => {
            let (element, len) = cursor.array_head(0)?;
            let range = cursor.elements(element, len, 0)?;
            Value::Array(ArrayBuf::checked(element, len, file.slice(range)))
        }
    })
}

/// The alignment that `metadata` asks for: a power of two up to 16 MiB.
pub(crate) fn alignment(metadata: &Metadata) -> Result<u64, Malformed> {
    let Some(value) = metadata.value(ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match metadata.find::<u64>(ALIGNMENT_KEY) {
        Some(n) if n.is_power_of_two() && n <= MAX_ALIGNMENT => Ok(n),
        _ => Err(Malformed::Key {
            key: ALIGNMENT_KEY.into(),
            expected: format!("a power of two from 1 to {MAX_ALIGNMENT}").into(),
            found: value.to_string().into(),
        }),
    }
}

fn read_entries(cursor: &mut Cursor<'_>, tensors: u64) -> Result<Vec<Entry>, Malformed> {
    cursor.subject = Subject::Tensors(tensors);
    // A name of one byte, rank, one dimension, type, offset.
    cursor.expect_items(tensors, 8 + 1 + 4 + 8 + 4 + 8)?;
    let mut entries = Vec::with_capacity(tensors as usize);
    let mut seen = HashSet::with_capacity(tensors as usize);
    for index in 0..tensors {
        cursor.subject = Subject::TensorName(index);
        let name = cursor.name()?;
        if !seen.insert(name) {
            return Err(Malformed::DuplicateTensor { name: name.into() });
        }
        cursor.subject = Subject::Tensor(name);
        let rank = cursor.u32()?;
        if !(1..=Dims::MAX as u32).contains(&rank) {
            return Err(Malformed::Rank {
                name: name.into(),
                found: rank,
            });
        }
        let ne = (0..rank)
            .map(|_| cursor.u64())
            .collect::<Result<Vec<u64>, _>>()?;
        let Some(dims) = Dims::new(&ne) else {
            return Err(Malformed::Dims {
                name: name.into(),
                found: ne,
            });
        };
        let type_id = cursor.u32()?;
        let start = cursor.u64()?;
        entries.push(Entry {
            name: name.into(),
            dims,
            type_id,
            start,
        });
    }
    Ok(entries)
}

/// Turn offsets into the data section into offsets into the file.
fn place(entries: &mut [Entry], header_end: u64, alignment: u64) -> Result<(), Malformed> {
    // The header ends inside a file, and the alignment is small: no overflow.
    let data = header_end.next_multiple_of(alignment);
    for entry in entries {
        let offset = entry.start;
        if offset % alignment != 0 {
            return Err(Malformed::Misaligned {
                name: entry.name.clone(),
                offset,
                alignment,
            });
        }
        // An offset near 2⁶⁴ stays there; the range check that follows refuses it.
        entry.start = data.saturating_add(offset);
    }
    Ok(())
}
