//! From updates to a response: a JSON document, or server-sent events as they come. How an answer is written is a
//! [`Dialect`]'s business.

use std::any::Any;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use axum::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use ds4_model::chat::{Outcome, Parsed, Repair};
use ds4_model::serve::{End, Ended, Logprob, Update};
use futures_util::{FutureExt, stream};
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
        let next = AssertUnwindSafe(source.next()).catch_unwind().await;
        let event = next.unwrap_or_else(|panic| Some(source.broken(&*panic)))?;
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

impl<D: Dialect> Source<D> {
    /// What a stream ends with when writing it met a bug.
    fn broken(&mut self, panic: &(dyn Any + Send)) -> Event {
        let error = ApiError::bug(panic);
        self.over = true;
        self.ready.clear();
        // The engine need not go on.
        self.updates.close();
        let words = catch_unwind(AssertUnwindSafe(|| self.dialect.fail(&error)));
        self.ready.extend(words.unwrap_or_default());
        let plain = || named("error", &error.body(D::SHAPE));
        self.ready.pop_front().unwrap_or_else(plain)
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use ds4_model::chat::Delta;
    use serde_json::json;

    /// A dialect that meets a bug at the second update, and if `twice` when it says so too.
    struct Faulty {
        seen: usize,
        twice: bool,
    }

    impl Dialect for Faulty {
        const SHAPE: Shape = Shape::OpenAi;

        fn begin(&mut self) -> Vec<Event> {
            vec![data(&json!("begun"))]
        }

        fn more(&mut self, _: &Update) -> Vec<Event> {
            self.seen += 1;
            assert!(self.seen < 2, "a fault of the test");
            vec![data(&json!("more"))]
        }

        fn end(&mut self, _: &End) -> Vec<Event> {
            vec![data(&json!("ended"))]
        }

        fn fail(&mut self, error: &ApiError) -> Vec<Event> {
            assert!(!self.twice, "a fault of the test");
            vec![named("failed", &json!(error.to_string()))]
        }

        fn whole(&mut self, _: &End, _: &[Logprob]) -> Value {
            Value::Null
        }
    }

    #[test]
    fn a_panic_in_a_stream_is_its_last_event() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for (twice, word) in [(false, "event: failed"), (true, "event: error")] {
            let (engine, updates) = mpsc::channel(8);
            for _ in 0..3 {
                let update = Update {
                    deltas: vec![Delta::Content("x".to_owned())],
                    ..Update::default()
                };
                engine.try_send(update).unwrap();
            }
            let text = runtime.block_on(async {
                let faulty = Faulty { seen: 0, twice };
                let response = respond(updates, faulty, true).await;
                let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
                String::from_utf8(bytes.to_vec()).unwrap()
            });
            let parts: Vec<&str> = text.trim().split("\n\n").collect();
            assert_eq!(parts.len(), 3, "{text}");
            assert_eq!(&parts[..2], ["data: \"begun\"", "data: \"more\""]);
            assert!(parts[2].starts_with(word), "{text}");
            assert!(parts[2].contains("a bug in the server"), "{text}");
            assert!(engine.is_closed(), "the engine goes on");
        }
    }
}
