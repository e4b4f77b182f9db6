//! What can go wrong, each in the file's own words: key, tensor, offset, expected and found.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::{RocmFp2Layout, TensorType};

/// Why a file could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Error {
    /// The operating system said no.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },

    /// The bytes are not a GGUF file this crate can trust.
    #[error("{file}: {fault}")]
    Malformed {
        file: FileName,
        fault: Box<Malformed>,
    },

    /// A key that was asked for.
    #[error("metadata has no key {}", quoted(key))]
    MissingKey { key: Box<str> },

    /// A key whose value is of another type or out of range.
    #[error(
        "metadata key {} should be {expected}, the file has {found}",
        quoted(key)
    )]
    KeyType {
        key: Box<str>,
        expected: Box<str>,
        found: Box<str>,
    },

    /// A tensor that was asked for.
    #[error("there is no tensor {}", quoted(name))]
    MissingTensor { name: Box<str> },

    /// A row that is not a whole number of blocks, or of a type whose blocks are unknown.
    #[error("a row of {cols} weights cannot be stored as {ty} ({} bytes for each {} weights)", ty.block_bytes(), ty.block_len())]
    Row { ty: TensorType, cols: u64 },

    /// A tensor read as numbers of another size than its type's, or at an address those numbers cannot have.
    #[error(
        "tensor {} of type {ty} cannot be viewed as {want}: {why}",
        quoted(name)
    )]
    View {
        name: Box<str>,
        ty: TensorType,
        want: &'static str,
        why: &'static str,
    },

    /// A type name that no type has.
    #[error("no tensor type is called {}", quoted(name))]
    TypeName { name: Box<str> },

    /// Files of a split model that are not there.
    #[error("a split model of {count} files lacks {}", list(missing))]
    MissingShards { count: u64, missing: Vec<PathBuf> },

    /// A file of a split model that does not fit the others.
    #[error("{file}: {key} should be {expected}, found {found}")]
    ShardMismatch {
        file: FileName,
        key: &'static str,
        expected: Box<str>,
        found: Box<str>,
    },

    /// Part of a split model whose file name does not say where the other parts are.
    #[error("{file}: part {} of {count}, but the name does not end in `-{:05}-of-{count:05}.gguf`, so the other parts cannot be found", index + 1, index + 1)]
    ShardName {
        file: FileName,
        index: u64,
        count: u64,
    },

    /// Tensors of type 107 that look like different layouts.
    #[error(
        "{file}: type id 107 reads as {pooled} over the whole file but tensor {} reads as {single}; \
         name the layout with OpenOptions::rocmfp2_layout or the key {}",
        quoted(tensor),
        RocmFp2Layout::KEY
    )]
    RocmFp2Disagree {
        file: FileName,
        tensor: Box<str>,
        single: RocmFp2Layout,
        pooled: RocmFp2Layout,
    },

    /// Something the writer was asked to write and cannot.
    #[error("cannot write {what}: {why}")]
    Unwritable { what: Box<str>, why: Box<str> },

    /// A limit that cuts a model into more files than can be numbered.
    #[error("a split model would have {found} files, 1 to {most} are possible")]
    Parts { found: u64, most: u64 },

    /// Data that is not what the plan said comes next.
    #[error("the plan has {expected} here, got {found}")]
    OffPlan { expected: Box<str>, found: Box<str> },

    /// A file that would be replaced.
    #[error("{} exists", path.display())]
    Exists { path: PathBuf },

    /// Something that no file may take the place of.
    #[error("{} is {found}; expected a file or a free name", path.display())]
    NotAFile { path: PathBuf, found: &'static str },

    /// A file that another process is writing.
    #[error("another process is writing {}", path.display())]
    Busy { path: PathBuf },

    /// The operating system refused to make a file.
    #[error("cannot {doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// A change of metadata that makes no sense.
    #[error("{}: {why}", quoted(text))]
    Edit { text: Box<str>, why: Box<str> },

    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,

    /// The sink of a writer failed.
    #[error("cannot write the GGUF file")]
    Write(#[source] io::Error),
}

impl Error {
    /// What is wrong with the file's bytes, when that is the matter.
    pub fn fault(&self) -> Option<&Malformed> {
        match self {
            Self::Malformed { fault, .. } => Some(fault),
            _ => None,
        }
    }
}

/// What is wrong with the bytes of a file. Offsets and lengths are bytes from the start of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Malformed {
    /// The first four bytes are something else.
    #[error("not a GGUF file: it starts with {}, not with \"GGUF\"", found.escape_ascii())]
    Magic { found: [u8; 4] },

    /// Overwritten in place by a requantization that was interrupted.
    #[error(
        "an unfinished requantization: the file is half old, half new; \
         finish it with `ds4 requant --resume` on it, which needs the journal (`.requant`) beside it"
    )]
    Unfinished,

    /// Written on or for a big-endian machine.
    #[error("a big-endian GGUF file; only little-endian files can be used")]
    BigEndian,

    /// A version other than 2 and 3.
    #[error("GGUF version {found}; versions 2 and 3 can be read")]
    Version { found: u32 },

    /// The file ends too early.
    #[error("{subject} needs {need} bytes at offset {offset}, the file ends at {len}")]
    Truncated {
        subject: Box<str>,
        offset: u64,
        need: u64,
        len: u64,
    },

    /// Metadata and tensor table are larger than the reader was told to accept.
    #[error(
        "{subject} lies beyond the first {limit} bytes; raise the limit with OpenOptions::limits.header_bytes"
    )]
    HeaderLimit { subject: Box<str>, limit: u64 },

    /// More tensors or keys than the reader was told to accept.
    #[error(
        "the header announces {found} {what}, at most {limit} are accepted; raise the limit with OpenOptions::limits.{what}"
    )]
    CountLimit {
        what: &'static str,
        found: u64,
        limit: u64,
    },

    /// A key or tensor name of no bytes, or of more than 65535.
    #[error("{subject} at offset {offset} is {len} bytes long, names have 1 to 65535")]
    NameLength {
        subject: Box<str>,
        len: u64,
        offset: u64,
    },

    /// A key or tensor name that is not text.
    #[error("{subject} at offset {offset} is not UTF-8 after {valid_up_to} bytes")]
    NotUtf8 {
        subject: Box<str>,
        offset: u64,
        valid_up_to: u64,
    },

    /// An unknown metadata type.
    #[error("{subject} has value type {id} at offset {offset}, types are 0 to 12")]
    ValueType {
        subject: Box<str>,
        id: u32,
        offset: u64,
    },

    /// A boolean other than 0 and 1.
    #[error("{subject} has a boolean of {found} at offset {offset}, booleans are 0 or 1")]
    Bool {
        subject: Box<str>,
        found: u8,
        offset: u64,
    },

    /// Arrays nested too deep.
    #[error("{subject} nests arrays deeper than {max} at offset {offset}")]
    Depth {
        subject: Box<str>,
        max: u32,
        offset: u64,
    },

    /// The same key twice.
    #[error("metadata key {} appears twice", quoted(key))]
    DuplicateKey { key: Box<str> },

    /// A key of the container itself with a value it cannot have.
    #[error("metadata key {} should be {expected}, found {found}", quoted(key))]
    Key {
        key: Box<str>,
        expected: Box<str>,
        found: Box<str>,
    },

    /// The same tensor twice.
    #[error("tensor {} appears twice", quoted(name))]
    DuplicateTensor { name: Box<str> },

    /// No dimension, or more than four.
    #[error("tensor {} has {found} dimensions, expected 1 to 4", quoted(name))]
    Rank { name: Box<str>, found: u32 },

    /// A dimension of zero, or more weights than 2⁶³ − 1.
    #[error(
        "tensor {} has dimensions {found:?}, each must be at least 1 and their product below 2^63",
        quoted(name)
    )]
    Dims { name: Box<str>, found: Vec<u64> },

    /// A row that is not a whole number of blocks.
    #[error("tensor {} has rows of {cols} weights, {ty} stores {} at a time", quoted(name), ty.block_len())]
    Row {
        name: Box<str>,
        ty: TensorType,
        cols: u64,
    },

    /// More bytes than 64 bits can count.
    #[error(
        "tensor {} of {elements} weights in {ty} takes more bytes than 64 bits can count",
        quoted(name)
    )]
    TooLarge {
        name: Box<str>,
        ty: TensorType,
        elements: u64,
    },

    /// An offset that is not a multiple of the alignment.
    #[error(
        "tensor {} is at data offset {offset}, not a multiple of the alignment {alignment}",
        quoted(name)
    )]
    Misaligned {
        name: Box<str>,
        offset: u64,
        alignment: u64,
    },

    /// Bytes outside of the file.
    #[error(
        "tensor {} needs {bytes} bytes at offset {start}, the file ends at {len}",
        quoted(name)
    )]
    OutOfFile {
        name: Box<str>,
        start: u64,
        bytes: u64,
        len: u64,
    },

    /// Two tensors that share bytes.
    #[error(
        "tensor {} starts at offset {start}, before tensor {} ends at {end}",
        quoted(name),
        quoted(other)
    )]
    Overlap {
        name: Box<str>,
        start: u64,
        other: Box<str>,
        end: u64,
    },
}

impl Malformed {
    /// With the name of the file it was found in.
    pub(crate) fn within(self, file: &FileName) -> Error {
        Error::Malformed {
            file: file.clone(),
            fault: Box::new(self),
        }
    }
}

/// The file an error is about: a path, or bytes in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileName {
    /// A file.
    Path(PathBuf),
    /// Bytes in memory; the number counts from 0 when there are several.
    Memory(usize),
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Memory(0) => f.write_str("GGUF in memory"),
            Self::Memory(index) => write!(f, "GGUF in memory (part {})", index + 1),
        }
    }
}

/// A name from a file as messages show it: in backquotes, control characters escaped, cut after 120 characters.
pub(crate) fn quoted(name: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = name
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The first eight paths, and how many more there are.
fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = paths
        .iter()
        .take(SHOWN)
        .map(|path| path.display().to_string())
        .collect();
    if paths.len() > SHOWN {
        shown.push(format!("{} more", paths.len() - SHOWN));
    }
    shown.join(", ")
}
