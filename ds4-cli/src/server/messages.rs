//! `/v1/messages`, as Anthropic defines it.

use axum::response::sse::Event;
use ds4_model::Message;
use ds4_model::chat::{Delta, ToolCall};
use ds4_model::serve::{End, Ended, Logprob, Update, Usage};
use serde_json::{Value, json};

use super::chat::{add_warnings, by_schema};
use super::error::{ApiError, Shape};
use super::fields::{self, Route};
use super::params::{self, Body, take};
use super::reply::{Calls, Dialect, made_calls, named};
use super::state::{Ask, Ready, Shared};

/// Read a request.
pub(crate) fn ready(app: &Shared, mut body: Body) -> Result<Ready<Messages>, ApiError> {
    let (ask, model) = ask(app, &mut body)?;
    let stream = params::stream(&body)?;
    let field = ask.field;
    let request = app.request(ask)?;
    let dialect = Messages {
        id: app.id("msg_"),
        model,
        prompt: request.prompt.len(),
        calls: Calls::new(app, "toolu_"),
        blocks: 0,
        open: None,
    };
    Ok(Ready {
        request,
        dialect,
        stream,
        field,
    })
}

/// How many tokens a request's prompt has.
pub(crate) fn count_tokens(app: &Shared, mut body: Body) -> Result<Value, ApiError> {
    let (ask, _) = ask(app, &mut body)?;
    let prompt = app.prompt(ask.messages, ask.tools, &ask.render, ask.field)?;
    Ok(json!({ "input_tokens": prompt.len() }))
}

fn ask(app: &Shared, body: &mut Body) -> Result<(Ask, String), ApiError> {
    fields::check(Route::Messages, body)?;
    let model = params::model(body, app)?;
    let tools = params::tools(body, |tool| match tool["type"].as_str() {
        None | Some("custom") => Ok(params::flat_function(tool, "input_schema")),
        Some(kind) => Err(format!("`type` is {kind}, expected custom")),
    })?;
    let mut messages = messages(body)?;
    let form = match params::nested::<Value>(body, "output_config", "format")? {
        None => None,
        Some(format) if format["type"] == "json_schema" => {
            let field = "output_config.format.schema";
            Some(by_schema(&mut messages, &format["schema"], field)?)
        }
        Some(_) => {
            return Err(ApiError::invalid(
                "output_config.format",
                "`output_config.format` needs `type`: json_schema",
            ));
        }
    };
    params::one_grammar(&tools, form.is_some(), "output_config.format")?;
    let ask = Ask {
        messages,
        tools,
        render: params::thinking(body, app, &model)?,
        sampler: params::sampler(body, app)?,
        limit: params::limit(body, &["max_tokens"], app)?,
        stops: params::stops(body, "stop_sequences")?,
        logprobs: None,
        form,
        field: "messages",
    };
    Ok((ask, model))
}

/// Text, or blocks of text.
fn text(value: Value, field: &str) -> Result<String, ApiError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Array(blocks) => blocks
            .into_iter()
            .enumerate()
            .map(|(i, mut block)| {
                let text = take(block.get_mut("text"));
                match (block["type"].as_str(), text) {
                    (Some("text"), Value::String(text)) => Ok(text),
                    (kind, _) => Err(unknown_block(&format!("{field}[{i}]"), kind)),
                }
            })
            .collect::<Result<Vec<_>, _>>()
            .map(joined),
        _ => Err(ApiError::invalid(
            field,
            format!("`{field}`: expected text or blocks"),
        )),
    }
}

/// Texts with blank lines between them; one alone is not copied.
fn joined(mut texts: Vec<String>) -> String {
    match texts.len() {
        1 => texts.remove(0),
        _ => texts.join("\n\n"),
    }
}

fn unknown_block(field: &str, kind: Option<&str>) -> ApiError {
    let kind = kind.unwrap_or("missing");
    ApiError::invalid(
        field,
        format!("`{field}`: a block of type {kind} is not supported here"),
    )
}

/// The text `name` of `block`, taken out of it.
fn string(block: &mut Value, name: &str, field: &str) -> Result<String, ApiError> {
    match take(block.get_mut(name)) {
        Value::String(text) => Ok(text),
        _ => {
            let what = format!("`{field}`: expected a text `{name}`");
            Err(ApiError::invalid(field, what))
        }
    }
}

