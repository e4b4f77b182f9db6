//! Arrays of metadata: kept encoded, as the file stores them, and decoded while they are walked.
//!
//! A tokenizer's 129 280 tokens stay where they are; walking them yields slices of the mapping.
//!
//! ```text
//! number, bool   elements back to back, little endian
//! string         u64 length, bytes; repeated
//! array          u32 element type, u64 length, elements; repeated
//! ```

use std::fmt;

use crate::bytes::Bytes;
use crate::convert::Item;
use crate::value::{ValueType, encode_string};

/// A stored array. Cloning copies a pointer; the file stays mapped.
#[derive(Clone, PartialEq, Eq)]
pub struct ArrayBuf {
    element: ValueType,
    len: u64,
    /// Elements only, in file encoding, checked when it was made.
    data: Bytes,
}

impl ArrayBuf {
    /// An array over checked bytes.
    pub(crate) fn checked(element: ValueType, len: u64, data: Bytes) -> Self {
        Self { element, len, data }
    }

    /// An array of strings.
    ///
    /// ```
    /// use ds4_gguf::ArrayBuf;
    /// let tokens = ArrayBuf::strings(["<s>", "</s>", "the"]);
    /// assert_eq!(tokens.view().strings().unwrap().nth(2), Some(&b"the"[..]));
    /// ```
    pub fn strings<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Self {
        let mut data = Vec::new();
        let mut len = 0;
        for string in strings {
            encode_string(string.as_ref(), &mut data);
            len += 1;
        }
        Self {
            element: ValueType::String,
            len,
            data: data.into(),
        }
    }

    /// An array of arrays. A file may nest them eight deep; the writer refuses more.
    pub fn arrays<'a>(arrays: impl IntoIterator<Item = Array<'a>>) -> Self {
        let mut data = Vec::new();
        let mut len = 0;
        for array in arrays {
            array.encode(&mut data);
            len += 1;
        }
        Self {
            element: ValueType::Array,
            len,
            data: data.into(),
        }
    }

    /// The array, borrowed: everything that reads it is there.
    pub fn view(&self) -> Array<'_> {
        Array {
            element: self.element,
            len: self.len,
            data: &self.data,
        }
    }
}

impl fmt::Debug for ArrayBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

/// A borrowed array: `Copy`, nothing decoded until it is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    element: ValueType,
    len: u64,
    data: &'a [u8],
}

impl<'a> Array<'a> {
    /// Type of the elements.
    pub fn element(&self) -> ValueType {
        self.element
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        // An element takes at least one byte of `data`, so the count fits.
        self.len as usize
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements in file encoding: for numbers, their little-endian bytes.
    pub fn encoded(&self) -> &'a [u8] {
        self.data
    }

    /// The elements, decoded one at a time.
    pub fn iter(&self) -> Items<'a> {
        Items {
            element: self.element,
            left: self.len(),
            data: self.data,
        }
    }

    /// The strings of an array of strings, `None` for any other.
    pub fn strings(&self) -> Option<Strings<'a>> {
        (self.element == ValueType::String).then(|| Strings {
            left: self.len(),
            data: self.data,
        })
    }

    /// An owned copy.
    pub fn to_owned(&self) -> ArrayBuf {
        ArrayBuf {
            element: self.element,
            len: self.len,
            data: self.data.to_vec().into(),
        }
    }

    /// Levels of arrays: 1 for an array of anything else, at least 2 for an array of arrays.
    pub(crate) fn depth(&self) -> u32 {
        if self.element != ValueType::Array {
            return 1;
        }
        let inner = self.iter().map(|item| match item {
            Item::Array(array) => array.depth(),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }

    /// Append the array as a file stores it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.element.id().to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend_from_slice(self.data);
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Item<'a>;
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl fmt::Display for Array<'_> {
    /// The first eight elements and, when there are more, how many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        f.write_str("[")?;
        for (i, item) in self.iter().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            fmt::Display::fmt(&item, f)?;
        }
        if self.len() > SHOWN {
            write!(f, ", … {} in all]", self.len())
        } else {
            f.write_str("]")
        }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {self}", self.element)
    }
}

