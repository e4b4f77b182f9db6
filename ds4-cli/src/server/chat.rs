//! `/v1/chat/completions`, as OpenAI defines it.

use axum::response::sse::Event;
use ds4_model::chat::{Delta, JsonText, Role};
use ds4_model::serve::{End, Ended, Logprob, Update, Usage};
use ds4_model::{Message, Token};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{ApiError, Shape};
use super::fields::{self, Route};
use super::params::{self, Body, get, typed};
use super::reply::{Calls, Dialect, data, made_calls, named, warnings};
use super::state::{Ask, Form, Ready, Shared};

/// Read a request.
pub(crate) fn ready(app: &Shared, mut body: Body) -> Result<Ready<Chat>, ApiError> {
    let (ask, model) = ask(app, &mut body)?;
    let stream = params::stream(&body)?;
    let field = ask.field;
    let dialect = Chat {
        base: json!({
            "id": app.id("chatcmpl-"),
            "object": if stream { "chat.completion.chunk" } else { "chat.completion" },
            "created": super::state::now(),
            "model": model,
        }),
        calls: Calls::new(app, "call_"),
        include_usage: params::include_usage(&body)?,
        with_logprobs: ask.logprobs.is_some(),
    };
    Ok(Ready {
        request: app.request(ask)?,
        dialect,
        stream,
        field,
    })
}

/// The prompt of a request.
pub(crate) fn prompt(app: &Shared, mut body: Body) -> Result<Vec<Token>, ApiError> {
    let (ask, _) = ask(app, &mut body)?;
    app.prompt(ask.messages, ask.tools, &ask.render, ask.field)
}

fn ask(app: &Shared, body: &mut Body) -> Result<(Ask, String), ApiError> {
    fields::check(Route::Chat, body)?;
    let model = params::model(body, app)?;
    let mut messages = messages(body)?;
    let tools = params::tools(body, |tool| match tool["type"].as_str() {
        Some("function") => Ok(tool["function"].clone()),
        _ => Err("expected `type`: function".to_owned()),
    })?;
    let form = response_format(body, &mut messages)?;
    params::one_grammar(&tools, form.is_some(), "response_format")?;
    let ask = Ask {
        messages,
        tools,
        render: params::thinking(body, app, &model)?,
        sampler: params::sampler(body, app)?,
        limit: params::limit(body, &["max_completion_tokens", "max_tokens"], app)?,
        stops: params::stops(body, "stop")?,
        logprobs: logprobs(body)?,
        form,
        field: "messages",
    };
    Ok((ask, model))
}

/// The conversation.
fn messages(body: &mut Body) -> Result<Vec<Message>, ApiError> {
    let list = params::take_list(body, "messages")?.unwrap_or_default();
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "missing messages"));
    }
    let message = |(i, mut value): (usize, Value)| {
        let field = format!("messages[{i}]");
        if !value.is_object() {
            let what = format!("`{field}`: expected an object");
            return Err(ApiError::invalid(&field, what));
        }
        if let Some(Value::Array(parts)) = value.get_mut("content") {
            as_text(parts);
        }
        Message::deserialize(value)
            .map_err(|e| ApiError::invalid(&field, format!("`{field}`: {e}")))
    };
    list.into_iter().enumerate().map(message).collect()
}

/// Make parts that the other API of OpenAI has for text parts of text. That an answer was refused is in no text that the
/// model could read.
fn as_text(parts: &mut Vec<Value>) {
    parts.retain(|part| part["type"] != "refusal");
    for part in parts {
        if matches!(part["type"].as_str(), Some("input_text" | "output_text")) {
            part["type"] = json!("text");
        }
    }
}

/// What the answer must look like. A schema is told to the model too, in its system message, as it was trained.
fn response_format(body: &Body, messages: &mut Vec<Message>) -> Result<Option<Form>, ApiError> {
    let Some(format) = get(body, "response_format") else {
        return Ok(None);
    };
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Form {
            schema: None,
            field: "response_format",
        })),
        Some("json_schema") => {
            let field = "response_format.json_schema.schema";
            by_schema(messages, &format["json_schema"]["schema"], field).map(Some)
        }
        _ => Err(ApiError::invalid(
            "response_format",
            "`response_format` needs a `type`: text, json_object or json_schema",
        )),
    }
}

/// An answer by `schema`, which is put into the system message.
pub(crate) fn by_schema(
    messages: &mut Vec<Message>,
    schema: &Value,
    field: &'static str,
) -> Result<Form, ApiError> {
    if !schema.is_object() && !schema.is_boolean() {
        let what = format!("`{field}`: expected a schema");
        return Err(ApiError::invalid(field, what));
    }
    let text =
        JsonText::new(schema.to_string()).map_err(|e| ApiError::invalid(field, e.to_string()))?;
    if messages.first().is_none_or(|m| m.role != Role::System) {
        messages.insert(0, Message::system(""));
    }
    messages[0].response_format = Some(text);
    Ok(Form {
        schema: Some(schema.clone()),
        field,
    })
}

