//! An answer as items, one after the other.

use axum::response::sse::Event;
use ds4_model::chat::{Delta, Outcome};
use ds4_model::serve::{End, Ended, Logprob, Update, Usage};
use serde_json::{Value, json};

use crate::server::chat::add_warnings;
use crate::server::error::{ApiError, Shape};
use crate::server::reply::{Calls, Dialect, made_calls, named};
use crate::server::state::Shared;

/// The item that a stream is in.
enum Item {
    Reasoning {
        id: String,
        text: String,
    },
    Message {
        id: String,
        text: String,
    },
    Call {
        id: String,
        call_id: String,
        name: String,
        arguments: String,
    },
}

pub(crate) struct Responses {
    app: Shared,
    /// The response object, without what is not known yet.
    response: Value,
    calls: Calls,
    /// Whether the client wants to see what was thought as a summary.
    summary: bool,
    sequence: u64,
    output: Vec<Value>,
    open: Option<Item>,
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.completion,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.prompt + usage.completion,
    })
}

impl Responses {
    pub(super) fn new(app: &Shared, response: Value, calls: Calls, summary: bool) -> Self {
        Self {
            app: app.clone(),
            response,
            calls,
            summary,
            sequence: 0,
            output: Vec::new(),
            open: None,
        }
    }

    fn event(&mut self, kind: &str, mut fields: Value) -> Event {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        named(kind, &fields)
    }

    fn about(&mut self, kind: &str) -> Event {
        let response = self.response.clone();
        self.event(kind, json!({ "response": response }))
    }