/// Walks the strings of an array: byte slices of the mapping, no copies.
#[derive(Clone, Debug)]
pub struct Strings<'a> {
    left: usize,
    data: &'a [u8],
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        Some(split_string(&mut self.data))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Walks the elements of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    element: ValueType,
    left: usize,
    data: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.left = self.left.checked_sub(1)?;
        let data = &mut self.data;
        Some(match self.element {
            ValueType::U8 => Item::Unsigned(u64::from(u8::from_le_bytes(split(data)))),
            ValueType::U16 => Item::Unsigned(u64::from(u16::from_le_bytes(split(data)))),
            ValueType::U32 => Item::Unsigned(u64::from(u32::from_le_bytes(split(data)))),
            ValueType::U64 => Item::Unsigned(u64::from_le_bytes(split(data))),
            ValueType::I8 => Item::Signed(i64::from(i8::from_le_bytes(split(data)))),
            ValueType::I16 => Item::Signed(i64::from(i16::from_le_bytes(split(data)))),
            ValueType::I32 => Item::Signed(i64::from(i32::from_le_bytes(split(data)))),
            ValueType::I64 => Item::Signed(i64::from_le_bytes(split(data))),
            ValueType::F32 => Item::F32(f32::from_le_bytes(split(data))),
            ValueType::F64 => Item::F64(f64::from_le_bytes(split(data))),
            ValueType::Bool => Item::Bool(split::<1>(data)[0] != 0),
            ValueType::String => Item::String(split_string(data)),
            ValueType::Array => Item::Array(split_array(data)),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}

/// Take the first `N` bytes off `data`.
fn split<const N: usize>(data: &mut &[u8]) -> [u8; N] {
    let (head, tail) = data
        .split_first_chunk()
        .expect("elements were measured when the array was made");
    *data = tail;
    *head
}

/// Take `len` bytes off `data`.
fn split_bytes<'a>(data: &mut &'a [u8], len: u64) -> &'a [u8] {
    let len = usize::try_from(len).ok();
    let (head, tail) = len
        .and_then(|len| data.split_at_checked(len))
        .expect("elements were measured when the array was made");
    *data = tail;
    head
}

fn split_string<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let len = u64::from_le_bytes(split(data));
    split_bytes(data, len)
}

fn split_array<'a>(data: &mut &'a [u8]) -> Array<'a> {
    let element = ValueType::from_id(u32::from_le_bytes(split(data)))
        .expect("tags were read when the array was made");
    let len = u64::from_le_bytes(split(data));
    let mut rest = *data;
    match element {
        ValueType::String => {
            for _ in 0..len {
                split_string(&mut rest);
            }
        }
        ValueType::Array => {
            for _ in 0..len {
                split_array(&mut rest);
            }
        }
        number => {
            split_bytes(&mut rest, len * number.min_bytes());
        }
    }
    let elements = split_bytes(data, (data.len() - rest.len()) as u64);
    Array {
        element,
        len,
        data: elements,
    }
}

macro_rules! from_numbers {
    ($($number:ty => $variant:ident),+) => {
        $(impl From<Vec<$number>> for ArrayBuf {
            fn from(numbers: Vec<$number>) -> Self {
                let data: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                Self { element: ValueType::$variant, len: numbers.len() as u64, data: data.into() }
            }
        })+
    };
}

from_numbers!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32,
              u64 => U64, i64 => I64, f64 => F64);

impl From<Vec<bool>> for ArrayBuf {
    fn from(flags: Vec<bool>) -> Self {
        let data: Vec<u8> = flags.iter().map(|&flag| u8::from(flag)).collect();
        Self {
            element: ValueType::Bool,
            len: flags.len() as u64,
            data: data.into(),
        }
    }
}

impl From<Vec<String>> for ArrayBuf {
    fn from(strings: Vec<String>) -> Self {
        Self::strings(strings)
    }
}

impl From<Vec<&str>> for ArrayBuf {
    fn from(strings: Vec<&str>) -> Self {
        Self::strings(strings)
    }
}
