//! Metadata of a model file as typed configuration.
//!
//! Every number that is a property of the file comes from the file; nothing here is a built-in table of known models.

mod deepseek4;

pub use deepseek4::{Config, Ratio, Rope, Yarn};

/// Something the metadata says that this engine cannot run. Every variant names the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `general.architecture` is another model family.
    #[error("`general.architecture` is `{found}`, expected `deepseek4`")]
    Architecture {
        /// The architecture string of the file.
        found: Box<str>,
    },
    /// A key is absent and no tensor shape says what its value would be.
    #[error("metadata key `{key}` is missing and cannot be derived from a tensor")]
    Missing {
        /// Full key.
        key: Box<str>,
    },
    /// A key holds a value outside what the model's maths allows.
    #[error("metadata key `{key}` is {found}, expected {expected}")]
    Value {
        /// Full key.
        key: Box<str>,
        /// The value in the file.
        found: Box<str>,
        /// What would be accepted.
        expected: Box<str>,
    },
    /// The key has another type than the schema gives it.
    #[error(transparent)]
    Gguf(#[from] ds4_gguf::Error),
}
