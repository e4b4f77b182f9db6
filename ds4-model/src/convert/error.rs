//! What can be wrong with a checkpoint.

use std::fmt;
use std::path::PathBuf;

use super::safetensors::Dtype;
use crate::config::ConfigError;

/// Why a checkpoint cannot be converted. Every variant names the file, and the tensor or field in it. A message does not
/// repeat that of its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum ConvertError {
    /// A file of the checkpoint cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },

    /// A folder, a pipe or a device where a file should be.
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },

    /// A file that is larger than files of its kind can be.
    #[error("{} has {found} bytes; expected at most {most}", path.display())]
    Large {
        path: PathBuf,
        found: u64,
        most: u64,
    },

    /// A file that is not the JSON it should be.
    #[error("{} is not the JSON that it should be", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },

    /// No weights.
    #[error("{} has neither model.safetensors.index.json nor model.safetensors", folder.display())]
    NoWeights { folder: PathBuf },

    /// The index names a file by a path that leaves the folder.
    #[error("{} names the shard {shard:?}; expected the name of a file beside it", path.display())]
    ShardName { path: PathBuf, shard: Box<str> },

    /// Shards that are not there, all of them.
    #[error("{} names shards that are not there: {}", path.display(), shards.join(", "))]
    MissingShards { path: PathBuf, shards: Vec<String> },

    /// A header that does not fit its file.
    #[error("{}: the header has {found} bytes, the file {len} and the format at most {most}", path.display())]
    HeaderSize {
        path: PathBuf,
        found: u64,
        len: u64,
        most: u64,
    },

    /// A tensor whose bytes are not in the file: a shard that was cut short, or a wrong header.
    #[error("{}: tensor `{tensor}` needs bytes {start}..{end}, the file ends at {len}", path.display())]
    OutOfFile {
        path: PathBuf,
        tensor: Box<str>,
        start: u64,
        end: u64,
        len: u64,
    },

    /// A tensor whose bytes are not what its shape needs.
    #[error("{}: tensor `{tensor}` is {dtype} {shape} and has {found} bytes", path.display())]
    Bytes {
        path: PathBuf,
        tensor: Box<str>,
        dtype: Box<str>,
        shape: Shape,
        found: u64,
    },

    /// Two tensors that share bytes.
    #[error("{}: tensors `{first}` and `{second}` share bytes", path.display())]
    Overlap {
        path: PathBuf,
        first: Box<str>,
        second: Box<str>,
    },

    /// One name in two places.
    #[error("tensor `{tensor}` is in {} twice", path.display())]
    Twice { path: PathBuf, tensor: Box<str> },

    /// `config.json` has another architecture, or values that no model can have. All problems at once.
    #[error("{}: {}", path.display(), fields.join("; "))]
    Settings { path: PathBuf, fields: Vec<String> },

    /// The numbers of `config.json` contradict each other; the key is the one that the result would have.
    #[error("{} is of a model that cannot be", path.display())]
    Config { path: PathBuf, source: ConfigError },

    /// The tokenizer cannot be used.
    #[error("{} is of a tokenizer that cannot be used", path.display())]
    Tokenizer {
        path: PathBuf,
        source: crate::tokenizer::Error,
    },

    /// The tokenizer has more entries than the embedding has rows.
    #[error("{} has {found} entries; config.json has vocab_size {most}", path.display())]
    Vocabulary {
        path: PathBuf,
        found: usize,
        most: usize,
    },

    /// The id of a token that is none.
    #[error("{}: {field} has {found}; expected ids from 0 to below {rows}, the rows of the embedding", path.display())]
    TokenId {
        path: PathBuf,
        field: &'static str,
        found: Box<str>,
        rows: usize,
    },

    /// More ids than there are keys for.
    #[error("{}: {field} has {found} ids; a GGUF has room for {most}", path.display())]
    TokenIds {
        path: PathBuf,
        field: &'static str,
        found: usize,
        most: usize,
    },

    /// Tensors that are missing, misshapen or of a type that cannot be used: all of them.
    #[error("{} cannot be converted:{}", folder.display(), list(problems))]
    Tensors {
        folder: PathBuf,
        problems: Vec<Problem>,
    },

    /// A value that its place in the result cannot hold.
    #[error("{}: value {index} of tensor `{tensor}` is {found}; expected {expected}", path.display())]
    Value {
        path: PathBuf,
        tensor: Box<str>,
        index: u64,
        found: Box<str>,
        expected: &'static str,
    },

    /// A table that sends a token to an expert that is none.
    #[error("{}: value {index} of tensor `{tensor}` is {found}; expected an expert from 0 to below {experts}", path.display())]
    Expert {
        path: PathBuf,
        tensor: Box<str>,
        index: u64,
        found: i64,
        experts: usize,
    },

    /// The result cannot be a GGUF.
    #[error(transparent)]
    Gguf(#[from] ds4_gguf::Error),
}

/// What is wrong with one tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum Problem {
    /// Under none of its names.
    #[error("`{name}` is missing; looked for {}", tried.join(", "))]
    Missing { name: Box<str>, tried: Vec<String> },

    /// Another shape than `config.json` says.
    #[error("`{tensor}` has shape {found}; expected {expected}")]
    Shape {
        tensor: Box<str>,
        found: Shape,
        expected: Shape,
    },

    /// A type that has no place here.
    #[error("`{tensor}` is {found}; expected {expected}")]
    Dtype {
        tensor: Box<str>,
        found: Box<str>,
        expected: &'static str,
    },

    /// Packed weights without their scales.
    #[error("`{tensor}` is {dtype} and has no scales; looked for {}", tried.join(", "))]
    NoScales {
        tensor: Box<str>,
        dtype: Dtype,
        tried: Vec<String>,
    },

    /// Experts of one layer in different types.
    #[error("`{tensor}` is {found}, other experts of its layer are {expected}")]
    Mixed {
        tensor: Box<str>,
        found: ds4_gguf::TensorType,
        expected: ds4_gguf::TensorType,
    },
}

/// The extents of a tensor, slowest first, as checkpoints have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Problems listed one by one; the rest of a long list as a number.
fn list(problems: &[Problem]) -> String {
    const MOST: usize = 40;
    let mut text: String = problems
        .iter()
        .take(MOST)
        .map(|problem| format!("\n  {problem}"))
        .collect();
    if problems.len() > MOST {
        text += &format!("\n  and {} more", problems.len() - MOST);
    }
    text
}