fn messages(body: &mut Body) -> Result<Vec<Message>, ApiError> {
    let list = params::take_list(body, "messages")?.unwrap_or_default();
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "missing messages"));
    }
    let mut out = Vec::new();
    let system = take(body.get_mut("system"));
    if !system.is_null() {
        out.push(Message::system(text(system, "system")?));
    }
    for (i, mut message) in list.into_iter().enumerate() {
        let field = format!("messages[{i}]");
        let content = take(message.get_mut("content"));
        match message["role"].as_str() {
            Some("user") => user(content, &field, &mut out)?,
            Some("assistant") => out.push(assistant(content, &field)?),
            Some("system") => out.push(Message::system(text(content, &field)?)),
            _ => {
                let what = format!("`{field}.role`: expected user or assistant");
                return Err(ApiError::invalid(&field, what));
            }
        }
    }
    Ok(out)
}

/// What a person says, and results of calls, in their order.
fn user(content: Value, field: &str, out: &mut Vec<Message>) -> Result<(), ApiError> {
    let blocks = match content {
        Value::Array(blocks) => blocks,
        other => {
            out.push(Message::user(text(other, field)?));
            return Ok(());
        }
    };
    let mut said: Vec<String> = Vec::new();
    for (i, mut block) in blocks.into_iter().enumerate() {
        let field = format!("{field}.content[{i}]");
        match block["type"].as_str() {
            Some("text") => said.push(string(&mut block, "text", &field)?),
            Some("tool_result") => {
                if !said.is_empty() {
                    out.push(Message::user(joined(std::mem::take(&mut said))));
                }
                let id = string(&mut block, "tool_use_id", &field)?;
                out.push(Message::tool(id, result(&mut block, &field)?));
            }
            kind => return Err(unknown_block(&field, kind)),
        }
    }
    if !said.is_empty() {
        out.push(Message::user(joined(said)));
    }
    Ok(())
}

/// The text of a result. The model's format has no mark for one that failed, so its text says so.
fn result(block: &mut Value, field: &str) -> Result<String, ApiError> {
    let said = text(take(block.get_mut("content")), &format!("{field}.content"))?;
    match &block["is_error"] {
        Value::Null | Value::Bool(false) => Ok(said),
        Value::Bool(true) => Ok(format!("Error: {said}").trim_end().to_owned()),
        _ => {
            let field = format!("{field}.is_error");
            let what = format!("`{field}`: expected true or false");
            Err(ApiError::invalid(&field, what))
        }
    }
}

fn assistant(content: Value, field: &str) -> Result<Message, ApiError> {
    let blocks = match content {
        Value::Array(blocks) => blocks,
        other => return Ok(Message::assistant(text(other, field)?)),
    };
    let mut message = Message::assistant("");
    for (i, mut block) in blocks.into_iter().enumerate() {
        let field = format!("{field}.content[{i}]");
        match block["type"].as_str() {
            Some("text") => {
                if !message.content.is_empty() {
                    message.content += "\n\n";
                }
                message.content += &string(&mut block, "text", &field)?;
            }
            Some("thinking") => {
                let thought = string(&mut block, "thinking", &field)?;
                message.reasoning.get_or_insert_default().push_str(&thought);
            }
            // Of no use to this model, which never made it.
            Some("redacted_thinking") => {}
            Some("tool_use") => message.tool_calls.push(ToolCall {
                id: Some(string(&mut block, "id", &field)?),
                name: string(&mut block, "name", &field)?,
                arguments: match &block["input"] {
                    Value::Null => "{}".to_owned(),
                    input @ Value::Object(_) => input.to_string(),
                    _ => {
                        let what = format!("`{field}.input`: expected an object");
                        return Err(ApiError::invalid(&field, what));
                    }
                },
            }),
            kind => return Err(unknown_block(&field, kind)),
        }
    }
    Ok(message)
}

/// What kind of block a stream is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Thinking,
    Text,
    Call(usize),
}

pub(crate) struct Messages {
    id: String,
    model: String,
    prompt: usize,
    calls: Calls,
    /// Blocks begun.
    blocks: usize,
    open: Option<Block>,
}

fn usage(usage: &Usage) -> Value {
    // Anthropic counts what was in the cache apart.
    json!({
        "input_tokens": usage.prompt - usage.cached,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.completion,
    })
}

fn stop(end: &End) -> (&'static str, Option<&str>) {
    match &end.ended {
        Ended::StopString(by) => ("stop_sequence", Some(by)),
        Ended::Length => ("max_tokens", None),
        _ if made_calls(&end.parsed) => ("tool_use", None),
        _ => ("end_turn", None),
    }
}

