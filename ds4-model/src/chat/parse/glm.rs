//! A GLM call.
//!
//! ```text
//! <tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value>…</tool_call>
//! ```
//! The markup does not say what type a value has. The declared schema does; without one, what reads as JSON of another
//! type than string is that, and everything else is a string.

use super::input::Input;
use super::tag::Scan;
use super::{Outcome, Repair, Sink, Start, Step};
use crate::chat::Tool;
use crate::chat::json::quote;
use serde_json::Value;

pub(super) const OPENING: &str = "<tool_call>";
const CLOSING: &str = "</tool_call>";
const KEY: &str = "<arg_key>";
const KEY_END: &str = "</arg_key>";
const VALUE: &str = "<arg_value>";
const VALUE_END: &str = "</arg_value>";

/// What may follow a name; the closing tags of arguments have been seen glued to it.
const AFTER_NAME: [&str; 4] = [KEY, CLOSING, VALUE_END, KEY_END];
/// Longer names are prose.
const MAX_NAME: usize = 128;

/// One call in progress.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Where it begins, in bytes of the whole text.
    begins: usize,
    name: String,
    keys: Vec<String>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Name,
    Arguments,
    Key,
    BeforeValue,
    /// And how much of it holds no closing tag.
    Value(usize),
}

/// Whether a call begins at byte `at`: the tag, a name, and a tag that may follow one.
pub(super) fn opener(input: &Input, at: usize) -> Scan<Start> {
    let text = &input.text()[at..];
    if !text.starts_with(OPENING) {
        return if OPENING.starts_with(text) {
            Scan::More
        } else {
            Scan::No
        };
    }
    if !input.is_real(at) {
        return Scan::No;
    }
    let rest = text[OPENING.len()..].trim_start();
    let name = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b))
        .count();
    let after = rest[name..].trim_start();
    let held = text.len() - OPENING.len();
    match starts_with_any(after, &AFTER_NAME) {
        Scan::Is(..) if name > 0 && name <= MAX_NAME => Scan::Is(Start::Wrapper, OPENING.len()),
        Scan::More if held <= 4 * MAX_NAME && (name > 0 || after.is_empty()) => Scan::More,
        _ => Scan::No,
    }
}

/// Which of `needles` the text starts with.
fn starts_with_any(text: &str, needles: &[&'static str]) -> Scan<&'static str> {
    match needles.iter().find(|n| text.starts_with(**n)) {
        Some(needle) => Scan::Is(*needle, needle.len()),
        None if needles.iter().any(|n| n.starts_with(text)) => Scan::More,
        None => Scan::No,
    }
}

impl Call {
    pub(super) fn new(begins: usize) -> Self {
        Self {
            begins,
            name: String::new(),
            keys: Vec::new(),
            state: State::Name,
        }
    }

    /// The text ends within the call.
    pub(super) fn finish(&self, sink: &mut Sink) {
        sink.fail(Outcome::Incomplete {
            offset: self.begins,
        });
    }

    pub(super) fn in_structure(&self) -> bool {
        !matches!(self.state, State::Value(_))
    }

    pub(super) fn step(&mut self, input: &mut Input, tools: &[Tool], sink: &mut Sink) -> Step {
        match self.state {
            State::Name => {
                let end = input
                    .text()
                    .find('<')
                    .expect("a call begins only where a tag follows its name");
                self.name = input.take(end).trim().to_owned();
                sink.call(&self.name);
                sink.arguments("{");
                self.state = State::Arguments;
                Step::Again
            }
            State::Arguments => {
                input.skip_blanks();
                match starts_with_any(input.text(), &AFTER_NAME) {
                    Scan::More => Step::More,
                    Scan::No => Step::Malformed {
                        at: 0,
                        expected: "`<arg_key>` or `</tool_call>`",
                    },
                    Scan::Is(tag, len) => {
                        input.take(len);
                        match tag {
                            KEY => self.state = State::Key,
                            CLOSING => {
                                sink.arguments("}");
                                return Step::Done;
                            }
                            _ => {}
                        }
                        Step::Again
                    }
                }
            }
            State::Key => {
                let Some(end) = find(input, KEY_END, 0) else {
                    return Step::More;
                };
                let key = input.text()[..end].trim().to_owned();
                if self.keys.contains(&key) {
                    return Step::Malformed {
                        at: 0,
                        expected: "an argument that was not given before",
                    };
                }
                input.take(end + KEY_END.len());
                sink.arguments(if self.keys.is_empty() { "" } else { ", " });
                sink.arguments(&format!("{}: ", quote(&key)));
                self.keys.push(key);
                self.state = State::BeforeValue;
                Step::Again
            }
            State::BeforeValue => {
                input.skip_blanks();
                match starts_with_any(input.text(), &[VALUE]) {
                    Scan::More => Step::More,
                    Scan::No => Step::Malformed {
                        at: 0,
                        expected: "`<arg_value>`",
                    },
                    Scan::Is(_, len) => {
                        input.take(len);
                        self.state = State::Value(0);
                        Step::Again
                    }
                }
            }
            State::Value(from) => {
                let Some(end) = find(input, VALUE_END, from) else {
                    let seen = super::input::before_beginning(input.text(), &[VALUE_END]);
                    self.state = State::Value(seen);
                    return Step::More;
                };
                let text = input.take(end);
                input.take(VALUE_END.len());
                self.value(&text, tools, sink);
                self.state = State::Arguments;
                Step::Again
            }
        }
    }

    fn value(&self, text: &str, tools: &[Tool], sink: &mut Sink) {
        let key = self.keys.last().map_or("", String::as_str);
        let tool = tools.iter().find(|tool| tool.name() == self.name);
        let types = tool
            .map(|tool| tool.parameter_types(key))
            .unwrap_or_default();
        let json: Option<Value> = serde_json::from_str(text).ok();
        let fits = json.as_ref().is_some_and(|json| is_of(json, &types));
        if fits {
            sink.arguments(text.trim());
        } else {
            sink.arguments(&quote(text));
            if !types.is_empty() && !types.iter().any(|ty| ty == "string") {
                let index = sink.parsed.calls.len() - 1;
                sink.repair(Repair::InvalidJson {
                    index,
                    parameter: key.to_owned(),
                });
            }
        }
    }
}

/// Whether `json` is of one of the `types` other than string; of any when none are given.
fn is_of(json: &Value, types: &[String]) -> bool {
    let names: &[&str] = match json {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(n) if n.is_f64() => &["number"],
        Value::Number(_) => &["number", "integer"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
        Value::String(_) => return false,
    };
    types.is_empty() || types.iter().any(|ty| names.contains(&ty.as_str()))
}

fn find(input: &Input, needle: &str, from: usize) -> Option<usize> {
    input.text()[from..]
        .match_indices(needle)
        .map(|(at, _)| from + at)
        .find(|&at| input.is_real(at))
}
