//! What the model wrote when it made a call, kept by the call's id.
//!
//! A client sends calls back as JSON, which can be written in many ways; the model's own text goes back into the prompt as
//! it was, so that the timeline stays the same and nothing is computed again. Ids must be hard to guess, because whoever
//! knows one puts its text into a prompt.

use std::collections::{HashMap, VecDeque};

use crate::chat::{Message, Role};

/// A bounded memory; the oldest ids are forgotten first.
#[derive(Debug)]
pub struct Replays {
    most_ids: usize,
    most_bytes: usize,
    bytes: usize,
    texts: HashMap<String, String>,
    order: VecDeque<String>,
}

impl Replays {
    /// At most so many ids with so many bytes of text; 0 ids remember nothing.
    #[must_use]
    pub fn new(most_ids: usize, most_bytes: usize) -> Self {
        Self {
            most_ids,
            most_bytes,
            bytes: 0,
            texts: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The call `id` was made in an answer that reads `text`.
    pub fn remember(&mut self, id: &str, text: &str) {
        if self.texts.contains_key(id) || self.most_ids == 0 {
            return;
        }
        self.bytes += text.len();
        self.texts.insert(id.to_owned(), text.to_owned());
        self.order.push_back(id.to_owned());
        while self.texts.len() > self.most_ids || self.bytes > self.most_bytes {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            let gone = self.texts.remove(&oldest).unwrap_or_default();
            self.bytes -= gone.len();
        }
    }

    /// Give answers with known calls the text they were made in.
    pub fn put_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|m| m.role == Role::Assistant) {
            let mut texts = message
                .tool_calls
                .iter()
                .map(|call| call.id.as_ref().and_then(|id| self.texts.get(id)));
            // All calls of the message must come from one answer: else the client has put it together anew.
            if let Some(Some(first)) = texts.next()
                && texts.all(|text| text == Some(first))
            {
                message.replay = Some(first.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolCall;

    fn answer(ids: &[&str]) -> Vec<Message> {
        let call = |id: &&str| ToolCall {
            id: Some((*id).to_owned()),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
        };
        let mut message = Message::assistant("");
        message.tool_calls = ids.iter().map(call).collect();
        vec![message]
    }

    #[test]
    fn an_answer_is_put_back_only_when_all_its_calls_are_of_one_text() {
        let mut replays = Replays::new(8, 100);
        replays.remember("a", "one");
        replays.remember("b", "one");
        replays.remember("c", "two");
        let replay = |ids: &[&str]| {
            let mut messages = answer(ids);
            replays.put_back(&mut messages);
            messages[0].replay.clone()
        };
        assert_eq!(replay(&["a", "b"]).as_deref(), Some("one"));
        assert_eq!(replay(&["a", "c"]), None);
        assert_eq!(replay(&["a", "x"]), None);
        assert_eq!(replay(&[]), None);
    }

    #[test]
    fn the_oldest_are_forgotten_by_number_and_by_bytes() {
        let mut replays = Replays::new(2, 5);
        for (id, text) in [("a", "1"), ("b", "2"), ("c", "3")] {
            replays.remember(id, text);
        }
        assert!(!replays.texts.contains_key("a"));
        replays.remember("d", "45678");
        assert_eq!(replays.texts.len(), 1);
        assert_eq!(replays.bytes, 5);
    }
}
