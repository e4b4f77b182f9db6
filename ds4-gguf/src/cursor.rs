//! A reader over the bytes of a file in which no read can pass the end: every length is checked before it is used.

use std::fmt;
use std::ops::Range;

use crate::error::{Malformed, quoted};
use crate::value::ValueType;

/// Arrays inside arrays, at most this many levels.
pub(crate) const MAX_DEPTH: u32 = 8;

/// Longest key or tensor name in bytes: GGUF's own limit for keys.
pub(crate) const MAX_NAME: u64 = 65_535;

/// What is being read, for the message when it cannot be.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Header,
    Keys(u64),
    Key(u64),
    Value(&'a str),
    Tensors(u64),
    TensorName(u64),
    Tensor(&'a str),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Keys(count) => write!(f, "metadata of {count} keys"),
            Self::Key(index) => write!(f, "metadata key number {index}"),
            Self::Value(key) => write!(f, "the value of metadata key {}", quoted(key)),
            Self::Tensors(count) => write!(f, "a table of {count} tensors"),
            Self::TensorName(index) => write!(f, "the name of tensor number {index}"),
            Self::Tensor(name) => write!(f, "the entry of tensor {}", quoted(name)),
        }
    }
}

/// Position in `bytes`; little-endian reads that advance it.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Reads stop here: the end of the file, or the header limit where that is less.
    end: usize,
    pub(crate) subject: Subject<'a>,
}

impl<'a> Cursor<'a> {
    /// Reads from the start of `bytes`, never past `limit`.
    pub(crate) fn new(bytes: &'a [u8], limit: u64) -> Self {
        let end = usize::try_from(limit).map_or(bytes.len(), |limit| limit.min(bytes.len()));
        Self {
            bytes,
            at: 0,
            end,
            subject: Subject::Header,
        }
    }

    /// Bytes consumed so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes that can still be read.
    fn left(&self) -> u64 {
        (self.end - self.at) as u64
    }

    /// Why `need` more bytes cannot be had.
    fn short(&self, need: u64) -> Malformed {
        if self.end < self.bytes.len() && need <= (self.bytes.len() - self.at) as u64 {
            return Malformed::HeaderLimit {
                subject: self.subject.to_string().into(),
                limit: self.end as u64,
            };
        }
        Malformed::Truncated {
            subject: self.subject.to_string().into(),
            offset: self.at as u64,
            need,
            len: self.bytes.len() as u64,
        }
    }

    /// Refuse a count whose smallest encoding could not fit what is left.
    pub(crate) fn expect_items(&self, count: u64, item_bytes: u64) -> Result<(), Malformed> {
        match count.checked_mul(item_bytes) {
            Some(need) if need <= self.left() => Ok(()),
            need => Err(self.short(need.unwrap_or(u64::MAX))),
        }
    }

    /// The range of the next `len` bytes, which are skipped.
    pub(crate) fn skip(&mut self, len: u64) -> Result<Range<usize>, Malformed> {
        if len > self.left() {
            return Err(self.short(len));
        }
        let start = self.at;
        // `len` is at most `end - at`, so it fits.
        self.at += len as usize;
        Ok(start..self.at)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let range = self.skip(N as u64)?;
        Ok(self.bytes[range].try_into().expect("the range is N long"))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The range of a string's bytes: a 64-bit length, then that many bytes.
    pub(crate) fn string(&mut self) -> Result<Range<usize>, Malformed> {
        let len = self.u64()?;
        self.skip(len)
    }

    /// A key or tensor name: UTF-8, at most [`MAX_NAME`] bytes, not empty.
    pub(crate) fn name(&mut self) -> Result<&'a str, Malformed> {
        let offset = self.at as u64;
        let range = self.string()?;
        let subject = || self.subject.to_string().into();
        if range.len() as u64 > MAX_NAME || range.is_empty() {
            return Err(Malformed::NameLength {
                subject: subject(),
                len: range.len() as u64,
                offset,
            });
        }
        std::str::from_utf8(&self.bytes[range]).map_err(|error| Malformed::NotUtf8 {
            subject: subject(),
            offset,
            valid_up_to: error.valid_up_to() as u64,
        })
    }

    pub(crate) fn value_type(&mut self) -> Result<ValueType, Malformed> {
        let offset = self.at as u64;
        let id = self.u32()?;
        ValueType::from_id(id).ok_or_else(|| Malformed::ValueType {
            subject: self.subject.to_string().into(),
            id,
            offset,
        })
    }

    /// The element type and length of an array; `depth` arrays are around it.
    pub(crate) fn array_head(&mut self, depth: u32) -> Result<(ValueType, u64), Malformed> {
        if depth >= MAX_DEPTH {
            return Err(Malformed::Depth {
                subject: self.subject.to_string().into(),
                max: MAX_DEPTH,
                offset: self.at as u64,
            });
        }
        Ok((self.value_type()?, self.u64()?))
    }

    /// The range of `len` values of type `element`, each checked as far as its type has rules.
    pub(crate) fn elements(
        &mut self,
        element: ValueType,
        len: u64,
        depth: u32,
    ) -> Result<Range<usize>, Malformed> {
        self.expect_items(len, element.min_bytes())?;
        let start = self.at;
        match element {
            ValueType::String => {
                for _ in 0..len {
                    self.string()?;
                }
            }
            ValueType::Array => {
                for _ in 0..len {
                    let (inner, inner_len) = self.array_head(depth + 1)?;
                    self.elements(inner, inner_len, depth + 1)?;
                }
            }
            ValueType::Bool => {
                let range = self.skip(len)?;
                if let Some(i) = self.bytes[range].iter().position(|&byte| byte > 1) {
                    return Err(Malformed::Bool {
                        subject: self.subject.to_string().into(),
                        found: self.bytes[start + i],
                        offset: (start + i) as u64,
                    });
                }
            }
            number => {
                self.skip(len * number.min_bytes())?;
            }
        }
        Ok(start..self.at)
    }
}
