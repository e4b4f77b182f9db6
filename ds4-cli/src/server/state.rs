//! What all routes share, and the way from a request to updates.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ds4_model::chat::{Conversation, ParseOptions, RenderOptions, Role, ThinkMode, Tool};
use ds4_model::grammar::{Grammar, Grammars};
use ds4_model::serve::{Answer, End, Reading, Replays, Request, Update};
use ds4_model::{Engine, Error, Message, Sampler, Token, with_causes};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::args::Args;
use super::error::ApiError;
use super::metrics::Metrics;
use super::worker::Worker;

/// Bytes of call texts to remember.
const REPLAY_BYTES: usize = 512 << 20;

/// Requests that are read at a time; others wait. One could read for seconds, and answers must go on meanwhile.
const READERS: usize = 2;

/// Largest bodies that are held at a time, or as many more smaller ones; others wait.
const BODIES: usize = 4;

pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) args: Args,
    pub(crate) model: String,
    pub(crate) worker: Worker,
    pub(crate) metrics: Metrics,
    pub(crate) started: u64,
    replays: Mutex<Replays>,
    grammars: OnceLock<Grammars>,
    longest: OnceLock<usize>,
    readers: Arc<Semaphore>,
    /// KiB that bodies may still take.
    room: Arc<Semaphore>,
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
    pub(crate) form: Option<Form>,
    /// The field that a prompt which is too long is blamed on.
    pub(crate) field: &'static str,
}

/// What an answer must look like: any JSON object, or one by a schema.
pub(crate) struct Form {
    pub(crate) schema: Option<Value>,
    /// The field that a schema which is wrong is blamed on.
    pub(crate) field: &'static str,
}

