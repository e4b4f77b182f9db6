//! Conversations → prompts, and the model's text → messages.
//!
//! ```
//! use ds4_model::chat::{ChatFormat, Conversation, Message, RenderOptions, ThinkMode};
//! let conversation = Conversation::from(vec![Message::system("Be brief."), Message::user("Hi")]);
//! let options = RenderOptions { think: ThinkMode::Off, ..RenderOptions::default() };
//! let prompt = ChatFormat::V4.render(&conversation, &options)?;
//! assert_eq!(prompt.as_str(), "<｜begin▁of▁sentence｜>Be brief.<｜User｜>Hi<｜Assistant｜></think>");
//! # Ok::<(), ds4_model::chat::Error>(())
//! ```
//! A prompt is [`Segments`]: what a message says stays text, even when it looks like a marker.

mod dialect;
mod dsml;
mod error;
mod glm;
#[cfg(feature = "jinja")]
mod jinja;
mod json;
mod marker;
mod message;
mod parse;
mod render;
mod think;
mod turns;

pub use dialect::Dialect;
pub use error::Error;
#[cfg(feature = "jinja")]
pub use jinja::Template;
pub use message::{Conversation, JsonText, Message, Replay, Role, Task, Tool, ToolCall};
pub use parse::{
    Delta, Finish, Outcome, ParseOptions, Parsed, Repair, StreamParser, UnclosedThink,
};
pub use think::{Effort, EffortTable, MAX_EFFORT_CONTEXT, ThinkMode};

use crate::tokenizer::{Segments, Tokenizer};
use ds4_gguf::Gguf;
use parse::Markup;

/// How a model wants its conversations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChatFormat {
    /// DeepSeek-V4.
    V4,
    /// DeepSeek-V4 from 31 July on: the same, with other texts for the reasoning effort.
    V4_0731,
    /// GLM-5.2.
    Glm52,
    /// Any other: the file's template. Calls in answers stay text, because nobody says how they are written.
    #[cfg(feature = "jinja")]
    Jinja(Template),
}

/// What to render, besides the conversation. By default: thinking on, no effort, [`Dialect::Standard`], earlier reasoning
/// left out, a generation prompt at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Thinking on or off.
    pub think: ThinkMode,
    /// How hard to think. [`Effort::None`] turns thinking off.
    pub effort: Option<Effort>,
    /// Whose layout.
    pub dialect: Dialect,
    /// Leave out the reasoning of earlier turns where the format does so.
    pub drop_thinking: bool,
    /// End with the markers after which the model answers, when it is its turn.
    pub generation_prompt: bool,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            think: ThinkMode::On,
            effort: None,
            dialect: Dialect::Standard,
            drop_thinking: true,
            generation_prompt: true,
        }
    }
}

impl RenderOptions {
    /// Thinking on or off, once the effort has been heard.
    #[must_use]
    pub fn think(&self) -> ThinkMode {
        if self.effort == Some(Effort::None) {
            ThinkMode::Off
        } else {
            self.think
        }
    }
}

/// What a file says about its chat format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    /// `general.architecture`.
    pub architecture: &'a str,
    /// `tokenizer.chat_template`.
    pub template: Option<&'a str>,
    /// Names of the model and of the one it was made from.
    pub names: Vec<&'a str>,
}

impl<'a> Facts<'a> {
    /// The facts of a file.
    #[must_use]
    pub fn from_gguf(gguf: &'a Gguf) -> Self {
        const NAMES: [&str; 5] = [
            "general.name",
            "general.basename",
            "general.version",
            "general.base_model.0.name",
            "general.base_model.0.version",
        ];
        let text = |key| gguf.metadata().find::<&str>(key);
        Self {
            architecture: text("general.architecture").unwrap_or_default(),
            template: text("tokenizer.chat_template"),
            names: NAMES.into_iter().filter_map(text).collect(),
        }
    }
}

