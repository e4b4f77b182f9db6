//! What can go wrong while a file is quantized.

use std::path::PathBuf;

use ds4_gguf::TensorType;

use crate::ImatrixError;

/// Why a file could not be quantized. Nothing has appeared under the name of the result then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum QuantizeError {
    /// The source or the result.
    #[error(transparent)]
    Gguf(#[from] ds4_gguf::Error),

    /// The importance file does not fit the model.
    #[error("{file} does not fit tensor `{tensor}`")]
    Importance {
        file: Box<str>,
        tensor: Box<str>,
        source: ImatrixError,
    },

    /// A type that needs importance, and none is given.
    #[error(
        "tensor `{tensor}`: {ty} needs an importance matrix; make one with `ds4 imatrix` and pass it with --imatrix"
    )]
    NoImportance { tensor: Box<str>, ty: TensorType },

    /// A type that needs importance, and the file has none for this tensor.
    #[error(
        "tensor `{tensor}`: {ty} needs importance, and {file} has none for it; make one with `ds4 imatrix` on a text \
         that reaches it, or choose another type"
    )]
    ImportanceLacks {
        tensor: Box<str>,
        ty: TensorType,
        file: Box<str>,
    },

    /// A tensor whose type has no known layout.
    #[error("tensor `{tensor}`: type id {id} cannot be copied: {reason}")]
    Unsupported {
        tensor: Box<str>,
        id: u32,
        reason: Box<str>,
    },

    /// The source cannot give its rows.
    #[error("cannot read tensor `{tensor}`")]
    Source {
        tensor: Box<str>,
        source: super::SourceError,
    },

    /// A weight that is no number.
    #[error(
        "tensor `{tensor}`: weight {index} is {value}; --allow-nonfinite makes NaN 0 and clamps the rest to ±65504"
    )]
    NonFinite {
        tensor: Box<str>,
        index: usize,
        value: f32,
    },

    /// Weights that cannot be decoded or encoded.
    #[error("cannot quantize tensor `{tensor}`")]
    Codec {
        tensor: Box<str>,
        source: crate::Error,
    },

    /// The caller asked to stop.
    #[error("stopped")]
    Cancelled,

    /// The result could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl QuantizeError {
    /// With the name of the tensor.
    pub(crate) fn codec(tensor: &str, source: crate::Error) -> Self {
        match source {
            crate::Error::NonFinite {
                what: crate::encode::WEIGHT,
                index,
                value,
            } => Self::NonFinite {
                tensor: tensor.into(),
                index,
                value,
            },
            source => Self::Codec {
                tensor: tensor.into(),
                source,
            },
        }
    }
}