    /// The item as it is sent, finished or not.
    fn json(&self, item: &Item, status: &str) -> Value {
        match item {
            Item::Reasoning { id, text } => {
                let summary = if self.summary && !text.is_empty() {
                    json!([{ "type": "summary_text", "text": text }])
                } else {
                    json!([])
                };
                json!({
                    "id": id,
                    "type": "reasoning",
                    "status": status,
                    "summary": summary,
                    "content": [{ "type": "reasoning_text", "text": text }],
                })
            }
            Item::Message { id, text } => {
                let content = if status == "in_progress" {
                    json!([])
                } else {
                    json!([text_part(text)])
                };
                json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
            }
            Item::Call {
                id,
                call_id,
                name,
                arguments,
            } => json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            }),
        }
    }

    fn open(&mut self, item: Item, events: &mut Vec<Event>) {
        let (index, begun) = (self.output.len(), self.json(&item, "in_progress"));
        let id = begun["id"].clone();
        events.push(self.event(
            "response.output_item.added",
            json!({ "output_index": index, "item": begun }),
        ));
        match &item {
            Item::Reasoning { .. } if self.summary => events.push(self.event(
                "response.reasoning_summary_part.added",
                json!({ "item_id": id, "output_index": index, "summary_index": 0,
                    "part": { "type": "summary_text", "text": "" } }),
            )),
            Item::Message { .. } => events.push(self.event(
                "response.content_part.added",
                json!({ "item_id": id, "output_index": index, "content_index": 0, "part": text_part("") }),
            )),
            Item::Reasoning { .. } | Item::Call { .. } => {}
        }
        self.open = Some(item);
    }

    /// Close the item in progress.
    fn close(&mut self, status: &str, events: &mut Vec<Event>) {
        let Some(item) = self.open.take() else { return };
        let index = self.output.len();
        let done = self.json(&item, status);
        match &item {
            Item::Reasoning { id, text } if self.summary => {
                let at = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
                events.push(self.event("response.reasoning_summary_text.done", with(&at, "text", json!(text))));
                let part = json!({ "type": "summary_text", "text": text });
                events.push(self.event("response.reasoning_summary_part.done", with(&at, "part", part)));
            }
            Item::Message { id, text } => {
                let at = json!({ "item_id": id, "output_index": index, "content_index": 0 });
                let mut text_done = with(&at, "text", json!(text));
                text_done["logprobs"] = json!([]);
                events.push(self.event("response.output_text.done", text_done));
                events.push(self.event("response.content_part.done", with(&at, "part", text_part(text))));
            }
            Item::Call { id, name, arguments, .. } => events.push(self.event(
                "response.function_call_arguments.done",
                json!({ "item_id": id, "output_index": index, "name": name, "arguments": arguments }),
            )),
            Item::Reasoning { id, text } => events.push(self.event(
                "response.reasoning_text.done",
                json!({ "item_id": id, "output_index": index, "content_index": 0, "text": text }),
            )),
        }
        events.push(self.event(
            "response.output_item.done",
            json!({ "output_index": index, "item": done }),
        ));
        self.output.push(done);
    }

    fn part(&mut self, delta: &Delta, events: &mut Vec<Event>) {
        match delta {
            Delta::Reasoning(_) if matches!(self.open, Some(Item::Reasoning { .. })) => {}
            Delta::Content(_) if matches!(self.open, Some(Item::Message { .. })) => {}
            Delta::Arguments { .. } => {}
            begins => {
                self.close("completed", events);
                let item = self.begin_item(begins);
                self.open(item, events);
            }
        }
        let index = self.output.len();
        let (kind, fields) = match (delta, &mut self.open) {
            (Delta::Reasoning(more), Some(Item::Reasoning { id, text })) => {
                *text += more;
                let kind = if self.summary {
                    "summary_index"
                } else {
                    "content_index"
                };
                let mut fields = json!({ "item_id": id, "output_index": index, "delta": more });
                fields[kind] = json!(0);
                let event = if self.summary {
                    "response.reasoning_summary_text.delta"
                } else {
                    "response.reasoning_text.delta"
                };
                (event, fields)
            }
            (Delta::Content(more), Some(Item::Message { id, text })) => {
                *text += more;
                (
                    "response.output_text.delta",
                    json!({ "item_id": id, "output_index": index, "content_index": 0, "delta": more, "logprobs": [] }),
                )
            }
            (Delta::Arguments { json: more, .. }, Some(Item::Call { id, arguments, .. })) => {
                *arguments += more;
                (
                    "response.function_call_arguments.delta",
                    json!({ "item_id": id, "output_index": index, "delta": more }),
                )
            }
            _ => return,
        };
        events.push(self.event(kind, fields));
    }

    fn begin_item(&mut self, delta: &Delta) -> Item {
        match delta {
            Delta::Reasoning(_) => Item::Reasoning {
                id: self.app.id("rs_"),
                text: String::new(),
            },
            Delta::Content(_) => Item::Message {
                id: self.app.id("msg_"),
                text: String::new(),
            },
            Delta::Call { index, name } => Item::Call {
                id: self.app.id("fc_"),
                call_id: self.calls.id(*index),
                name: name.clone(),
                arguments: String::new(),
            },
            Delta::Arguments { .. } => unreachable!("arguments follow a call"),
        }
    }

    /// The response object at its end, and the event that says so.
    fn finish(&mut self, end: &End) -> &'static str {
        self.calls.keep(end);
        let (status, event) = if let Some(reason) = why_incomplete(end) {
            self.response["incomplete_details"] = json!({ "reason": reason });
            ("incomplete", "response.incomplete")
        } else {
            ("completed", "response.completed")
        };
        self.response["status"] = json!(status);
        self.response["output"] = json!(self.output);
        self.response["usage"] = usage(&end.usage);
        let mut response = std::mem::take(&mut self.response);
        add_warnings(&mut response, end);
        self.response = response;
        event
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn with(at: &Value, name: &str, value: Value) -> Value {
    let mut at = at.clone();
    at[name] = value;
    at
}

/// How far an item came, by the end of the answer.
fn status(end: &End) -> &'static str {
    if why_incomplete(end).is_some() {
        "incomplete"
    } else {
        "completed"
    }
}