impl ChatFormat {
    /// The format of a model: by its architecture (`deepseek4`, `glm-dsa`); else its template; else by its markers.
    ///
    /// # Errors
    /// [`Error::MissingMarkers`] when the architecture is known and the vocabulary cannot write its format; it lists all of
    /// them. [`Error::Template`] when the file's template is none, [`Error::NoJinja`] for a template without the feature
    /// `jinja`, [`Error::NoFormat`] when there is nothing to go by.
    pub fn for_model(facts: &Facts<'_>, tokenizer: &Tokenizer) -> Result<Self, Error> {
        let missing = |required: &[&str]| -> Vec<String> {
            required
                .iter()
                .filter(|m| !tokenizer.has_marker(m))
                .map(|&m| m.to_owned())
                .collect()
        };
        let checked = |format, required: &[&str]| match missing(required) {
            markers if markers.is_empty() => Ok(format),
            markers => Err(Error::MissingMarkers { markers }),
        };
        let v4 = match EffortTable::detect(facts.template, &facts.names) {
            EffortTable::V4 => Self::V4,
            EffortTable::V4_0731 => Self::V4_0731,
        };
        match (facts.architecture, facts.template) {
            ("deepseek4", _) => checked(v4, &marker::REQUIRED),
            ("glm-dsa", _) => checked(Self::Glm52, &glm::REQUIRED),
            #[cfg(feature = "jinja")]
            (_, Some(template)) => Ok(Self::Jinja(Template::new(template, tokenizer)?)),
            #[cfg(not(feature = "jinja"))]
            (_, Some(_)) => Err(Error::NoJinja),
            _ if missing(&marker::REQUIRED).is_empty() => Ok(v4),
            _ if missing(&glm::REQUIRED).is_empty() => Ok(Self::Glm52),
            (architecture, None) => Err(Error::NoFormat {
                architecture: architecture.to_owned(),
            }),
        }
    }

    /// A short name for people: `v4`, `v4-0731`, `glm-5.2` or `template`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V4_0731 => "v4-0731",
            Self::Glm52 => "glm-5.2",
            #[cfg(feature = "jinja")]
            Self::Jinja(_) => "template",
        }
    }

    /// The built-in format of that [`name`](Self::name).
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::V4, Self::V4_0731, Self::Glm52]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// The prompt for `conversation`.
    ///
    /// # Errors
    /// [`Error`]: an argument or schema is no JSON, or the conversation is empty.
    pub fn render(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
    ) -> Result<Segments, Error> {
        if conversation.messages.is_empty() {
            return Err(Error::Empty);
        }
        let options = RenderOptions {
            think: options.think(),
            ..options.clone()
        };
        match self {
            Self::V4 => render::render(conversation, &options, EffortTable::V4),
            Self::V4_0731 => render::render(conversation, &options, EffortTable::V4_0731),
            Self::Glm52 => glm::render(conversation, &options),
            #[cfg(feature = "jinja")]
            Self::Jinja(template) => template.render(conversation, &options),
        }
    }

    /// Read a whole answer.
    ///
    /// ```
    /// use ds4_model::chat::{ChatFormat, Finish, ParseOptions};
    /// let parsed = ChatFormat::V4.parse("2 + 2, easy</think>4", Finish::Stop, &ParseOptions::default());
    /// assert_eq!((parsed.reasoning.as_deref(), parsed.content.as_str()), (Some("2 + 2, easy"), "4"));
    /// ```
    #[must_use]
    pub fn parse(&self, text: &str, finish: Finish, options: &ParseOptions) -> Parsed {
        let mut parser = self.stream_parser(options);
        parser.push(text);
        parser.finish(finish).1
    }

    /// A parser for an answer that arrives in pieces.
    #[must_use]
    pub fn stream_parser(&self, options: &ParseOptions) -> StreamParser {
        let markup = match self {
            Self::V4 | Self::V4_0731 => Some(Markup::Dsml),
            Self::Glm52 => Some(Markup::Glm),
            #[cfg(feature = "jinja")]
            Self::Jinja(_) => None,
        };
        StreamParser::new(markup, options.clone())
    }
}
