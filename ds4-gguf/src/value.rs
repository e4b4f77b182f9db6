//! Metadata values: thirteen types, owned as cheap shared ranges of the file they came from.

use std::fmt;

use crate::array::{Array, ArrayBuf};
use crate::bytes::Bytes;
use crate::convert::Item;

/// The type tag of a metadata value (`gguf_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

impl ValueType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The type with this tag.
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The tag in the file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Rust's name of a number type; `"bool"`, `"string"`, `"array"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// Bytes of a value in the file; for a string or an array the bytes of an empty one.
    pub(crate) const fn min_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::String => 8,
            Self::Array => 12,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string of the file: bytes that ought to be UTF-8 and in some files are not.
///
/// Cloning does not copy the text; it keeps the file mapped.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(pub(crate) Bytes);

impl Text {
    /// The bytes as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, or `None` when the bytes are not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::from(text.as_bytes().to_vec()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Bytes::from(text.into_bytes()))
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::from(bytes.to_vec()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// A metadata value, as stored. Use [`crate::Metadata::get`] to read one as a Rust type.
///
/// ```
/// use ds4_gguf::Value;
/// assert_eq!(Value::from(43u32).to_string(), "43");
/// assert_eq!(Value::from(vec![0i32, 4, 128]).to_string(), "[0, 4, 128]");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(Text),
    Array(ArrayBuf),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Value {
    /// The type tag.
    pub const fn ty(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The value without its width: what conversions look at.
    pub fn item(&self) -> Item<'_> {
        match self {
            Self::U8(n) => Item::Unsigned(u64::from(*n)),
            Self::U16(n) => Item::Unsigned(u64::from(*n)),
            Self::U32(n) => Item::Unsigned(u64::from(*n)),
            Self::U64(n) => Item::Unsigned(*n),
            Self::I8(n) => Item::Signed(i64::from(*n)),
            Self::I16(n) => Item::Signed(i64::from(*n)),
            Self::I32(n) => Item::Signed(i64::from(*n)),
            Self::I64(n) => Item::Signed(*n),
            Self::F32(n) => Item::F32(*n),
            Self::F64(n) => Item::F64(*n),
            Self::Bool(b) => Item::Bool(*b),
            Self::String(text) => Item::String(text.as_bytes()),
            Self::Array(array) => Item::Array(array.view()),
        }
    }

    /// Append the value as a file stores it, without its type tag.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(n) => out.extend(n.to_le_bytes()),
            Self::I8(n) => out.extend(n.to_le_bytes()),
            Self::U16(n) => out.extend(n.to_le_bytes()),
            Self::I16(n) => out.extend(n.to_le_bytes()),
            Self::U32(n) => out.extend(n.to_le_bytes()),
            Self::I32(n) => out.extend(n.to_le_bytes()),
            Self::F32(n) => out.extend(n.to_le_bytes()),
            Self::U64(n) => out.extend(n.to_le_bytes()),
            Self::I64(n) => out.extend(n.to_le_bytes()),
            Self::F64(n) => out.extend(n.to_le_bytes()),
            Self::Bool(b) => out.push(u8::from(*b)),
            Self::String(text) => encode_string(text.as_bytes(), out),
            Self::Array(array) => array.view().encode(out),
        }
    }
}

/// A string as a file stores it: 64-bit length, bytes.
pub(crate) fn encode_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

impl fmt::Display for Value {
    /// The value on one line; an array shows its first elements and its length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.item(), f)
    }
}

macro_rules! from_number {
    ($($number:ty => $variant:ident),+) => {
        $(impl From<$number> for Value {
            fn from(n: $number) -> Self {
                Self::$variant(n)
            }
        })+
    };
}

from_number!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool,
             u64 => U64, i64 => I64, f64 => F64);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<ArrayBuf> for Value {
    fn from(array: ArrayBuf) -> Self {
        Self::Array(array)
    }
}

impl From<Array<'_>> for Value {
    fn from(array: Array<'_>) -> Self {
        Self::Array(array.to_owned())
    }
}

impl<T> From<Vec<T>> for Value
where
    ArrayBuf: From<Vec<T>>,
{
    fn from(elements: Vec<T>) -> Self {
        Self::Array(elements.into())
    }
}