/// Why an answer is not all that it was to be, in OpenAI's words. None of them is about calls that cannot be understood; that
/// something was left out is said by `content_filter`, and what it was by `warnings`.
fn why_incomplete(end: &End) -> Option<&'static str> {
    if end.ended == Ended::Length {
        Some("max_output_tokens")
    } else if end.parsed.outcome != Outcome::Complete {
        Some("content_filter")
    } else {
        None
    }
}

impl Dialect for Responses {
    const SHAPE: Shape = Shape::OpenAi;

    fn begin(&mut self) -> Vec<Event> {
        vec![
            self.about("response.created"),
            self.about("response.in_progress"),
        ]
    }

    fn more(&mut self, update: &Update) -> Vec<Event> {
        let mut events = Vec::new();
        for delta in &update.deltas {
            self.part(delta, &mut events);
        }
        events
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        let mut events = Vec::new();
        if self.output.is_empty() && self.open.is_none() {
            let item = self.begin_item(&Delta::Content(String::new()));
            self.open(item, &mut events);
        }
        self.close(status(end), &mut events);
        let event = self.finish(end);
        events.push(self.about(event));
        events
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        self.response["status"] = json!("failed");
        self.response["error"] = json!({ "code": "server_error", "message": error.to_string() });
        vec![self.about("response.failed")]
    }

    fn whole(&mut self, end: &End, _: &[Logprob]) -> Value {
        let parsed = &end.parsed;
        let mut events = Vec::new();
        let reasoning = parsed.reasoning.clone().filter(|r| !r.is_empty());
        let calls = made_calls(parsed);
        let mut parts: Vec<Delta> = reasoning.map(Delta::Reasoning).into_iter().collect();
        if !parsed.content.is_empty() || !calls {
            parts.push(Delta::Content(parsed.content.clone()));
        }
        if calls {
            for (index, call) in parsed.calls.iter().enumerate() {
                let (name, json) = (call.name.clone(), call.arguments.clone());
                parts.extend([
                    Delta::Call { index, name },
                    Delta::Arguments { index, json },
                ]);
            }
        }
        for part in &parts {
            self.part(part, &mut events);
        }
        self.close(status(end), &mut events);
        self.finish(end);
        self.response.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ds4_model::chat::Parsed;

    /// How a response ends whose answer ended so, and its last item.
    fn ended(ended: Ended, outcome: Outcome) -> (Value, Value) {
        let app = crate::server::state::demo();
        let mut writer = Responses::new(&app, json!({}), Calls::new(&app, "call_"), false);
        let end = End {
            ended,
            parsed: Parsed {
                content: "half".to_owned(),
                outcome,
                ..Parsed::default()
            },
            replay: ds4_model::chat::Replay::default(),
            text: String::new(),
            usage: Usage::default(),
        };
        let update = Update {
            deltas: vec![Delta::Content("half".to_owned())],
            ..Update::default()
        };
        assert_eq!(writer.more(&update).len(), 3);
        assert!(!writer.end(&end).is_empty());
        let streamed = writer.response.clone();
        let mut writer = Responses::new(&app, json!({}), Calls::new(&app, "call_"), false);
        let whole = writer.whole(&end, &[]);
        assert_eq!(whole["status"], streamed["status"]);
        (streamed.clone(), streamed["output"][0]["status"].clone())
    }

    #[test]
    fn an_answer_that_ends_within_a_call_is_incomplete() {
        let broken = Outcome::Incomplete { offset: 0 };
        let (response, item) = ended(Ended::Stop, broken);
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], "content_filter");
        assert_eq!(item, "incomplete");
        let (response, item) = ended(Ended::Length, Outcome::Complete);
        assert_eq!(
            response["incomplete_details"]["reason"],
            "max_output_tokens"
        );
        assert_eq!(item, "incomplete");
        let (response, item) = ended(Ended::Stop, Outcome::Complete);
        assert_eq!(
            (&response["status"], &item),
            (&json!("completed"), &json!("completed"))
        );
    }
}