/// A request that is read.
pub(crate) struct Ready<D> {
    pub(crate) request: Request,
    pub(crate) dialect: D,
    pub(crate) stream: bool,
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
        let remembered = if args.disable_exact_dsml_tool_replay {
            0
        } else {
            args.tool_memory_max_ids
        };
        Self {
            replays: Mutex::new(Replays::new(remembered, REPLAY_BYTES)),
            started: now(),
            grammars: OnceLock::new(),
            longest: OnceLock::new(),
            readers: Arc::new(Semaphore::new(READERS)),
            room: Arc::new(Semaphore::new(BODIES * ((args.max_body_mb as usize) << 10))),
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
    fn grammar(&self, form: &Form) -> Result<Grammar, ApiError> {
        let grammars = match self.grammars.get() {
            Some(grammars) => grammars,
            None => {
                let made = Grammars::new(self.engine.tokenizer())
                    .map_err(|e| ApiError::Failed(e.to_string()))?;
                self.grammars.get_or_init(|| made)
            }
        };
        match &form.schema {
            Some(schema) => grammars.json_schema(schema),
            None => grammars.json_object(),
        }
        .map_err(|e| ApiError::invalid(form.field, e.to_string()))
    }

    /// Wait for room for a body of so many bytes, which is held until the permit is dropped.
    pub(crate) async fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).acquire_many_owned(kib).await;
        permit.map_err(|_| ApiError::ShuttingDown)
    }

    /// Do `work`, which takes long, where it stops nothing else.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Shared) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        let permit = permit.map_err(|_| ApiError::ShuttingDown)?;
        let app = Arc::clone(self);
        // The permit goes along: who leaves does not stop the work.
        let work = tokio::task::spawn_blocking(move || {
            let done = work(&app);
            drop(permit);
            done
        });
        match work.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => Err(ApiError::bug(&*error.into_panic())),
            Err(_) => Err(ApiError::ShuttingDown),
        }
    }

    /// Refuse a text of so many bytes when it cannot fit, whatever its tokens are: making tokens takes longer than this.
    pub(crate) fn can_fit(&self, bytes: usize, param: &'static str) -> Result<(), ApiError> {
        let tokenizer = self.engine.tokenizer();
        let longest = *self.longest.get_or_init(|| {
            let ids = 0..tokenizer.vocab_len() as Token;
            ids.map(|id| tokenizer.token_bytes(id).len())
                .max()
                .unwrap_or(1)
                .max(1)
        });
        let context = self.engine.context();
        if bytes > context.saturating_mul(longest) {
            return Err(ApiError::Bytes {
                bytes,
                context,
                param,
            });
        }
        Ok(())
    }

    /// The prompt of a conversation.
    pub(crate) fn prompt(
        &self,
        mut messages: Vec<Message>,
        tools: Vec<Tool>,
        render: &RenderOptions,
        field: &'static str,
    ) -> Result<Vec<Token>, ApiError> {
        if let Some(last) = messages.last_mut().filter(|m| m.role == Role::Assistant) {
            if !last.tool_calls.is_empty() {
                let what = format!("`{field}` ends in calls, expected their results");
                return Err(ApiError::invalid(field, what));
            }
            last.partial = true;
        }
        // Before it is copied into a prompt.
        let said = messages.iter().map(|m| m.content.len());
        self.can_fit(said.sum(), field)?;
        self.replays().put_back(&mut messages);
        let text = self
            .engine
            .chat()
            .render(&Conversation { messages, tools }, render)
            .map_err(|e| ApiError::invalid(field, with_causes(&e)))?;
        self.can_fit(text.as_str().len(), field)?;
        Ok(self.engine.tokenizer().encode_segments(&text))
    }

    /// What is asked for in chat form.
    pub(crate) fn request(&self, ask: Ask) -> Result<Request, ApiError> {
        // After the beginning of an answer nothing is thought any more.
        let think = if continues(&ask.messages) {
            ThinkMode::Off
        } else {
            ask.render.think()
        };
        let parser = self.engine.chat().stream_parser(&ParseOptions {
            think,
            tools: ask.tools.clone(),
            evidence: true,
            ..ParseOptions::default()
        });
        let mut ends: Vec<Token> = self.engine.stops().tokens().to_vec();
        if !think.is_on() {
            let marker = |text| self.engine.tokenizer().id_of(text);
            ends.extend(["<think>", "</think>"].into_iter().filter_map(marker));
        }
        let prompt = self.prompt(ask.messages, ask.tools, &ask.render, ask.field)?;
        self.fits(prompt.len(), ask.field)?;
        Ok(Request {
            prompt,
            sampler: ask.sampler,
            stop: ds4_model::Stop::new(ends).with_strings(ask.stops),
            limit: ask.limit,
            reading: Reading::Chat(Box::new(parser)),
            logprobs: ask.logprobs,
            grammar: ask.form.map(|form| self.grammar(&form)).transpose()?,
        })
    }

    /// Refuse a prompt of so many tokens that leaves no room for an answer.
    pub(crate) fn fits(&self, tokens: usize, param: &'static str) -> Result<(), ApiError> {
        let context = self.engine.context();
        if tokens >= context {
            return Err(ApiError::Context {
                tokens,
                context,
                param,
            });
        }
        Ok(())
    }

    /// Ask; the updates.
    pub(crate) async fn send(
        &self,
        request: Request,
        field: &'static str,
    ) -> Result<mpsc::Receiver<Update>, ApiError> {
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
            other => ApiError::Failed(with_causes(&other)),
        })?;
        self.worker.ask(answer).await
    }
}

/// Whether the conversation ends in the beginning of an answer, which is to be continued.
fn continues(messages: &[Message]) -> bool {
    messages.last().is_some_and(|m| m.role == Role::Assistant)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// An app with the demo model, for tests of what is written.
#[cfg(test)]
pub(crate) fn demo() -> Shared {
    use clap::Parser;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
    let args = Args::parse_from(["ds4-server", "-m", file]);
    let engine = Engine::open(file, ds4_model::Options::default()).unwrap();
    let settings = ds4_model::serve::Settings::default();
    let own = engine.clone();
    let make = move || {
        Ok(ds4_model::serve::Scheduler::new(
            own.clone(),
            settings,
            None,
        )?)
    };
    let metrics = Metrics::new();
    let (worker, _) = Worker::start(make, metrics.clone(), None).unwrap();
    Arc::new(App::new(engine, args, "demo".to_owned(), worker, metrics))
}