impl Messages {
    fn message(&self, content: Value, stop: (Option<&str>, Option<&str>), usage: Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop.0,
            "stop_sequence": stop.1,
            "usage": usage,
        })
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        let Some(block) = self.open.take() else {
            return;
        };
        let index = self.blocks - 1;
        if block == Block::Thinking {
            events.push(delta(
                index,
                json!({ "type": "signature_delta", "signature": SIGNATURE }),
            ));
        }
        events.push(named(
            "content_block_stop",
            &json!({ "type": "content_block_stop", "index": index }),
        ));
    }

    /// Be in `block`, whose first event holds `start`.
    fn enter(&mut self, block: Block, start: Value, events: &mut Vec<Event>) -> usize {
        if self.open != Some(block) {
            self.close(events);
            self.open = Some(block);
            self.blocks += 1;
            events.push(named(
                "content_block_start",
                &json!({ "type": "content_block_start", "index": self.blocks - 1, "content_block": start }),
            ));
        }
        self.blocks - 1
    }
}

/// Thinking is not signed here; clients want something that they can send back.
const SIGNATURE: &str = "unsigned";

fn delta(index: usize, delta: Value) -> Event {
    named(
        "content_block_delta",
        &json!({ "type": "content_block_delta", "index": index, "delta": delta }),
    )
}

impl Dialect for Messages {
    const SHAPE: Shape = Shape::Anthropic;

    fn begin(&mut self) -> Vec<Event> {
        let known = usage(&Usage {
            prompt: self.prompt,
            ..Usage::default()
        });
        let message = self.message(json!([]), (None, None), known);
        vec![named(
            "message_start",
            &json!({ "type": "message_start", "message": message }),
        )]
    }

    fn more(&mut self, update: &Update) -> Vec<Event> {
        let mut events = Vec::new();
        for part in &update.deltas {
            match part {
                Delta::Reasoning(text) => {
                    let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
                    let index = self.enter(Block::Thinking, start, &mut events);
                    events.push(delta(
                        index,
                        json!({ "type": "thinking_delta", "thinking": text }),
                    ));
                }
                Delta::Content(text) => {
                    let start = json!({ "type": "text", "text": "" });
                    let index = self.enter(Block::Text, start, &mut events);
                    events.push(delta(index, json!({ "type": "text_delta", "text": text })));
                }
                Delta::Call { index, name } => {
                    let id = self.calls.id(*index);
                    let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                    self.enter(Block::Call(*index), start, &mut events);
                }
                Delta::Arguments { json, .. } => {
                    let index = self.blocks.saturating_sub(1);
                    events.push(delta(
                        index,
                        json!({ "type": "input_json_delta", "partial_json": json }),
                    ));
                }
            }
        }
        events
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        self.calls.keep(end);
        let mut events = Vec::new();
        if self.blocks == 0 || (self.blocks == 1 && self.open == Some(Block::Thinking)) {
            self.enter(
                Block::Text,
                json!({ "type": "text", "text": "" }),
                &mut events,
            );
        }
        self.close(&mut events);
        let (reason, by) = stop(end);
        let mut last = json!({
            "type": "message_delta",
            "delta": { "stop_reason": reason, "stop_sequence": by },
            "usage": usage(&end.usage),
        });
        add_warnings(&mut last, end);
        events.push(named("message_delta", &last));
        events.push(named("message_stop", &json!({ "type": "message_stop" })));
        events
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        vec![named("error", &error.body(Self::SHAPE))]
    }

    fn whole(&mut self, end: &End, _: &[Logprob]) -> Value {
        let parsed = &end.parsed;
        let mut content = Vec::new();
        if let Some(thinking) = parsed.reasoning.as_deref().filter(|t| !t.is_empty()) {
            content
                .push(json!({ "type": "thinking", "thinking": thinking, "signature": SIGNATURE }));
        }
        if made_calls(parsed) {
            if !parsed.content.is_empty() {
                content.push(json!({ "type": "text", "text": parsed.content }));
            }
            for (i, call) in parsed.calls.iter().enumerate() {
                // The parser made these arguments: they are an object.
                let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                content.push(json!({
                    "type": "tool_use",
                    "id": self.calls.id(i),
                    "name": call.name,
                    "input": input,
                }));
            }
        } else {
            content.push(json!({ "type": "text", "text": parsed.content }));
        }
        self.calls.keep(end);
        let (reason, by) = stop(end);
        let mut message = self.message(json!(content), (Some(reason), by), usage(&end.usage));
        add_warnings(&mut message, end);
        message
    }
}
