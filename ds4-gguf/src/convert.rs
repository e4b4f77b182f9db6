//! Metadata values as Rust types: any integer that is in range, any number as a float, text, arrays.

use std::fmt;

use crate::array::{Array, Strings};

/// A value without its width: what a reader of metadata cares about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// `u8`, `u16`, `u32` or `u64`.
    Unsigned(u64),
    /// `i8`, `i16`, `i32` or `i64`.
    Signed(i64),
    /// `f32`.
    F32(f32),
    /// `f64`.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// A string's bytes.
    String(&'a [u8]),
    /// An array.
    Array(Array<'a>),
}

impl fmt::Display for Item<'_> {
    /// Numbers in digits, strings quoted and cut after 80 characters, arrays cut after 8 elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(n) => write!(f, "{n}"),
            Self::Signed(n) => write!(f, "{n}"),
            Self::F32(n) => write!(f, "{n}"),
            Self::F64(n) => write!(f, "{n}"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Array(array) => fmt::Display::fmt(array, f),
            Self::String(bytes) => {
                const SHOWN: usize = 80;
                // A character takes at most four bytes: a longer prefix is not looked at.
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN + 4)]);
                match text.char_indices().nth(SHOWN) {
                    Some((cut, _)) => write!(f, "{:?}… {} bytes in all", &text[..cut], bytes.len()),
                    None => write!(f, "{text:?}"),
                }
            }
        }
    }
}

impl Item<'_> {
    /// What this is, for a message: its kind, and the value of a number.
    fn describe(&self) -> String {
        match self {
            Self::Unsigned(n) => format!("the integer {n}"),
            Self::Signed(n) => format!("the integer {n}"),
            Self::F32(n) => format!("the number {n}"),
            Self::F64(n) => format!("the number {n}"),
            Self::Bool(b) => format!("the flag {b}"),
            Self::String(bytes) if std::str::from_utf8(bytes).is_ok() => {
                format!("the string {self}")
            }
            Self::String(bytes) => format!("{} bytes that are not UTF-8", bytes.len()),
            Self::Array(array) => format!("an array of {} {}", array.len(), array.element()),
        }
    }
}

/// Why a value is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was asked for.
    pub expected: String,
    /// What the file has.
    pub found: String,
}

/// A Rust type that a metadata value can be read as, with [`Metadata::get`](crate::Metadata::get).
///
/// | type | reads |
/// |---|---|
/// | `u8` … `i64`, `usize` | any integer in its range, whatever its width in the file |
/// | `f32`, `f64` | any number, rounded where it must be |
/// | `bool` | a boolean |
/// | `&str`, `String` | a string that is UTF-8 |
/// | `&[u8]` | a string, or an array of `u8` or `i8` |
/// | [`Array`](crate::Array), [`Strings`](crate::Strings) | an array; an array of strings |
/// | `Vec<T>` | an array, each element read as `T` |
pub trait FromValue<'a>: Sized {
    /// Read `item` as this type.
    ///
    /// # Errors
    /// What was expected and what `item` is, when it is of another kind or out of range.
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch>;
}

fn mismatch(expected: &str, found: &Item<'_>) -> Mismatch {
    Mismatch {
        expected: expected.into(),
        found: found.describe(),
    }
}

macro_rules! integers {
    ($($int:ty),+) => {
        $(impl<'a> FromValue<'a> for $int {
            fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
                let n = match item {
                    Item::Unsigned(n) => n.try_into().ok(),
                    Item::Signed(n) => n.try_into().ok(),
                    _ => None,
                };
                n.ok_or_else(|| mismatch(concat!("an integer in the range of ", stringify!($int)), &item))
            }
        })+
    };
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64);

impl<'a> FromValue<'a> for f64 {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        match item {
            Item::F64(n) => Ok(n),
            Item::F32(n) => Ok(f64::from(n)),
            Item::Unsigned(n) => Ok(n as f64),
            Item::Signed(n) => Ok(n as f64),
            _ => Err(mismatch("a number", &item)),
        }
    }
}

impl<'a> FromValue<'a> for f32 {
    /// Rounded to the nearest `f32` where the file has more digits.
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        f64::from_item(item).map(|n| n as f32)
    }
}

impl<'a> FromValue<'a> for bool {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        match item {
            Item::Bool(flag) => Ok(flag),
            _ => Err(mismatch("a boolean", &item)),
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        match item {
            Item::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
        .ok_or_else(|| mismatch("a string of UTF-8", &item))
    }
}

impl<'a> FromValue<'a> for String {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        <&str>::from_item(item).map(str::to_owned)
    }
}

impl<'a> FromValue<'a> for &'a [u8] {
    /// The bytes of a string, or of an array of `u8` or `i8`.
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        use crate::ValueType::{I8, U8};
        match item {
            Item::String(bytes) => Ok(bytes),
            Item::Array(array) if matches!(array.element(), U8 | I8) => Ok(array.encoded()),
            _ => Err(mismatch("a string or an array of bytes", &item)),
        }
    }
}

impl<'a> FromValue<'a> for Array<'a> {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        match item {
            Item::Array(array) => Ok(array),
            _ => Err(mismatch("an array", &item)),
        }
    }
}

impl<'a> FromValue<'a> for Strings<'a> {
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        match item {
            Item::Array(array) => array.strings(),
            _ => None,
        }
        .ok_or_else(|| mismatch("an array of strings", &item))
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    /// Every element converted; an array of strings as `Vec<&str>` borrows them all.
    fn from_item(item: Item<'a>) -> Result<Self, Mismatch> {
        let Item::Array(array) = item else {
            return Err(mismatch("an array", &item));
        };
        array
            .iter()
            .enumerate()
            .map(|(i, element)| {
                T::from_item(element).map_err(|m| Mismatch {
                    expected: m.expected,
                    found: format!("{} as element {i}", m.found),
                })
            })
            .collect()
    }
}
