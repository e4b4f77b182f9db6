//! A block of DSML calls: where it begins, invokes, parameters, values.
//!
//! ```text
//! Calls ──invoke──▶ Arguments ──parameter──▶ value ──closer──▶ Arguments ──/invoke──▶ Calls ──/tool_calls──▶ done
//! ```
//! A value is a string, JSON, or (without a `string` attribute, when it begins with a parameter) an object of parameters.
//! A string ends at the closing tag with exactly the mark of its opening tag, so that any other tag in it is data.

use super::input::{Input, before_beginning};
use super::tag::{self, Name, Scan, Tag};
use super::{Finish, Outcome, Repair, Sink, Start, Step};
use crate::chat::json::quote;
use crate::chat::{Tool, marker};

/// Nested objects; deeper ones are not meant.
const MAX_DEPTH: usize = 16;
/// Blanks after which a call may yet follow a wrapper, or a parameter make an object of a value.
const MAX_BLANKS: usize = 256;

/// How a block that the model means begins.
pub(super) const OPENING: &str = "<｜DSML｜";

/// Whether a block begins at byte `at`: a wrapper with a call (or its own end) behind it, or a call without one.
/// Tags without the real mark count when `lookalikes` do, and only at the start of a line.
pub(super) fn opener(
    input: &Input,
    at: usize,
    lookalikes: bool,
    at_line_start: bool,
) -> Scan<Start> {
    let text = &input.text()[at..];
    let (tag, len) = match tag::scan(text) {
        Scan::Is(tag, len) => (tag, len),
        Scan::No => return Scan::No,
        Scan::More => return Scan::More,
    };
    let has_token = match tag.token_at() {
        Some(token) if input.is_real(at + token) => true,
        // The mark, but spelled out in ordinary tokens: somebody talks about it.
        Some(_) => return Scan::No,
        None => false,
    };
    let counts = has_token || (lookalikes && at_line_start);
    match tag.name {
        Name::Block if !tag.closing && counts => {}
        Name::Invoke if !tag.closing && counts && lookalikes && !tag.mark.is_empty() => {
            return if tag.attribute("name").is_some() {
                Scan::Is(Start::Bare, 0)
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
        Scan::Is(next, _) if next.name == Name::Invoke && !next.closing => {
            Scan::Is(Start::Wrapper, len)
        }
        Scan::Is(next, _) if next.name == Name::Block && next.closing => {
            Scan::Is(Start::Wrapper, len)
        }
        _ => Scan::No,
    }
}

/// A block of calls.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Where it begins, in bytes of the whole text.
    begins: usize,
    /// Whether it has a wrapper that must be closed.
    wrapped: bool,
    state: State,
    /// The call in progress.
    name: String,
    /// The objects in progress: the call's arguments, then nested ones.
    objects: Vec<Object>,
}

#[derive(Clone, Debug)]
enum State {
    Calls,
    Arguments,
    /// Blanks at the start of a value without a `string` attribute.
    Undecided(Value),
    Text(Value),
    /// JSON, and how much of it holds no closing tag.
    Json(Value, usize),
}

/// The value in progress.
#[derive(Clone, Debug)]
struct Value {
    key: String,
    /// The mark of its opening tag.
    mark: String,
}

impl Value {
    fn closer(&self) -> String {
        format!("</{}parameter>", self.mark)
    }

    fn escaped_closer(&self) -> String {
        format!("&lt;/{}parameter>", self.mark)
    }

    /// Where `closer` begins in the undecided text, from byte `from`; its mark must be real when it has the token.
    fn find(&self, input: &Input, closer: &str, from: usize) -> Option<usize> {
        let token = closer.find(marker::DSML);
        input.text()[from..]
            .match_indices(closer)
            .map(|(at, _)| from + at)
            .find(|&at| token.is_none_or(|token| input.is_real(at + token)))
    }
}

/// An object in progress.
#[derive(Clone, Debug, Default)]
struct Object {
    keys: Vec<String>,
}

impl Block {
    pub(super) fn new(begins: usize, start: Start) -> Self {
        Self {
            begins,
            wrapped: start == Start::Wrapper,
            state: State::Calls,
            name: String::new(),
            objects: Vec::new(),
        }
    }

    pub(super) fn step(&mut self, input: &mut Input, tools: &[Tool], sink: &mut Sink) -> Step {
        match std::mem::replace(&mut self.state, State::Calls) {
            State::Calls => self.step_calls(input, sink),
            State::Arguments => {
                self.state = State::Arguments;
                self.step_arguments(input, sink)
            }
            State::Undecided(value) => self.step_undecided(value, input, sink),
            State::Text(value) => self.step_text(value, input, sink),
            State::Json(value, from) => self.step_json(value, from, input, tools, sink),
        }
    }

    /// The end of the text within the block.
    pub(super) fn finish(&self, input: &Input, finish: Finish, sink: &mut Sink) {
        let between = matches!(self.state, State::Calls) && input.text().trim().is_empty();
        if between && finish == Finish::Stop && !sink.parsed.calls.is_empty() {
            if self.wrapped {
                sink.repair(Repair::ClosedWrapper);
            }
        } else {
            sink.fail(Outcome::Incomplete {
                offset: self.begins,
            });
        }
    }

    pub(super) fn in_structure(&self, input: &Input) -> bool {
        match &self.state {
            State::Calls | State::Arguments | State::Undecided(_) => true,
            State::Text(_) => false,
            State::Json(..) => !in_json_string(input.text()),
        }
    }

    fn step_calls(&mut self, input: &mut Input, sink: &mut Sink) -> Step {
        input.skip_blanks();
        match tag::scan(input.text()) {
            Scan::More => Step::More,
            Scan::Is(tag, len) if tag.name == Name::Block && tag.closing => {
                input.take(len);
                Step::Done
            }
            Scan::Is(tag, len) if tag.name == Name::Invoke && !tag.closing => {
                let Some(name) = tag.attribute("name") else {
                    return Step::Malformed {
                        at: 0,
                        expected: "a `name` attribute",
                    };
                };
                self.name = name.to_owned();
                self.objects = vec![Object::default()];
                self.state = State::Arguments;
                sink.call(name);
                sink.arguments("{");
                input.take(len);
                Step::Again
            }
            // Without a wrapper the block ends where no further call begins.
            _ if !self.wrapped => Step::Done,
            _ => Step::Malformed {
                at: 0,
                expected: "an `invoke` tag or the end of `tool_calls`",
            },
        }
    }

    fn step_arguments(&mut self, input: &mut Input, sink: &mut Sink) -> Step {
        input.skip_blanks();
        let nested = self.objects.len() > 1;
        match tag::scan(input.text()) {
            Scan::More => Step::More,
            Scan::Is(tag, len) if tag.name == Name::Parameter && !tag.closing => {
                self.open(&tag, len, input, sink)
            }
            Scan::Is(tag, len)
                if tag.closing
                    && tag.name
                        == (if nested {
                            Name::Parameter
                        } else {
                            Name::Invoke
                        }) =>
            {
                input.take(len);
                sink.arguments("}");
                self.objects.pop();
                if !nested {
                    self.state = State::Calls;
                }
                Step::Again
            }
            _ if nested => Step::Malformed {
                at: 0,
                expected: "a `parameter` tag or the end of the outer `parameter`",
            },
            _ => Step::Malformed {
                at: 0,
                expected: "a `parameter` tag or the end of `invoke`",
            },
        }
    }

    fn open(&mut self, tag: &Tag, len: usize, input: &mut Input, sink: &mut Sink) -> Step {
        let Some(key) = tag.attribute("name") else {
            return Step::Malformed {
                at: 0,
                expected: "a `name` attribute",
            };
        };
        let object = self
            .objects
            .last_mut()
            .expect("arguments are an object until their closing tag");
        if object.keys.iter().any(|known| known == key) {
            return Step::Malformed {
                at: 0,
                expected: "a parameter that was not given before",
            };
        }
        sink.arguments(if object.keys.is_empty() { "" } else { ", " });
        sink.arguments(&format!("{}: ", quote(key)));
        object.keys.push(key.to_owned());
        input.take(len);
        let value = Value {
            key: key.to_owned(),
            mark: tag.mark.clone(),
        };
        self.state = match tag.attribute("string") {
            None => State::Undecided(value),
            Some("false") => State::Json(value, 0),
            Some(_) => {
                sink.arguments("\"");
                State::Text(value)
            }
        };
        Step::Again
    }

    fn step_undecided(&mut self, value: Value, input: &mut Input, sink: &mut Sink) -> Step {
        let text = input.text();
        let rest = text.trim_start();
        let blanks = text.len() - rest.len();
        match tag::scan(rest) {
            Scan::More if blanks <= MAX_BLANKS => {
                self.state = State::Undecided(value);
                Step::More
            }
            Scan::Is(tag, _) if tag.name == Name::Parameter && !tag.closing => {
                if self.objects.len() == MAX_DEPTH {
                    return Step::Malformed {
                        at: blanks,
                        expected: "no deeper parameters",
                    };
                }
                sink.arguments("{");
                self.objects.push(Object::default());
                self.state = State::Arguments;
                Step::Again
            }
            _ => {
                sink.arguments("\"");
                self.state = State::Text(value);
                Step::Again
            }
        }
    }

    fn step_text(&mut self, value: Value, input: &mut Input, sink: &mut Sink) -> Step {
        let (closer, escaped) = (value.closer(), value.escaped_closer());
        let end = value.find(input, &closer, 0);
        let escape = input.text().find(&escaped);
        let fragment = |text: &str| {
            let quoted = quote(text);
            quoted[1..quoted.len() - 1].to_owned()
        };
        match (end, escape) {
            (end, Some(at)) if end.is_none_or(|end| at < end) => {
                let text = input.take(at);
                input.take(escaped.len());
                sink.arguments(&fragment(&(text + &closer)));
                self.state = State::Text(value);
                Step::Again
            }
            (Some(end), _) => {
                let text = input.take(end);
                input.take(closer.len());
                sink.arguments(&fragment(&text));
                sink.arguments("\"");
                self.state = State::Arguments;
                Step::Again
            }
            (None, _) => {
                let text = input.take(before_beginning(input.text(), &[&closer, &escaped]));
                sink.arguments(&fragment(&text));
                self.state = State::Text(value);
                Step::More
            }
        }
    }

    fn step_json(
        &mut self,
        value: Value,
        from: usize,
        input: &mut Input,
        tools: &[Tool],
        sink: &mut Sink,
    ) -> Step {
        let closer = value.closer();
        let Some(end) = value.find(input, &closer, from) else {
            let seen = before_beginning(input.text(), &[&closer]);
            self.state = State::Json(value, seen);
            return Step::More;
        };
        let text = input.take(end);
        input.take(closer.len());
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => sink.arguments(text.trim()),
            Err(_) => {
                sink.arguments(&quote(&text));
                let tool = tools.iter().find(|tool| tool.name() == self.name);
                let is_string = tool.is_some_and(|t| {
                    t.parameter_types(&value.key)
                        .iter()
                        .any(|ty| ty == "string")
                });
                if !(is_string && self.objects.len() == 1) {
                    let index = sink.parsed.calls.len() - 1;
                    sink.repair(Repair::InvalidJson {
                        index,
                        parameter: value.key,
                    });
                }
            }
        }
        self.state = State::Arguments;
        Step::Again
    }
}

/// Whether JSON that has arrived so far ends within a string.
fn in_json_string(text: &str) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}
