//! The model's text → reasoning, content and calls, while it arrives.
//!
//! ```text
//! Reasoning ──</think>──▶ Content ──opener──▶ block (block.rs) ──closer──▶ After ──opener──▶ block …
//! ```
//! The streaming parser is the only one: [`ChatFormat::parse`](super::ChatFormat::parse) feeds it the whole text at once, and no decision depends on
//! how the text was cut. What a call says is JSON by construction, whatever the model wrote: text that is no JSON becomes a
//! string and is reported as a repair, and a block that cannot be understood makes no call at all.

mod block;
mod input;
mod tag;

use super::{ThinkMode, Tool, ToolCall, marker};
use block::{Block, Step};
use input::{Input, before_beginning};
use tag::{Name, Scan};

/// Why the text ended.
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
    /// Whether the prompt ended in `<think>`, so that the text begins with reasoning.
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

/// Whether the calls can be trusted.
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

/// Reads an answer while it arrives.
#[derive(Clone, Debug)]
pub struct StreamParser {
    options: ParseOptions,
    input: Input,
    state: State,
    /// The last character of content that is out.
    last: Option<char>,
    sink: Sink,
}

#[derive(Clone, Debug)]
enum State {
    Reasoning,
    Content,
    Block(Box<Block>),
    /// After a block: nothing counts but another block.
    After,
    /// After an error: nothing counts.
    Broken,
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

/// How calls begin.
enum Opener {
    /// With a wrapper, to be taken.
    Wrapper,
    /// With the first call.
    Bare,
}

impl StreamParser {
    /// A parser for one answer.
    #[must_use]
    pub fn new(options: ParseOptions) -> Self {
        let thinking = options.think.is_on();
        let mut sink = Sink::default();
        sink.parsed.reasoning = thinking.then(String::new);
        Self {
            input: Input::new(options.evidence),
            state: if thinking {
                State::Reasoning
            } else {
                State::Content
            },
            last: None,
            sink,
            options,
        }
    }

    /// The next text, cut anywhere between characters.
    pub fn push(&mut self, text: &str) -> Vec<Delta> {
        self.feed(text, false)
    }

    /// The text of one control token.
    pub fn push_marker(&mut self, text: &str) -> Vec<Delta> {
        self.feed(text, true)
    }

    fn feed(&mut self, text: &str, is_marker: bool) -> Vec<Delta> {
        self.input.push(text, is_marker);
        while self.step() {}
        std::mem::take(&mut self.sink.deltas)
    }

    /// Whether the next token is markup or JSON rather than prose: it should be the likeliest one, whatever the
    /// temperature, because a tag has only one right spelling.
    #[must_use]
    pub fn in_structure(&self) -> bool {
        match &self.state {
            State::Block(block) => block.in_structure(&self.input),
            State::Content | State::After => self.input.text().trim_start().starts_with(OPENING),
            State::Reasoning | State::Broken => false,
        }
    }