fn logprobs(body: &Body) -> Result<Option<usize>, ApiError> {
    const MOST: usize = 20;
    let wanted = typed(body, "logprobs")?.unwrap_or(false);
    let top: Option<usize> = typed(body, "top_logprobs")?;
    match top {
        Some(n) if n > MOST => Err(ApiError::invalid(
            "top_logprobs",
            format!("`top_logprobs` is {n}, expected at most {MOST}"),
        )),
        Some(n) if n > 0 && !wanted => Err(ApiError::invalid(
            "top_logprobs",
            "`top_logprobs` needs `logprobs`: true",
        )),
        top => Ok(wanted.then_some(top.unwrap_or(0))),
    }
}

/// Usage as OpenAI counts.
pub(crate) fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.prompt - usage.cached,
        },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

/// Why the answer ended.
fn finish_reason(end: &End) -> &'static str {
    match end.ended {
        Ended::Length => "length",
        _ if made_calls(&end.parsed) => "tool_calls",
        _ => "stop",
    }
}

fn token_logprob(bytes: &[u8], logprob: f32) -> Value {
    // JSON has no minus infinity; OpenAI writes -9999 for what is out of reach.
    let logprob = if logprob.is_finite() {
        logprob
    } else {
        -9999.0
    };
    json!({ "token": String::from_utf8_lossy(bytes), "logprob": logprob, "bytes": bytes })
}

fn logprob_content(logprobs: &[Logprob]) -> Value {
    let one = |l: &Logprob| {
        let mut value = token_logprob(&l.bytes, l.logprob);
        value["top_logprobs"] = l.top.iter().map(|(b, p)| token_logprob(b, *p)).collect();
        value
    };
    json!({ "content": logprobs.iter().map(one).collect::<Vec<_>>(), "refusal": null })
}

pub(crate) struct Chat {
    base: Value,
    calls: Calls,
    include_usage: bool,
    with_logprobs: bool,
}

impl Chat {
    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        let mut chunk = self.base.clone();
        chunk["choices"] =
            json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]);
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn delta(&mut self, delta: &Delta) -> Value {
        match delta {
            Delta::Reasoning(text) => json!({ "reasoning_content": text }),
            Delta::Content(text) => json!({ "content": text }),
            Delta::Call { index, name } => json!({ "tool_calls": [{
                "index": index,
                "id": self.calls.id(*index),
                "type": "function",
                "function": { "name": name, "arguments": "" },
            }] }),
            Delta::Arguments { index, json } => json!({ "tool_calls": [{
                "index": index,
                "function": { "arguments": json },
            }] }),
        }
    }
}

impl Dialect for Chat {
    const SHAPE: Shape = Shape::OpenAi;

    fn begin(&mut self) -> Vec<Event> {
        vec![data(
            &self.chunk(json!({ "role": "assistant", "content": "" }), None),
        )]
    }

    fn more(&mut self, update: &Update) -> Vec<Event> {
        let mut chunks: Vec<Value> = update
            .deltas
            .iter()
            .map(|delta| {
                let delta = self.delta(delta);
                self.chunk(delta, None)
            })
            .collect();
        if self.with_logprobs && !update.logprobs.is_empty() {
            // Text may be held back while its tokens are known.
            if chunks.is_empty() {
                chunks.push(self.chunk(json!({ "content": "" }), None));
            }
            chunks[0]["choices"][0]["logprobs"] = logprob_content(&update.logprobs);
        }
        chunks.iter().map(data).collect()
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        self.calls.keep(end);
        let mut last = self.chunk(json!({}), Some(finish_reason(end)));
        add_warnings(&mut last, end);
        closing(&last, self.include_usage.then_some(&self.base), end)
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        vec![named("error", &error.body(Self::SHAPE))]
    }

    fn whole(&mut self, end: &End, logprobs: &[Logprob]) -> Value {
        let parsed = &end.parsed;
        let mut message =
            json!({ "role": "assistant", "content": parsed.content, "refusal": null });
        if let Some(reasoning) = &parsed.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        if made_calls(parsed) {
            let call = |(i, call): (usize, &ds4_model::chat::ToolCall)| {
                json!({
                    "id": self.calls.id(i),
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            };
            message["tool_calls"] = parsed.calls.iter().enumerate().map(call).collect();
        }
        self.calls.keep(end);
        let mut choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(end) });
        if self.with_logprobs {
            choice["logprobs"] = logprob_content(logprobs);
        }
        let mut document = self.base.clone();
        document["choices"] = json!([choice]);
        document["usage"] = usage(&end.usage);
        add_warnings(&mut document, end);
        document
    }
}

/// The events that end a stream: the last chunk, one with the usage where `base` for it is given, and the mark of the end.
pub(crate) fn closing(last: &Value, base: Option<&Value>, end: &End) -> Vec<Event> {
    let mut events = vec![data(last)];
    if let Some(base) = base {
        let mut chunk = base.clone();
        chunk["choices"] = json!([]);
        chunk["usage"] = usage(&end.usage);
        events.push(data(&chunk));
    }
    events.push(Event::default().data("[DONE]"));
    events
}

/// A member of ours, only when there is something to say.
pub(crate) fn add_warnings(document: &mut Value, end: &End) {
    let warnings = warnings(&end.parsed);
    if !warnings.is_empty() {
        document["warnings"] = json!(warnings);
    }
}
