//! A model, opened and ready: weights, tokenizer, prepared plans, one executor.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ds4_gguf::{Gguf, OpenOptions};

use crate::arch::deepseek4;
use crate::chat::{ChatFormat, Conversation, Facts, Message, RenderOptions, ThinkMode};
use crate::config::Config;
use crate::error::Error;
use crate::exec::cpu::CpuExecutor;
use crate::exec::{Executor, PlanId, Token};
use crate::graph::{Graph, check, fuse};
use crate::options::Options;
use crate::session::Session;
use crate::snapshot::Fingerprint;
use crate::stop::Stop;
use crate::tokenizer::Tokenizer;
use crate::weights::{Model, Weights};

/// An opened model. Cheap to clone; clones share weights and executor. `Send + Sync`: a step holds the executor's lock.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) options: Options,
    pub(crate) context: usize,
    pub(crate) weights: Arc<Weights>,
    pub(crate) graph: Graph,
    pub(crate) fingerprint: Fingerprint,
    tokenizer: Tokenizer,
    chat: ChatFormat,
    executor: Mutex<Box<dyn Executor>>,
    decode: PlanId,
    prefill: PlanId,
    /// Plan with logits of every row; its arena is large, so it is made when first asked for.
    every_row: OnceLock<PlanId>,
}

impl Engine {
    /// Open a GGUF file of the DeepSeek-V4 architecture.
    ///
    /// # Errors
    /// [`Error`] names the file's problem: unreadable, wrong architecture, missing or unsupported tensors (all of them),
    /// unusable tokenizer.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let open = OpenOptions {
            rocmfp2_layout: options.rocmfp2_layout,
            ..OpenOptions::default()
        };
        Self::from_gguf(Gguf::open_with(path, &open)?, options)
    }

    /// As [`Engine::open`], over a file already opened.
    ///
    /// # Errors
    /// As for [`Engine::open`].
    pub fn from_gguf(gguf: Gguf, options: Options) -> Result<Self, Error> {
        let Recorded {
            config,
            options,
            context,
            weights,
            graph,
        } = Recorded::of(&gguf, options)?;
        let tokenizer = Tokenizer::from_gguf(&gguf)?;
        let chat = ChatFormat::for_model(&Facts::from_gguf(&gguf), &tokenizer)?;

        let weights = Arc::new(weights);
        let mut executor =
            CpuExecutor::new(Arc::clone(&weights), options.threads, options.precision)?;
        let decode = executor.prepare(&graph, 1, false)?;
        let prefill = executor.prepare(&graph, options.prefill_rows, false)?;
        let fingerprint = Fingerprint::of(&gguf, &config, &graph, options.rounding);
        let shared = Shared {
            config,
            options,
            context,
            weights,
            graph,
            fingerprint,
            tokenizer,
            chat,
            executor: Mutex::new(Box::new(executor)),
            decode,
            prefill,
            every_row: OnceLock::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// A new, empty timeline.
    ///
    /// # Errors
    /// [`Error::Exec`] when its memory cannot be had.
    pub fn session(&self) -> Result<Session, Error> {
        Session::new(self.clone())
    }

    /// The prompt of a conversation without tools and without thinking, ready for [`Session::sync`].
    ///
    /// # Errors
    /// [`Error::Chat`] when there are no messages, or when a call's arguments or a schema are no JSON. Any order of
    /// messages is rendered.
    pub fn render(&self, messages: &[Message]) -> Result<Vec<Token>, Error> {
        let conversation = Conversation {
            messages: messages.to_vec(),
            ..Conversation::default()
        };
        let options = RenderOptions {
            think: ThinkMode::Off,
            ..RenderOptions::default()
        };
        self.render_with(&conversation, &options)
    }

    /// The prompt of any conversation.
    ///
    /// # Errors
    /// [`Error::Chat`] when the conversation cannot be rendered.
    pub fn render_with(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
    ) -> Result<Vec<Token>, Error> {
        let segments = self.shared.chat.render(conversation, options)?;
        Ok(self.shared.tokenizer.encode_segments(&segments))
    }

    /// The tokens that end an answer.
    pub fn stops(&self) -> Stop {
        Stop::new(self.shared.tokenizer.stop_tokens().iter().copied())
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// How conversations become prompts.
    pub fn chat(&self) -> &ChatFormat {
        &self.shared.chat
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Longest timeline of a session, in tokens.
    pub fn context(&self) -> usize {
        self.shared.context
    }

    /// The recorded graph, as it is run.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// The weights behind the graph.
    pub fn weights(&self) -> &Weights {
        &self.shared.weights
    }

    /// The options in force.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// All that is known of a model before anything is allocated for running it.
pub(crate) struct Recorded {
    pub(crate) config: Config,
    /// As asked for; no step has more rows than the context.
    pub(crate) options: Options,
    pub(crate) context: usize,
    pub(crate) weights: Weights,
    pub(crate) graph: Graph,
}

impl Recorded {
    /// Check options and tensors, record the graph.
    pub(crate) fn of(gguf: &Gguf, options: Options) -> Result<Self, Error> {
        let config = Config::from_gguf(gguf)?;
        let context = options
            .context
            .unwrap_or(config.context)
            .min(config.context);
        let positive = |option, found| match found {
            0 => Err(Error::Option {
                option,
                found,
                expected: "at least 1",
            }),
            _ => Ok(()),
        };
        positive("context", context)?;
        positive("prefill_rows", options.prefill_rows)?;
        let (model, weights) = Model::load(gguf, &config)?;

        let recorded = deepseek4::record(&config, &model, &weights, options.rounding);
        check(&recorded, &weights)?;
        let graph = if options.fuse {
            fuse(recorded)
        } else {
            recorded
        };
        check(&graph, &weights)?;
        let options = Options {
            prefill_rows: options.prefill_rows.min(context),
            ..options
        };
        Ok(Self {
            config,
            options,
            context,
            weights,
            graph,
        })
    }
}

impl Shared {
    /// The executor, for one step. A panic in another session's step leaves only that session's state in doubt.
    pub(crate) fn executor(&self) -> MutexGuard<'_, Box<dyn Executor>> {
        self.executor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan for a step.
    pub(crate) fn plan(
        &self,
        executor: &mut Box<dyn Executor>,
        rows: usize,
        every_row: bool,
    ) -> Result<PlanId, Error> {
        if rows == 1 {
            return Ok(self.decode);
        }
        if !every_row {
            return Ok(self.prefill);
        }
        if let Some(&plan) = self.every_row.get() {
            return Ok(plan);
        }
        let plan = executor.prepare(&self.graph, self.options.prefill_rows, true)?;
        Ok(*self.every_row.get_or_init(|| plan))
    }
}
