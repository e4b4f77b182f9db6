//! `/v1/completions`: text that goes on from text. Markers in the prompt count as markers.

use axum::response::sse::Event;
use ds4_model::chat::Delta;
use ds4_model::serve::{End, Ended, Logprob, Reading, Request, Update};
use ds4_model::tokenizer::Special;
use ds4_model::{Stop, Token};
use serde_json::{Map, Value, json};

use super::chat::{closing, usage};
use super::error::{ApiError, Shape};
use super::fields::{self, Route};
use super::params::{self, Body, get, typed};
use super::reply::{Dialect, data, named};
use super::state::{Ready, Shared};

/// Read a request.
pub(crate) fn ready(app: &Shared, body: Body) -> Result<Ready<Completion>, ApiError> {
    const MOST: usize = 20;
    let body = &body;
    fields::check(Route::Completions, body)?;
    let model = params::model(body, app)?;
    let logprobs: Option<usize> = typed(body, "logprobs")?;
    if let Some(n) = logprobs.filter(|&n| n > MOST) {
        return Err(ApiError::invalid(
            "logprobs",
            format!("`logprobs` is {n}, expected at most {MOST}"),
        ));
    }
    let request = Request {
        prompt: prompt(app, body)?,
        sampler: params::sampler(body, app)?,
        stop: Stop::new(app.engine.stops().tokens().to_vec())
            .with_strings(params::stops(body, "stop")?),
        limit: params::limit(body, &["max_tokens"], app)?,
        reading: Reading::Text,
        logprobs,
        grammar: None,
    };
    let stream = params::stream(body)?;
    let dialect = Completion {
        base: json!({
            "id": app.id("cmpl-"),
            "object": "text_completion",
            "created": super::state::now(),
            "model": model,
        }),
        include_usage: params::include_usage(body)?,
        with_logprobs: logprobs.is_some(),
        offset: 0,
    };
    Ok(Ready {
        request,
        dialect,
        stream,
        field: "prompt",
    })
}

/// The prompt: a text or token ids, or a list of one of these.
fn prompt(app: &Shared, body: &Body) -> Result<Vec<Token>, ApiError> {
    let wrong = |found: &str| {
        ApiError::invalid(
            "prompt",
            format!("`prompt` is {found}, expected a text, token ids, or a list of one text"),
        )
    };
    let prompt =
        get(body, "prompt").ok_or_else(|| ApiError::invalid("prompt", "missing prompt"))?;
    let prompt = match prompt {
        Value::Array(list) if list.len() == 1 && !list[0].is_number() => &list[0],
        other => other,
    };
    let tokenizer = app.engine.tokenizer();
    match prompt {
        Value::String(text) => {
            app.can_fit(text.len(), "prompt")?;
            let mut tokens: Vec<Token> = Vec::new();
            if tokenizer.add_bos() {
                tokens.extend(tokenizer.bos());
            }
            let encoded = tokenizer.encode(text, Special::All);
            // Who writes the first marker means that one.
            if encoded.first() == tokens.first() {
                tokens.clear();
            }
            tokens.extend(encoded);
            Ok(tokens)
        }
        Value::Array(list) if !list.is_empty() => {
            app.fits(list.len(), "prompt")?;
            params::tokens(list, tokenizer.vocab_len(), "prompt")
        }
        Value::Array(_) => Err(wrong("an empty list")),
        _ => Err(wrong("something else")),
    }
}

pub(crate) struct Completion {
    base: Value,
    include_usage: bool,
    with_logprobs: bool,
    /// Characters so far, for `text_offset`.
    offset: usize,
}

impl Completion {
    fn chunk(&mut self, text: &str, logprobs: &[Logprob], finish: Option<&str>) -> Value {
        let mut choice =
            json!({ "index": 0, "text": text, "logprobs": null, "finish_reason": finish });
        if self.with_logprobs {
            choice["logprobs"] = self.logprobs(logprobs);
        }
        let mut chunk = self.base.clone();
        chunk["choices"] = json!([choice]);
        chunk
    }

    /// Four lists, a row a token.
    fn logprobs(&mut self, logprobs: &[Logprob]) -> Value {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut tokens, mut values, mut tops, mut offsets) = (vec![], vec![], vec![], vec![]);
        for l in logprobs {
            let token = text(&l.bytes);
            offsets.push(self.offset);
            self.offset += token.chars().count();
            tokens.push(token);
            values.push(l.logprob);
            tops.push(Value::Object(
                l.top
                    .iter()
                    .map(|(bytes, p)| (text(bytes), json!(p)))
                    .collect::<Map<_, _>>(),
            ));
        }
        json!({ "tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets })
    }
}

fn finish_reason(end: &End) -> &'static str {
    match end.ended {
        Ended::Length => "length",
        _ => "stop",
    }
}

impl Dialect for Completion {
    const SHAPE: Shape = Shape::OpenAi;

    fn begin(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn more(&mut self, update: &Update) -> Vec<Event> {
        let text: String = update
            .deltas
            .iter()
            .map(|delta| match delta {
                Delta::Content(text) => text.as_str(),
                _ => "",
            })
            .collect();
        if text.is_empty() && update.logprobs.is_empty() {
            return Vec::new();
        }
        vec![data(&self.chunk(&text, &update.logprobs, None))]
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        let last = self.chunk("", &[], Some(finish_reason(end)));
        closing(&last, self.include_usage.then_some(&self.base), end)
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        vec![named("error", &error.body(Self::SHAPE))]
    }

    fn whole(&mut self, end: &End, logprobs: &[Logprob]) -> Value {
        let mut document = self.chunk(&end.parsed.content, logprobs, Some(finish_reason(end)));
        document["usage"] = usage(&end.usage);
        document
    }
}
