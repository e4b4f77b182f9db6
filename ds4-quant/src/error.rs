//! What can go wrong between packed bytes and numbers.

use ds4_gguf::TensorType;

/// Why weights could not be decoded, encoded or multiplied. Every variant says what was expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice of another length than the shape demands.
    #[error("{what}: expected a length of {want}, got {got}")]
    #[expect(missing_docs, reason = "said by the message")]
    Length {
        what: &'static str,
        got: usize,
        want: usize,
    },

    /// A row that is not a whole number of blocks.
    #[error("a row of {cols} weights is not a whole number of {ty} blocks of {block}")]
    #[expect(missing_docs, reason = "said by the message")]
    Cols {
        ty: TensorType,
        cols: usize,
        block: usize,
    },

    /// Weights and activations whose inner dimensions differ.
    #[error("the matrix has {weights} columns, the activations have {activations}")]
    #[expect(missing_docs, reason = "said by the message")]
    Inner { weights: usize, activations: usize },

    /// A shape whose size passes the address space.
    #[error("{what} of {rows} × {cols} does not fit the address space")]
    #[expect(missing_docs, reason = "said by the message")]
    TooLarge {
        what: &'static str,
        rows: usize,
        cols: usize,
    },

    /// A row index beyond the end.
    #[error("activation row {row} of {rows}")]
    #[expect(missing_docs, reason = "said by the message")]
    Row { row: usize, rows: usize },

    /// A tensor type whose blocks this crate does not know.
    #[error("no codec for tensor type {ty}")]
    #[expect(missing_docs, reason = "said by the message")]
    NoCodec { ty: TensorType },

    /// A tensor type that can be read but not written.
    #[error("{ty} can be decoded but not encoded")]
    #[expect(missing_docs, reason = "said by the message")]
    DecodeOnly { ty: TensorType },

    /// A scale byte outside the format's range.
    #[error("block {block}: {ty} scale byte {byte:#04x} is above 0x7e")]
    #[expect(missing_docs, reason = "said by the message")]
    InvalidScale {
        ty: TensorType,
        block: usize,
        byte: u8,
    },

    /// A number that cannot be encoded.
    #[error("{what} {index} is {value}; only finite numbers can be encoded")]
    #[expect(missing_docs, reason = "said by the message")]
    NonFinite {
        what: &'static str,
        index: usize,
        value: f32,
    },

    /// A type that cannot be encoded well without knowing which columns matter.
    #[error(
        "{ty} needs an importance vector for its columns; make one with an importance-matrix run, or pass all ones"
    )]
    #[expect(missing_docs, reason = "said by the message")]
    MissingImportance { ty: TensorType },

    /// An importance below zero.
    #[error("importance of column {column} is {value}; it must not be negative")]
    #[expect(missing_docs, reason = "said by the message")]
    NegativeImportance { column: usize, value: f32 },

    /// Weights so large that no scale of the type reaches them.
    #[error("block {block}: the weights are too large for {ty}")]
    #[expect(missing_docs, reason = "said by the message")]
    OutOfRange { ty: TensorType, block: usize },

    /// The worker threads could not be started.
    #[error("cannot start {threads} worker threads: {reason}")]
    #[expect(missing_docs, reason = "said by the message")]
    Threads { threads: usize, reason: Box<str> },
}
