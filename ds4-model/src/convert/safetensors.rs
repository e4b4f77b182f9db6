//! One safetensors file: a checked directory, and bytes by position.
//!
//! ```text
//! byte 0..8      n, u64 little endian
//! byte 8..8+n    JSON: { name: { "dtype": …, "shape": [ … ], "data_offsets": [start, end] }, …, "__metadata__": { … } }
//! from 8+n       data; offsets count from here
//! ```
//! Nothing is mapped: rows are read when they are asked for. Bytes that no tensor has are of no interest here; two
//! tensors on the same bytes are a broken file. Source: huggingface/safetensors:README.md (Format).

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::{ConvertError, Shape};
use super::read::regular;

/// Most bytes of a header: the limit of the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

/// Element types that a DeepSeek-V4 checkpoint may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// `f32`.
    F32,
    /// Half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// Sign, four bits of exponent, three of mantissa; no infinities.
    F8E4m3,
    /// An exponent alone: `2^(e − 127)`.
    F8E8m0,
    /// Two E2M1 numbers a byte, counted as two elements.
    F4,
    /// A byte; in expert weights two E2M1 numbers.
    I8,
    /// A byte; in expert weights two E2M1 numbers.
    U8,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
}

impl Dtype {
    const ALL: [(Self, &'static str, u64); 10] = [
        (Self::F32, "F32", 32),
        (Self::F16, "F16", 16),
        (Self::Bf16, "BF16", 16),
        (Self::F8E4m3, "F8_E4M3", 8),
        (Self::F8E8m0, "F8_E8M0", 8),
        (Self::F4, "F4", 4),
        (Self::I8, "I8", 8),
        (Self::U8, "U8", 8),
        (Self::I32, "I32", 32),
        (Self::I64, "I64", 64),
    ];

    fn by_name(name: &str) -> Option<Self> {
        let (dtype, ..) = Self::ALL.iter().find(|(_, known, _)| *known == name)?;
        Some(*dtype)
    }

    fn row(self) -> (&'static str, u64) {
        let row = Self::ALL.iter().find(|(dtype, ..)| *dtype == self);
        row.map_or(("", 0), |&(_, name, bits)| (name, bits))
    }

    /// Bits of an element.
    pub fn bits(self) -> u64 {
        self.row().1
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().0)
    }
}

/// One tensor of the directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Box<str>,
    /// As the file spells it.
    pub(super) spelled: Box<str>,
    /// `None` for types that no model here has.
    pub(super) dtype: Option<Dtype>,
    /// Slowest extent first.
    pub(super) shape: Vec<u64>,
    /// From the start of the file.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Safetensors {
    pub(super) path: PathBuf,
    file: Mutex<File>,
    pub(super) entries: Vec<Entry>,
}

impl Safetensors {
    /// Read and check the directory of `path`.
    pub(super) fn open(path: &Path) -> Result<Self, ConvertError> {
        let io = |source| ConvertError::Io {
            path: path.to_owned(),
            source,
        };
        let (mut file, len) = regular(path)?;
        let mut size = [0; 8];
        file.read_exact(&mut size).map_err(io)?;
        let header = u64::from_le_bytes(size);
        if header > MAX_HEADER.min(len.saturating_sub(8)) {
            return Err(ConvertError::HeaderSize {
                path: path.to_owned(),
                found: header,
                len,
                most: MAX_HEADER,
            });
        }
        let mut json = vec![0; header as usize];
        file.read_exact(&mut json).map_err(io)?;
        let Directory(lines) =
            serde_json::from_slice(&json).map_err(|source| ConvertError::Json {
                path: path.to_owned(),
                source,
            })?;
        let entries = lines
            .into_iter()
            .map(|(name, line)| entry(path, 8 + header, len, name, line))
            .collect::<Result<Vec<_>, _>>()?;
        check(path, &entries)?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            entries,
        })
    }

    /// Fill `out` from byte `at` of the file.
    pub(super) fn read(&self, at: u64, out: &mut [u8]) -> Result<(), ConvertError> {
        // A position is set before every read: what a panic elsewhere left behind does not matter.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(out))
            .map_err(|source| ConvertError::Io {
                path: self.path.clone(),
                source,
            })
    }
}

/// A line of the header as it is spelled.
#[derive(Deserialize)]
struct Line {
    dtype: Box<str>,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The header; a name that comes twice is there twice.
struct Directory(Vec<(Box<str>, Line)>);

impl<'de> Deserialize<'de> for Directory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = Directory;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Directory, A::Error> {
                let mut lines = Vec::new();
                while let Some(name) = map.next_key::<Box<str>>()? {
                    if &*name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        lines.push((name, map.next_value()?));
                    }
                }
                Ok(Directory(lines))
            }
        }
        deserializer.deserialize_map(Lines)
    }
}

fn entry(
    path: &Path,
    data: u64,
    len: u64,
    name: Box<str>,
    line: Line,
) -> Result<Entry, ConvertError> {
    let [first, last] = line.data_offsets;
    let (start, end) = (data.saturating_add(first), data.saturating_add(last));
    if first > last || end > len {
        return Err(ConvertError::OutOfFile {
            path: path.to_owned(),
            tensor: name,
            start,
            end,
            len,
        });
    }
    let dtype = Dtype::by_name(&line.dtype);
    let bits = |dtype: Dtype| {
        line.shape
            .iter()
            .try_fold(dtype.bits(), |product, &n| product.checked_mul(n))
    };
    let bytes = end - start;
    if dtype.is_some_and(|dtype| bits(dtype) != bytes.checked_mul(8)) {
        return Err(ConvertError::Bytes {
            path: path.to_owned(),
            tensor: name,
            dtype: line.dtype,
            shape: Shape(line.shape),
            found: bytes,
        });
    }
    Ok(Entry {
        name,
        spelled: line.dtype,
        dtype,
        shape: line.shape,
        start,
        bytes,
    })
}

/// No name and no byte twice.
fn check(path: &Path, entries: &[Entry]) -> Result<(), ConvertError> {
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some([first, _]) = order
        .windows(2)
        .find(|pair| pair[0].name == pair[1].name)
        .map(|p| [p[0], p[1]])
    {
        return Err(ConvertError::Twice {
            path: path.to_owned(),
            tensor: first.name.clone(),
        });
    }
    order.retain(|entry| entry.bytes > 0);
    order.sort_by_key(|entry| entry.start);
    let shared = order
        .windows(2)
        .find(|pair| pair[0].start + pair[0].bytes > pair[1].start);
    match shared {
        Some(pair) => Err(ConvertError::Overlap {
            path: path.to_owned(),
            first: pair[0].name.clone(),
            second: pair[1].name.clone(),
        }),
        None => Ok(()),
    }
}
