//! What can go wrong while a tokenizer is built. Using one cannot fail.

use super::Token;

/// Why a file's tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A metadata key is missing or has another type.
    #[error("the tokenizer's metadata cannot be read")]
    Metadata(#[from] ds4_gguf::Error),
    /// `tokenizer.ggml.model` is not byte-level BPE.
    #[error("`tokenizer.ggml.model` is `{found}`; only `gpt2` (byte-level BPE) is supported")]
    Model {
        /// The value found.
        found: String,
    },
    /// `tokenizer.ggml.pre` names a splitting rule that is not known here.
    #[error(
        "pre-tokenizer `{found}` is unknown; supported: {supported}; name one of them to override the file"
    )]
    UnknownPre {
        /// The name found.
        found: String,
        /// The names that are known, separated by commas.
        supported: String,
    },
    /// An array does not have one element a token.
    #[error("`{key}` has {got} elements, the vocabulary has {want}")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Elements found.
        got: usize,
        /// Tokens of the vocabulary.
        want: usize,
    },
    /// A special id points past the vocabulary.
    #[error("`{key}` is {id}, the vocabulary ends at {len}")]
    SpecialId {
        /// The metadata key.
        key: &'static str,
        /// The id found.
        id: u64,
        /// Tokens of the vocabulary.
        len: usize,
    },
    /// No token ends a turn.
    #[error(
        "no end-of-text token: `tokenizer.ggml.eos_token_id` is missing and none of {looked_for} is in the vocabulary"
    )]
    NoEos {
        /// The texts that were looked up.
        looked_for: &'static str,
    },
    /// Some bytes have no token, so that text could be lost.
    #[error("{missing} of the 256 single-byte tokens are missing, the first is byte 0x{first:02x}")]
    MissingBytes {
        /// How many are missing.
        missing: usize,
        /// The lowest of them.
        first: u8,
    },
    /// The vocabulary has more entries than token ids can name.
    #[error("the vocabulary has {len} entries, at most {max} are supported")]
    TooLarge {
        /// Entries found.
        len: usize,
        /// The largest supported count.
        max: usize,
    },
    /// The text is not a tokenizer definition.
    #[error("not a `tokenizer.json`")]
    Json(#[from] serde_json::Error),
    /// The definition uses something else than plain byte-level BPE.
    #[error("`{field}` of the tokenizer definition is {found}, expected {expected}")]
    Definition {
        /// The JSON field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it would have to hold.
        expected: &'static str,
    },
    /// Two entries of a definition claim the same id.
    #[error("token id {id} is used twice, by `{first}` and `{second}`")]
    DuplicateId {
        /// The id.
        id: Token,
        /// The entry that was there.
        first: String,
        /// The entry that came second.
        second: String,
    },
    /// The merge table was refused.
    #[error("the merge table was refused: {reason}")]
    Merges {
        /// What the byte-pair library says.
        reason: String,
    },
}
