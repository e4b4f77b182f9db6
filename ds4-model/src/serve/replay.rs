//! What the model wrote when it made a call, kept by the call's id.
//!
//! A client sends calls back as JSON, which can be written in many ways; the model's own text goes back into the prompt as
//! it was, so that the timeline stays the same and nothing is computed again. What a client has changed counts as it was
//! sent. Ids must be hard to guess, because whoever knows one and what was said puts its text into a prompt.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::answer::End;
use crate::chat::{Message, Parsed, Replay, Role};

/// A bounded memory; the oldest ids are forgotten first.
#[derive(Debug)]
pub struct Replays {
    most_ids: usize,
    most_bytes: usize,
    bytes: usize,
    answers: HashMap<String, Arc<Known>>,
    order: VecDeque<String>,
}

/// An answer: how it was written, and what a client was told of it.
#[derive(Debug)]
struct Known {
    ids: Vec<String>,
    parsed: Parsed,
    replay: Replay,
}

impl Known {
    fn bytes(&self) -> usize {
        let parsed = &self.parsed;
        let calls = parsed.calls.iter();
        self.replay.text.as_str().len()
            + parsed.content.len()
            + parsed.reasoning.as_ref().map_or(0, String::len)
            + calls
                .map(|c| c.name.len() + c.arguments.len())
                .sum::<usize>()
    }

    /// Whether `message` still says what the model said.
    fn is_said_by(&self, message: &Message) -> bool {
        let thought = self.parsed.reasoning.as_deref().unwrap_or_default();
        let said = message.reasoning.as_deref().unwrap_or_default();
        message.content == self.parsed.content
            && (said.is_empty() || said == thought)
            && message.tool_calls.len() == self.ids.len()
            && self
                .ids
                .iter()
                .zip(&self.parsed.calls)
                .zip(&message.tool_calls)
                .all(|((id, known), call)| {
                    call.id.as_ref() == Some(id)
                        && call.name == known.name
                        && same_json(&call.arguments, &known.arguments)
                })
    }
}

/// Whether two texts are the same JSON value, however it is written.
fn same_json(a: &str, b: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    a == b || value(a).is_some_and(|a| Some(a) == value(b))
}

impl Replays {
    /// At most so many ids with so many bytes of text; 0 ids remember nothing.
    #[must_use]
    pub fn new(most_ids: usize, most_bytes: usize) -> Self {
        Self {
            most_ids,
            most_bytes,
            bytes: 0,
            answers: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The calls of the answer that ended with `end` are known as `ids`, one for each and in their order; else nothing is
    /// remembered.
    pub fn remember(&mut self, ids: &[String], end: &End) {
        if ids.len() != end.parsed.calls.len() || self.most_ids == 0 {
            return;
        }
        let known = Arc::new(Known {
            ids: ids.to_vec(),
            parsed: end.parsed.clone(),
            replay: end.replay.clone(),
        });
        for id in ids {
            if self.answers.contains_key(id) {
                continue;
            }
            self.bytes += known.bytes();
            self.answers.insert(id.clone(), Arc::clone(&known));
            self.order.push_back(id.clone());
        }
        while self.answers.len() > self.most_ids || self.bytes > self.most_bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            if let Some(gone) = self.answers.remove(&oldest) {
                self.bytes -= gone.bytes();
            }
        }
    }

    /// Give answers with known calls the text they were made in, if they still say the same: names, arguments as JSON
    /// values, content, and reasoning where it is sent.
    pub fn put_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|m| m.role == Role::Assistant) {
            let first = message.tool_calls.first().and_then(|call| call.id.as_ref());
            if let Some(known) = first.and_then(|id| self.answers.get(id))
                && known.is_said_by(message)
            {
                message.replay = Some(known.replay.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolCall;
    use crate::serve::{Ended, Usage};

    fn call(id: Option<&str>, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.map(str::to_owned),
            name: "f".to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    fn end(text: &str, calls: usize) -> End {
        let mut replay = Replay::default();
        replay.text.text(text);
        End {
            ended: Ended::Stop,
            parsed: Parsed {
                content: "So.".to_owned(),
                reasoning: Some("Hm.".to_owned()),
                calls: vec![call(None, r#"{"a": 1, "b": "x"}"#); calls],
                ..Parsed::default()
            },
            text: text.to_owned(),
            replay,
            usage: Usage::default(),
        }
    }

    fn answer(ids: &[&str]) -> Message {
        let mut message = Message::assistant("So.");
        message.tool_calls = ids
            .iter()
            .map(|id| call(Some(id), r#"{"b":"\u0078","a":1}"#))
            .collect();
        message
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|&id| id.to_owned()).collect()
    }

    fn replay(replays: &Replays, message: Message) -> Option<String> {
        let mut messages = [message];
        replays.put_back(&mut messages);
        let [message] = messages;
        message.replay.map(|r| r.text.as_str().to_owned())
    }

    #[test]
    fn an_answer_is_put_back_only_with_all_its_calls() {
        let mut replays = Replays::new(8, 1000);
        replays.remember(&ids(&["a", "b"]), &end("one", 2));
        replays.remember(&ids(&["c"]), &end("two", 1));
        let replay = |ids: &[&str]| replay(&replays, answer(ids));
        assert_eq!(replay(&["a", "b"]).as_deref(), Some("one"));
        assert_eq!(replay(&["c"]).as_deref(), Some("two"));
        for other in [&["a"][..], &["b", "a"], &["a", "c"], &["a", "x"], &[]] {
            assert_eq!(replay(other), None, "{other:?}");
        }
    }

    #[test]
    fn what_a_client_has_changed_is_not_put_back() {
        let mut replays = Replays::new(8, 1000);
        replays.remember(&ids(&["a"]), &end("one", 1));
        let changed = |change: &dyn Fn(&mut Message)| {
            let mut message = answer(&["a"]);
            change(&mut message);
            replay(&replays, message)
        };
        assert!(changed(&|_| {}).is_some());
        assert!(changed(&|m| m.reasoning = Some("Hm.".into())).is_some());
        assert!(changed(&|m| m.reasoning = Some("Other.".into())).is_none());
        assert!(changed(&|m| m.content = "No.".into()).is_none());
        assert!(changed(&|m| m.tool_calls[0].name = "g".into()).is_none());
        let arguments = r#"{"a": 2, "b": "x"}"#;
        assert!(changed(&|m| m.tool_calls[0].arguments = arguments.into()).is_none());
    }

    #[test]
    fn the_oldest_are_forgotten_by_number_and_by_bytes() {
        let mut replays = Replays::new(2, 1000);
        for (id, text) in [("a", "1"), ("b", "2"), ("c", "3")] {
            replays.remember(&ids(&[id]), &end(text, 1));
        }
        assert!(!replays.answers.contains_key("a"));
        assert_eq!(replays.answers.len(), 2);
        replays.remember(&ids(&["d"]), &end(&"4".repeat(960), 1));
        assert_eq!(replays.answers.len(), 1);
        assert!(replays.answers.contains_key("d"));
        replays.remember(&ids(&["e"]), &end(&"5".repeat(1000), 1));
        assert_eq!((replays.answers.len(), replays.bytes), (0, 0));
    }
}
