//! What can go wrong while a file is requantized in place.

use std::io;
use std::path::PathBuf;

use ds4_gguf::TensorType;

use crate::QuantizeError;

use super::Part;

/// Why a file could not be requantized in place, and in what state it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum RequantError {
    /// The model, its importance or its weights; it is as it was.
    #[error(transparent)]
    Quantize(#[from] QuantizeError),

    /// A file that cannot be opened for writing.
    #[error("cannot open {} for writing", path.display())]
    Open { path: PathBuf, source: io::Error },

    /// Two at once.
    #[error("another process is requantizing {}", path.display())]
    Busy { path: PathBuf },

    /// One of several files.
    #[error(
        "the model is split into {count} files; merge them with `ds4 merge` first, or write a new file without --in-place"
    )]
    Split { count: usize },

    /// A table that is not in the order of the data.
    #[error(
        "tensor `{tensor}` lies before tensor `{after}` in the file and after it in the table; write a new file \
         without --in-place"
    )]
    Order { tensor: Box<str>, after: Box<str> },

    /// A tensor that would not fit its old place.
    #[error(
        "tensor `{tensor}` grows from {before} bytes of {from} to {after} bytes of {to}; write a new file without --in-place"
    )]
    Grows {
        tensor: Box<str>,
        from: TensorType,
        to: TensorType,
        before: u64,
        after: u64,
    },

    /// A header that would not fit its old place.
    #[error(
        "the new header needs {need} bytes, the old one leaves {room}; write a new file without --in-place"
    )]
    HeaderRoom { need: u64, room: u64 },

    /// No tensor changes.
    #[error("the recipe changes no tensor of this file")]
    Nothing,

    /// The file is in the middle of a requantization.
    #[error("an earlier requantization is unfinished; finish it with `ds4 requant --resume`")]
    Unfinished,

    /// Another file than the one that was planned for.
    #[error("{what} is {found}, expected {expected}: the file has changed")]
    Changed {
        what: &'static str,
        expected: Box<str>,
        found: Box<str>,
    },

    /// Nothing to resume.
    #[error("nothing to resume: the file is a whole GGUF, and {journal}")]
    NotUnfinished { journal: &'static str },

    /// The journal is gone.
    #[error(
        "the file is half requantized and its journal (the same name and `.requant`) is missing or not whole: put it \
         back, or restore the model from elsewhere"
    )]
    NoJournal,

    /// The journal is damaged.
    #[error("the journal cannot be used: {what}")]
    Journal { what: Box<str> },

    /// Neither a model nor a half of one.
    #[error("the file starts with \"{}\", not with \"GGUF\" or \"GGRQ\"", found.escape_ascii())]
    Magic { found: [u8; 4] },

    /// The disk refused. What was reached is kept.
    #[error("cannot {doing} {}", match part { Part::Model => "the model", Part::Journal => "the journal" })]
    Disk {
        doing: &'static str,
        part: Part,
        source: io::Error,
    },

    /// The caller asked to stop.
    #[error("stopped; continue with `ds4 requant --resume`")]
    Cancelled,
}
