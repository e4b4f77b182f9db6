//! What can go wrong between a file and an answer.

use crate::config::ConfigError;
use crate::exec::ExecError;
use crate::graph::GraphError;
use crate::snapshot::SnapshotError;
use crate::weights::WeightsError;

/// Any error of this crate's engine and sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read as GGUF.
    #[error(transparent)]
    Gguf(#[from] ds4_gguf::Error),
    /// The metadata describe a model this engine cannot run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Tensors are missing, misshapen or of an unsupported type.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The recorded graph breaks its own rules: a defect of this crate.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A step failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The file's tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::Error),
    /// A conversation cannot be rendered, or an answer not parsed.
    #[error(transparent)]
    Chat(#[from] crate::chat::Error),
    /// A snapshot cannot be written or restored.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A grammar cannot be used, or came to no allowed token.
    #[cfg(feature = "grammar")]
    #[error(transparent)]
    Grammar(#[from] crate::grammar::GrammarError),
    /// The timeline would outgrow the context.
    #[error(
        "{wanted} tokens do not fit the context of {limit}; raise the context or shorten the prompt"
    )]
    Context {
        /// Tokens the timeline would have.
        wanted: usize,
        /// Tokens it may have.
        limit: usize,
    },
    /// A rewind to a length the session never had.
    #[error("cannot rewind to {wanted} tokens, the session has {have}")]
    Rewind {
        /// Length asked for.
        wanted: usize,
        /// Length of the timeline.
        have: usize,
    },
    /// A generation was started on a session without logits.
    #[error("the session has no logits to draw from; give it a prompt with `sync` first")]
    NoLogits,
    /// An option has a value nothing can be done with.
    #[error("option `{option}` is {found}, expected {expected}")]
    Option {
        /// Name of the field of [`Options`](crate::Options).
        option: &'static str,
        /// Its value.
        found: usize,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A text that is too short to measure anything on.
    #[error("the text has {found} token{}, expected at least {expected}", if *found == 1 { "" } else { "s" })]
    Text {
        /// Its tokens.
        found: usize,
        /// The fewest that can be read.
        expected: usize,
    },
    /// A matrix read numbers that are not finite, or so large that their squares are not.
    #[error(
        "tensor `{tensor}`: the sum of squares of what column {column}{} read is {value} after {tokens} tokens; expected a \
         finite number", expert.map_or(String::new(), |expert| format!(" of expert {expert}"))
    )]
    Importance {
        /// The first tensor that reads them.
        tensor: Box<str>,
        /// The expert; `None` of a plain matrix.
        expert: Option<usize>,
        /// The column of the matrix.
        column: usize,
        /// The sum.
        value: f32,
        /// Tokens that were read.
        tokens: usize,
    },
    /// The caller stopped a prefill; the session holds what was computed so far.
    #[error("stopped after {done} of {total} tokens")]
    Stopped {
        /// Tokens computed in this call.
        done: usize,
        /// Tokens asked for.
        total: usize,
    },
}

/// An error with its causes, on one line: `what: why: why that`.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
