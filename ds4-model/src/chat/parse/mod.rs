//! The model's text → reasoning, content and calls, while it arrives.
//!
//! ```text
//! Reasoning ──</think>──▶ Content ──opener──▶ block (dsml.rs, glm.rs) ──closer──▶ After ──opener──▶ block …
//! ```
//! The streaming parser is the only one: [`ChatFormat::parse`](super::ChatFormat::parse) feeds it the whole text at
//! once, and no decision depends on how the text was cut. What a call says is JSON by construction, whatever the model
//! wrote: text that is no JSON becomes a string and is reported as a repair, and a block that cannot be understood makes
//! no call at all.

mod dsml;
mod glm;
mod input;
mod stream;
mod tag;

pub use stream::StreamParser;

use super::{ThinkMode, Tool, ToolCall};

/// Why the text ended, as its parser needs to know it; [`crate::Finish`] says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn.
    Stop,
    /// It was cut off.
    Length,
}

/// How to read a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Whether the prompt ended in `<think>`, so that the text begins with reasoning:
    /// [`RenderOptions::think`](crate::chat::RenderOptions::think) of the prompt. On by default; off for a prompt of
    /// [`Engine::render`](crate::Engine::render).
    pub think: ThinkMode,
    /// The declared tools. Markup that only resembles DSML counts when there are any.
    pub tools: Vec<Tool>,
    /// What to do with a call in reasoning that never ends.
    pub unclosed_think: UnclosedThink,
    /// Control tokens are pushed with [`StreamParser::push_marker`]: their text elsewhere is only text.
    pub evidence: bool,
}

/// What becomes of a complete block of calls when the turn ends without `</think>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnclosedThink {
    /// It stays reasoning.
    #[default]
    Reasoning,
    /// It is taken as calls, and reported as a repair.
    Execute,
}

/// A part of the answer, as soon as it is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More reasoning.
    Reasoning(String),
    /// More content.
    Content(String),
    /// A call begins.
    Call {
        /// Its number in the answer, from 0.
        index: usize,
        /// The function.
        name: String,
    },
    /// More of a call's arguments; joined they are a JSON object.
    Arguments {
        /// The call's number.
        index: usize,
        /// A piece of JSON text.
        json: String,
    },
}

/// Whether the calls can be trusted. Known at the end: a stream may have passed on the beginning of a call by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Yes.
    #[default]
    Complete,
    /// The text ended within a block. There are no calls.
    Incomplete {
        /// Where the block begins, in bytes of the text.
        offset: usize,
    },
    /// A block is not understood. There are no calls.
    Malformed {
        /// Where, in bytes of the text.
        offset: usize,
        /// What should have been there.
        expected: &'static str,
    },
}

/// Something that was wrong and could be put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The wrapper's closing tag was missing at the end of the turn.
    ClosedWrapper,
    /// Calls without a wrapper.
    MissingWrapper,
    /// An argument that should be JSON is not: its text became a string.
    InvalidJson {
        /// The call's number.
        index: usize,
        /// The argument.
        parameter: String,
    },
    /// Text after the calls was dropped.
    TextAfterCalls,
    /// Calls were found in reasoning that never ended, and taken.
    UnclosedThink,
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// What is said.
    pub content: String,
    /// What was thought; `None` when thinking was off.
    pub reasoning: Option<String>,
    /// The calls, without ids. Arguments are always a JSON object.
    pub calls: Vec<ToolCall>,
    /// Whether the calls can be trusted.
    pub outcome: Outcome,
    /// What was put right.
    pub repairs: Vec<Repair>,
}

/// Where results go.
#[derive(Clone, Debug, Default)]
struct Sink {
    deltas: Vec<Delta>,
    parsed: Parsed,
}

impl Sink {
    fn content(&mut self, text: String) {
        if !text.is_empty() {
            self.parsed.content.push_str(&text);
            self.deltas.push(Delta::Content(text));
        }
    }

    fn reasoning(&mut self, text: String) {
        if !text.is_empty() {
            self.parsed
                .reasoning
                .get_or_insert_default()
                .push_str(&text);
            self.deltas.push(Delta::Reasoning(text));
        }
    }

    fn call(&mut self, name: &str) {
        let index = self.parsed.calls.len();
        self.parsed.calls.push(ToolCall {
            id: None,
            name: name.to_owned(),
            arguments: String::new(),
        });
        self.deltas.push(Delta::Call {
            index,
            name: name.to_owned(),
        });
    }

    /// More of the last call's arguments.
    fn arguments(&mut self, json: &str) {
        let Some(call) = self.parsed.calls.last_mut().filter(|_| !json.is_empty()) else {
            return;
        };
        call.arguments.push_str(json);
        let index = self.parsed.calls.len() - 1;
        match self.deltas.last_mut() {
            Some(Delta::Arguments { json: last, .. }) => last.push_str(json),
            _ => self.deltas.push(Delta::Arguments {
                index,
                json: json.to_owned(),
            }),
        }
    }

    fn repair(&mut self, repair: Repair) {
        if !self.parsed.repairs.contains(&repair) {
            self.parsed.repairs.push(repair);
        }
    }

    fn fail(&mut self, outcome: Outcome) {
        self.parsed.calls.clear();
        self.parsed.outcome = outcome;
    }
}

/// In which markup a model writes its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    /// DeepSeek-V4's.
    Dsml,
    /// GLM's.
    Glm,
}

impl Markup {
    /// How a block that the model means begins.
    fn opening(self) -> &'static str {
        match self {
            Self::Dsml => dsml::OPENING,
            Self::Glm => glm::OPENING,
        }
    }
}

/// How a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With a tag of its own, to be taken.
    Wrapper,
    /// With the first call, although it should have a wrapper.
    Bare,
}

/// What a step within a block came to.
enum Step {
    /// Something was decided.
    Again,
    /// More text decides.
    More,
    /// The block is over.
    Done,
    /// The block cannot be understood, from byte `at` of the undecided text.
    Malformed { at: usize, expected: &'static str },
}