    /// The end of the text.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> (Vec<Delta>, Parsed) {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Reasoning => {
                let rest = self.input.take(self.input.text().len());
                self.sink.reasoning(rest);
                if finish == Finish::Stop && self.options.unclosed_think == UnclosedThink::Execute {
                    self.execute_reasoning();
                }
            }
            State::Content => self.finish_content(finish),
            State::Block(block) => block.finish(&self.input, finish, &mut self.sink),
            State::After => {
                if !self.input.text().trim().is_empty() {
                    self.sink.repair(Repair::TextAfterCalls);
                }
            }
            State::Broken => {}
        }
        (self.sink.deltas, self.sink.parsed)
    }

    /// One decision; false when it needs more text.
    fn step(&mut self) -> bool {
        match &mut self.state {
            State::Reasoning => self.step_reasoning(),
            State::Content => self.step_content(false),
            State::After => self.step_content(true),
            State::Block(block) => {
                match block.step(&mut self.input, &self.options.tools, &mut self.sink) {
                    Step::Again => true,
                    Step::More => false,
                    Step::Done => {
                        self.state = State::After;
                        self.last = Some('\n');
                        true
                    }
                    Step::Malformed { at, expected } => {
                        self.sink.fail(Outcome::Malformed {
                            offset: self.input.offset() + at,
                            expected,
                        });
                        self.state = State::Broken;
                        true
                    }
                }
            }
            State::Broken => {
                self.input.take(self.input.text().len());
                false
            }
        }
    }

    fn step_reasoning(&mut self) -> bool {
        let text = self.input.text();
        let end = text
            .match_indices(marker::THINK_END)
            .map(|(at, _)| at)
            .find(|&at| self.input.is_real(at));
        match end {
            Some(at) => {
                let reasoning = self.input.take(at);
                self.sink.reasoning(reasoning);
                self.input.take(marker::THINK_END.len());
                self.state = State::Content;
                true
            }
            None => {
                let certain = before_beginning(text, &[marker::THINK_END]);
                let reasoning = self.input.take(certain);
                self.sink.reasoning(reasoning);
                false
            }
        }
    }

    /// Content up to the next opener. `drop`: it is text after the calls, which does not count.
    fn step_content(&mut self, drop: bool) -> bool {
        let text = self.input.text();
        let Some(at) = text.find('<') else {
            self.content(before_newlines(text), drop);
            return false;
        };
        let before = before_newlines(&text[..at]);
        let at_line_start = text[..at]
            .chars()
            .next_back()
            .or(self.last)
            .is_none_or(|c| c == '\n');
        match self.opener(at, at_line_start) {
            Scan::More => {
                self.content(before, drop);
                false
            }
            Scan::No => {
                self.content(at + 1, drop);
                true
            }
            Scan::Is(opener, len) => {
                self.content(before, drop);
                self.input.take(at - before);
                let begins = self.input.offset();
                let wrapped = matches!(opener, Opener::Wrapper);
                if wrapped {
                    self.input.take(len);
                } else {
                    self.sink.repair(Repair::MissingWrapper);
                }
                self.state = State::Block(Box::new(Block::new(begins, wrapped)));
                true
            }
        }
    }

    /// Whether calls begin at byte `at`: a wrapper with a call (or its own end) behind it, or a call without one.
    fn opener(&self, at: usize, at_line_start: bool) -> Scan<Opener> {
        let text = &self.input.text()[at..];
        let (tag, len) = match tag::scan(text) {
            Scan::Is(tag, len) => (tag, len),
            Scan::No => return Scan::No,
            Scan::More => return Scan::More,
        };
        let has_token = match tag.token_at() {
            Some(token) if self.input.is_real(at + token) => true,
            // The marker, but spelled out in ordinary tokens: somebody talks about it.
            Some(_) => return Scan::No,
            None => false,
        };
        let lookalike = !self.options.tools.is_empty() && at_line_start;
        match tag.name {
            Name::Block if !tag.closing && (has_token || lookalike) => {}
            Name::Invoke if !tag.closing && tag.attribute("name").is_some() => {
                let marked = has_token && !self.options.tools.is_empty();
                return if marked || (lookalike && !tag.mark.is_empty()) {
                    Scan::Is(Opener::Bare, 0)
                } else {
                    Scan::No
                };
            }
            _ => return Scan::No,
        }
        let rest = text[len..].trim_start();
        let blanks = text.len() - len - rest.len();
        match tag::scan(rest) {
            Scan::More if blanks <= MAX_BLANKS => Scan::More,
            Scan::Is(next, _)
                if next.closing == (next.name == Name::Block) && next.name != Name::Parameter =>
            {
                Scan::Is(Opener::Wrapper, len)
            }
            _ => Scan::No,
        }
    }

    fn content(&mut self, len: usize, drop: bool) {
        let text = self.input.take(len);
        self.last = text.chars().next_back().or(self.last);
        if !drop {
            self.sink.content(text);
        } else if !text.trim().is_empty() {
            self.sink.repair(Repair::TextAfterCalls);
        }
    }

    /// Held-back text is content, unless it is the torn beginning of a block.
    fn finish_content(&mut self, finish: Finish) {
        let text = self.input.text();
        let torn = text.find('<').filter(|&at| {
            let at_line_start = text[..at]
                .chars()
                .next_back()
                .or(self.last)
                .is_none_or(|c| c == '\n');
            text[at..].starts_with(OPENING)
                && self.input.is_real(at + 1)
                && (finish == Finish::Length || at_line_start)
        });
        match torn {
            Some(at) => {
                let offset = self.input.offset() + at;
                self.content(before_newlines(&text[..at]), false);
                self.sink.fail(Outcome::Incomplete { offset });
            }
            None => self.content(text.len(), false),
        }
    }

    /// Take calls out of reasoning that never ended, when there is a complete block of them.
    fn execute_reasoning(&mut self) {
        let reasoning = self.sink.parsed.reasoning.clone().unwrap_or_default();
        let options = ParseOptions {
            think: ThinkMode::Off,
            evidence: false,
            ..self.options.clone()
        };
        let mut parser = Self::new(options);
        let mut deltas = parser.push(&reasoning);
        let (last, parsed) = parser.finish(Finish::Stop);
        deltas.extend(last);
        if parsed.outcome == Outcome::Complete && !parsed.calls.is_empty() {
            self.sink.deltas.extend(
                deltas
                    .into_iter()
                    .filter(|d| !matches!(d, Delta::Content(_))),
            );
            self.sink.parsed.reasoning = Some(parsed.content);
            self.sink.parsed.calls = parsed.calls;
            self.sink.parsed.repairs = parsed.repairs;
            self.sink.repair(Repair::UnclosedThink);
        }
    }
}

/// How a block that the model means begins.
const OPENING: &str = "<｜DSML｜";

/// Blanks between a wrapper and its first call; more are no markup.
const MAX_BLANKS: usize = 256;

/// Bytes of `text` before its last line breaks, at most two: those belong to a block that may follow.
fn before_newlines(text: &str) -> usize {
    let one = text.strip_suffix('\n').unwrap_or(text);
    one.strip_suffix('\n').unwrap_or(one).len()
}
