//! From updates to a response: a JSON document, or server-sent events as they come. How an answer is written is a
//! [`Dialect`]'s business.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use ds4_model::chat::{Outcome, Parsed, Repair};
use ds4_model::serve::{End, Ended, Logprob, Update};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;

use super::error::{ApiError, Shape};
use super::state::Shared;

/// A comment goes out so often while there is nothing to say, so that nobody in between closes the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// One API's way of writing one answer.
pub(crate) trait Dialect: Send + Sized + 'static {
    /// The shape of errors.
    const SHAPE: Shape;

    /// What a stream begins with.
    fn begin(&mut self) -> Vec<Event>;
    /// More of a stream.
    fn more(&mut self, update: &Update) -> Vec<Event>;
    /// How a stream ends; `more` has had the last update already.
    fn end(&mut self, end: &End) -> Vec<Event>;
    /// How a stream ends that failed.
    fn fail(&mut self, error: &ApiError) -> Vec<Event>;
    /// The answer as one document.
    fn whole(&mut self, end: &End, logprobs: &[Logprob]) -> Value;
}

/// Answer with what comes out of `updates`.
pub(crate) async fn respond<D: Dialect>(
    updates: mpsc::Receiver<Update>,
    mut dialect: D,
    stream: bool,
) -> Response {
    if !stream {
        return match collect(updates, &mut dialect).await {
            Ok(document) => Json(document).into_response(),
            Err(error) => error.response(D::SHAPE),
        };
    }
    let source = Source {
        ready: dialect.begin().into(),
        updates,
        dialect,
        over: false,
    };
    let events = stream::unfold(source, |mut source| async move {
        let event = source.next().await?;
        Some((Ok::<_, Infallible>(event), source))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("prefill"))
        .into_response()
}

async fn collect<D: Dialect>(
    mut updates: mpsc::Receiver<Update>,
    dialect: &mut D,
) -> Result<Value, ApiError> {
    let mut logprobs = Vec::new();
    while let Some(update) = updates.recv().await {
        logprobs.extend(update.logprobs);
        if let Some(end) = update.end {
            return match &end.ended {
                Ended::Failed(reason) | Ended::Grammar(reason) => {
                    Err(ApiError::Failed(reason.clone()))
                }
                _ => Ok(dialect.whole(&end, &logprobs)),
            };
        }
    }
    Err(ApiError::ShuttingDown)
}

struct Source<D> {
    ready: VecDeque<Event>,
    updates: mpsc::Receiver<Update>,
    dialect: D,
    over: bool,
}

impl<D: Dialect> Source<D> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let Some(update) = self.updates.recv().await else {
                self.over = true;
                self.ready
                    .extend(self.dialect.fail(&ApiError::ShuttingDown));
                continue;
            };
            self.ready.extend(self.dialect.more(&update));
            if let Some(end) = &update.end {
                self.over = true;
                self.ready.extend(match &end.ended {
                    Ended::Failed(reason) | Ended::Grammar(reason) => {
                        self.dialect.fail(&ApiError::Failed(reason.clone()))
                    }
                    _ => self.dialect.end(end),
                });
            }
        }
    }
}

/// An event whose data is `value`.
pub(crate) fn data(value: &Value) -> Event {
    Event::default().data(value.to_string())
}

/// An event with a name.
pub(crate) fn named(name: &str, value: &Value) -> Event {
    Event::default().event(name).data(value.to_string())
}

/// The calls of one answer and their ids, which only the server can have made up.
pub(crate) struct Calls {
    app: Shared,
    prefix: &'static str,
    ids: Vec<String>,
}

impl Calls {
    /// Ids will begin with `prefix`.
    pub(crate) fn new(app: &Shared, prefix: &'static str) -> Self {
        Self {
            app: app.clone(),
            prefix,
            ids: Vec::new(),
        }
    }

    /// The id of call `index`.
    pub(crate) fn id(&mut self, index: usize) -> String {
        while self.ids.len() <= index {
            self.ids.push(self.app.call_id(self.prefix));
        }
        self.ids[index].clone()
    }

    /// Remember what the model wrote for the calls, so that it can be put back when they return.
    pub(crate) fn keep(&self, end: &End) {
        if made_calls(&end.parsed) {
            self.app.remember(&self.ids, end);
        }
    }
}

/// Whether there are calls that can be trusted.
pub(crate) fn made_calls(parsed: &Parsed) -> bool {
    parsed.outcome == Outcome::Complete && !parsed.calls.is_empty()
}

/// What a client should know about calls that were not written as they should be. Empty for nearly every answer.
pub(crate) fn warnings(parsed: &Parsed) -> Vec<String> {
    let mut all = Vec::new();
    match &parsed.outcome {
        Outcome::Complete => {}
        Outcome::Incomplete { offset } => {
            all.push(format!(
                "the answer ended within a call, which began at byte {offset}"
            ));
        }
        Outcome::Malformed { offset, expected } => {
            all.push(format!(
                "a call is not understood: expected {expected} at byte {offset}"
            ));
        }
    }
    for repair in &parsed.repairs {
        all.push(match repair {
            Repair::ClosedWrapper => "the calls were not closed".to_owned(),
            Repair::MissingWrapper => "the calls were not opened".to_owned(),
            Repair::InvalidJson { index, parameter } => {
                format!("`{parameter}` of call {index} is no JSON and was passed on as text")
            }
            Repair::TextAfterCalls => "text after the calls was dropped".to_owned(),
            Repair::UnclosedThink => "the calls were made in reasoning that never ended".to_owned(),
        });
    }
    all
}
