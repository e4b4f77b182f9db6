//! The metadata note: which kernels there are, and what they take.
//!
//! MessagePack, of which code objects use maps, arrays, strings, integers and booleans.
//! Source: LLVM, "User Guide for AMDGPU Backend", Code Object V5 Metadata.

use crate::Error;

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its place in the argument block, in bytes.
    pub offset: u32,
    /// Its length in bytes.
    pub bytes: u32,
    /// `by_value`, `global_buffer`, or a name that starts with `hidden_`: filled by the runtime.
    pub kind: String,
}

/// What the note says about one kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelNote {
    pub(crate) symbol: String,
    pub(crate) name: String,
    pub(crate) args: Vec<Argument>,
    pub(crate) kernarg_bytes: u32,
    pub(crate) scratch_bytes: u64,
    pub(crate) max_block: u32,
    pub(crate) wavefront: u64,
    pub(crate) vgprs: u32,
    pub(crate) sgprs: u32,
    pub(crate) dynamic_stack: bool,
}

/// A value of MessagePack.
#[derive(Debug)]
enum Value<'a> {
    Nothing,
    Bool(bool),
    Int(u64),
    Text(&'a str),
    List(Vec<Value<'a>>),
    Map(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    fn get(&self, key: &str) -> Option<&Value<'a>> {
        let Value::Map(pairs) = self else { return None };
        pairs
            .iter()
            .find(|(k, _)| matches!(k, Value::Text(t) if *t == key))
            .map(|(_, v)| v)
    }

    fn int(&self, key: &str) -> u64 {
        match self.get(key) {
            Some(Value::Int(n)) => *n,
            _ => 0,
        }
    }

    fn small(&self, key: &str) -> u32 {
        u32::try_from(self.int(key)).unwrap_or(u32::MAX)
    }

    fn text(&self, key: &str) -> String {
        match self.get(key) {
            Some(Value::Text(t)) => (*t).to_owned(),
            _ => String::new(),
        }
    }

    fn list(&self, key: &str) -> &[Value<'a>] {
        match self.get(key) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }
}

const TRUNCATED: Error = Error::Metadata {
    what: "it is truncated",
};

struct Parser<'a> {
    bytes: &'a [u8],
}

impl<'a> Parser<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (head, tail) = self.bytes.split_at_checked(count).ok_or(TRUNCATED)?;
        self.bytes = tail;
        Ok(head)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        Ok(self
            .take(bytes)?
            .iter()
            .fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn length(&mut self, bytes: usize) -> Result<usize, Error> {
        usize::try_from(self.number(bytes)?).map_err(|_| TRUNCATED)
    }

    fn text(&mut self, count: usize) -> Result<Value<'a>, Error> {
        std::str::from_utf8(self.take(count)?)
            .map(Value::Text)
            .map_err(|_| Error::Metadata {
                what: "a string is not UTF-8",
            })
    }

    fn list(&mut self, count: usize, depth: u32) -> Result<Value<'a>, Error> {
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(depth)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, count: usize, depth: u32) -> Result<Value<'a>, Error> {
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.value(depth)?, self.value(depth)?));
        }
        Ok(Value::Map(pairs))
    }

    /// `depth`: how many levels of nesting are still accepted.
    fn value(&mut self, depth: u32) -> Result<Value<'a>, Error> {
        let depth = depth.checked_sub(1).ok_or(Error::Metadata {
            what: "it is nested too deeply",
        })?;
        let tag = self.number(1)? as u8;
        Ok(match tag {
            0x00..=0x7f => Value::Int(tag.into()),
            0x80..=0x8f => self.map((tag & 15).into(), depth)?,
            0x90..=0x9f => self.list((tag & 15).into(), depth)?,
            0xa0..=0xbf => self.text((tag & 31).into())?,
            0xc2 | 0xc3 => Value::Bool(tag == 0xc3),
            0xcc | 0xd0 => Value::Int(self.number(1)?),
            0xcd | 0xd1 => Value::Int(self.number(2)?),
            0xce | 0xd2 => Value::Int(self.number(4)?),
            0xcf | 0xd3 => Value::Int(self.number(8)?),
            0xd9 => {
                let n = self.length(1)?;
                self.text(n)?
            }
            0xda => {
                let n = self.length(2)?;
                self.text(n)?
            }
            0xdb => {
                let n = self.length(4)?;
                self.text(n)?
            }
            0xdc => {
                let n = self.length(2)?;
                self.list(n, depth)?
            }
            0xdd => {
                let n = self.length(4)?;
                self.list(n, depth)?
            }
            0xde => {
                let n = self.length(2)?;
                self.map(n, depth)?
            }
            0xdf => {
                let n = self.length(4)?;
                self.map(n, depth)?
            }
            0xc0 | 0xe0..=0xff => Value::Nothing,
            _ => {
                return Err(Error::Metadata {
                    what: "it has a value of a kind that code objects do not use",
                });
            }
        })
    }
}

/// Read the note.
///
/// # Errors
/// [`Error::Metadata`].
pub(crate) fn read(note: &[u8]) -> Result<Vec<KernelNote>, Error> {
    const DEPTH: u32 = 16;
    let root = Parser { bytes: note }.value(DEPTH)?;
    if root.get("amdhsa.version").is_none() {
        return Err(Error::Metadata {
            what: "`amdhsa.version` is missing",
        });
    }
    root.list("amdhsa.kernels").iter().map(kernel).collect()
}

fn kernel(value: &Value<'_>) -> Result<KernelNote, Error> {
    let args = value.list(".args").iter().map(|a| Argument {
        offset: a.small(".offset"),
        bytes: a.small(".size"),
        kind: a.text(".value_kind"),
    });
    let note = KernelNote {
        symbol: value.text(".symbol"),
        name: value.text(".name"),
        args: args.collect(),
        kernarg_bytes: value.small(".kernarg_segment_size"),
        scratch_bytes: value.int(".private_segment_fixed_size"),
        max_block: value.small(".max_flat_workgroup_size"),
        wavefront: value.int(".wavefront_size"),
        vgprs: value.small(".vgpr_count"),
        sgprs: value.small(".sgpr_count"),
        dynamic_stack: matches!(value.get(".uses_dynamic_stack"), Some(Value::Bool(true))),
    };
    let end = |a: &Argument| u64::from(a.offset) + u64::from(a.bytes);
    if note.name.is_empty() || note.symbol.is_empty() {
        return Err(Error::Metadata {
            what: "a kernel has no name",
        });
    }
    if note
        .args
        .iter()
        .any(|a| end(a) > u64::from(note.kernarg_bytes))
        || note.kernarg_bytes > 1 << 16
    {
        return Err(Error::Metadata {
            what: "an argument lies outside the argument block",
        });
    }
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_notes_are_errors() {
        let cut = [0x81, 0xa3, b'a', b'b'];
        let deep = [0x91; 64];
        for bytes in [&cut[..], &deep[..], &[0xdf, 0xff, 0xff, 0xff, 0xff], &[]] {
            assert!(matches!(read(bytes), Err(Error::Metadata { .. })));
        }
    }
}
