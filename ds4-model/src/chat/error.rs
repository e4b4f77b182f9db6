//! What can be wrong with a conversation. All of it is the caller's input, to be answered, never a panic.

/// Why a conversation cannot be rendered, or a model has no chat format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text that should be JSON is not.
    #[error("{what} is not valid JSON")]
    Json {
        /// Whose text.
        what: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// JSON of another kind than an object.
    #[error("{what} must be a JSON object")]
    NotAnObject {
        /// Whose value.
        what: String,
    },
    /// JSON nested beyond reason.
    #[error("{what} is nested deeper than {max} levels")]
    TooDeep {
        /// Whose value.
        what: String,
        /// The limit.
        max: usize,
    },
    /// A tool without a name.
    #[error("a tool needs a `name`: {tool}")]
    ToolName {
        /// The definition, shortened.
        tool: String,
    },
    /// There is nothing to render.
    #[error("the conversation has no messages")]
    Empty,
    /// The vocabulary lacks markers that the format needs.
    #[error("the vocabulary lacks {}", markers.join(", "))]
    MissingMarkers {
        /// All missing markers.
        markers: Vec<String>,
    },
    /// The file names no format that is known, and has no template to fall back on.
    #[error(
        "no chat format: the architecture is `{architecture}` and the file has no `tokenizer.chat_template`"
    )]
    NoFormat {
        /// `general.architecture`.
        architecture: String,
    },
    /// A template cannot be evaluated in this build.
    #[error("the file's chat template needs the feature `jinja`, which this build lacks")]
    NoJinja,
    /// The file's template is wrong, or refused this conversation.
    #[error("the chat template failed: {reason}")]
    Template {
        /// The template engine's words.
        reason: String,
    },
}
