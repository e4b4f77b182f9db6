//! What all routes share, and the way from a request to updates.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ds4_model::chat::{Conversation, ParseOptions, RenderOptions, Tool};
use ds4_model::grammar::{Grammar, Grammars};
use ds4_model::serve::{Answer, End, Reading, Replays, Request, Update};
use ds4_model::{Engine, Error, Message, Sampler, Token};
use serde_json::Value;
use tokio::sync::mpsc;

use super::args::Args;
use super::error::ApiError;
use super::metrics::Metrics;
use super::worker::Worker;

/// Bytes of call texts to remember.
const REPLAY_BYTES: usize = 512 << 20;

pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) args: Args,
    pub(crate) model: String,
    pub(crate) worker: Worker,
    pub(crate) metrics: Metrics,
    pub(crate) started: u64,
    replays: Mutex<Replays>,
    grammars: OnceLock<Grammars>,
    secret: RandomState,
    counter: AtomicU64,
}

/// A request as routes put it, before it becomes tokens.
pub(crate) struct Ask {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) render: RenderOptions,
    pub(crate) sampler: Sampler,
    pub(crate) limit: usize,
    pub(crate) stops: Vec<String>,
    pub(crate) logprobs: Option<usize>,
    pub(crate) grammar: Option<Grammar>,
    /// The field that a prompt which is too long is blamed on.
    pub(crate) field: &'static str,
}

pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn new(
        engine: Engine,
        args: Args,
        model: String,
        worker: Worker,
        metrics: Metrics,
    ) -> Self {
        Self {
            replays: Mutex::new(Replays::new(args.tool_memory_max_ids, REPLAY_BYTES)),
            started: now(),
            grammars: OnceLock::new(),
            secret: RandomState::new(),
            counter: AtomicU64::new(0),
            engine,
            args,
            model,
            worker,
            metrics,
        }
    }

    /// 64 bits that nobody outside can predict: a keyed hash with a key from the system.
    pub(crate) fn random(&self) -> u64 {
        self.secret
            .hash_one(self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// `prefix` and 24 hexadecimal digits.
    pub(crate) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:08x}", self.random(), self.random() as u32)
    }

    /// The id of a call: `prefix` and 32 hexadecimal digits that nobody can guess, since whoever knows one can have the
    /// text of the call put into a prompt.
    pub(crate) fn call_id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:016x}", self.random(), self.random())
    }

    fn replays(&self) -> std::sync::MutexGuard<'_, Replays> {
        self.replays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls of an answer are known as `ids`.
    pub(crate) fn remember(&self, ids: &[String], end: &End) {
        self.replays().remember(ids, end);
    }

    /// The grammar of a JSON schema, or of any object.
    pub(crate) fn grammar(&self, schema: Option<&Value>, field: &str) -> Result<Grammar, ApiError> {
        let grammars = match self.grammars.get() {
            Some(grammars) => grammars,
            None => {
                let made = Grammars::new(self.engine.tokenizer())
                    .map_err(|e| ApiError::Failed(e.to_string()))?;
                self.grammars.get_or_init(|| made)
            }
        };
        match schema {
            Some(schema) => grammars.json_schema(schema),
            None => grammars.json_object(),
        }
        .map_err(|e| ApiError::invalid(field, e.to_string()))
    }

    /// The prompt of a conversation.
    pub(crate) fn prompt(
        &self,
        mut messages: Vec<Message>,
        tools: Vec<Tool>,
        render: &RenderOptions,
        field: &str,
    ) -> Result<Vec<Token>, ApiError> {
        self.replays().put_back(&mut messages);
        self.engine
            .render_with(&Conversation { messages, tools }, render)
            .map_err(|e| ApiError::invalid(field, chain(&e)))
    }

    /// Ask in chat form; the updates, and how many tokens the prompt has.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<(mpsc::Receiver<Update>, usize), ApiError> {
        let parser = self.engine.chat().stream_parser(&ParseOptions {
            think: ask.render.think(),
            tools: ask.tools.clone(),
            evidence: true,
            ..ParseOptions::default()
        });
        let mut ends: Vec<Token> = self.engine.stops().tokens().to_vec();
        if !ask.render.think().is_on() {
            let marker = |text| self.engine.tokenizer().id_of(text);
            ends.extend(["<think>", "</think>"].into_iter().filter_map(marker));
        }
        let request = Request {
            prompt: self.prompt(ask.messages, ask.tools, &ask.render, ask.field)?,
            sampler: ask.sampler,
            stop: ds4_model::Stop::new(ends).with_strings(ask.stops),
            limit: ask.limit,
            reading: Reading::Chat(Box::new(parser)),
            logprobs: ask.logprobs,
            grammar: ask.grammar,
        };
        self.send(request, ask.field).await
    }

    /// Ask for anything; the updates, and how many tokens the prompt has.
    pub(crate) async fn send(
        &self,
        request: Request,
        field: &'static str,
    ) -> Result<(mpsc::Receiver<Update>, usize), ApiError> {
        let tokens = request.prompt.len();
        if tokens == 0 {
            return Err(ApiError::invalid(field, format!("`{field}` is empty")));
        }
        let answer = Answer::new(&self.engine, request).map_err(|error| match error {
            Error::Context { limit, .. } => ApiError::Context {
                tokens,
                context: limit,
                param: field,
            },
            other => ApiError::Failed(chain(&other)),
        })?;
        Ok((self.worker.ask(answer).await?, tokens))
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// An error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
