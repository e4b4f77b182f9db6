//! A conversation: question after question on one timeline, each prompt going on from what is there.

use std::ops::ControlFlow;

use crate::chat::{Conversation, Message, ParseOptions, RenderOptions};
use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Tap;
use crate::sample::Sampler;
use crate::serve::{Answer, End, Reading, Request, Update};
use crate::session::Session;
use crate::stop::Stop;
use crate::tokenizer::Token;

/// Where an answer stops thinking.
const THINK_END: &str = "</think>";

/// Messages, and the session that has read them. What a question costs is what is new in its prompt.
///
/// ```
/// use std::ops::ControlFlow;
/// use ds4_model::{Dialogue, Engine, Options};
/// use ds4_model::chat::ThinkMode;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
/// let engine = Engine::open(path, Options::default())?;
/// let mut dialogue = Dialogue::new(&engine, None)?;
/// dialogue.render.think = ThinkMode::Off;
/// let mut text = String::new();
/// let end = dialogue.ask("What is the capital of France?", &mut |update| {
///     for delta in &update.deltas {
///         if let ds4_model::chat::Delta::Content(part) = delta {
///             text += part;
///         }
///     }
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(text, "The capital of France is Paris.");
/// assert_eq!(end.parsed.content, text);
/// assert_eq!(dialogue.messages().len(), 2);
/// # Ok::<(), ds4_model::Error>(())
/// ```
pub struct Dialogue {
    session: Session,
    system: Option<Message>,
    messages: Vec<Message>,
    /// How prompts are written: thinking, its effort.
    pub render: RenderOptions,
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// Most tokens of an answer.
    pub limit: usize,
}

impl Dialogue {
    /// An empty conversation, under the instructions of `system` if there are any. Thinking is on, the likeliest token is
    /// taken, answers are as long as the context allows.
    ///
    /// # Errors
    /// As for [`Engine::session`].
    pub fn new(engine: &Engine, system: Option<&str>) -> Result<Self, Error> {
        Ok(Self {
            session: engine.session()?,
            system: system.map(Message::system),
            messages: Vec::new(),
            render: RenderOptions::default(),
            sampler: Sampler::default(),
            limit: usize::MAX,
        })
    }

    /// The engine that answers.
    pub fn engine(&self) -> &Engine {
        self.session.engine()
    }

    /// Tokens that the session holds.
    pub fn tokens(&self) -> usize {
        self.session.tokens().len()
    }

    /// Let `tap` see every step from now on: [`Session::watch`].
    pub fn watch(&mut self, tap: Option<Box<dyn Tap>>) -> Option<Box<dyn Tap>> {
        self.session.watch(tap)
    }

    /// What was said so far, the instructions not included.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Forget everything but the instructions.
    pub fn reset(&mut self) {
        self.messages.clear();
    }

    /// Go on with another engine of the same model, such as one with a longer context. The next question has all of
    /// the conversation read again.
    ///
    /// # Errors
    /// As for [`Engine::session`]; nothing changes then.
    pub fn move_to(&mut self, engine: &Engine) -> Result<(), Error> {
        let mut session = engine.session()?;
        session.watch(self.session.watch(None));
        self.session = session;
        Ok(())
    }

    /// The prompt that asks `question` next.
    ///
    /// # Errors
    /// [`Error::Chat`].
    pub fn prompt(&self, question: &str) -> Result<Vec<Token>, Error> {
        let question = Message::user(question);
        let messages = self.system.iter().chain(&self.messages).chain([&question]);
        let conversation = Conversation::from(messages.cloned().collect::<Vec<_>>());
        self.engine().render_with(&conversation, &self.render)
    }

    /// Ask, and remember question and answer. `on` sees every update as it comes and may stop the answer: what is there by
    /// then is remembered, as an answer at its limit.
    ///
    /// # Errors
    /// [`Error::Context`] when the conversation has no room for an answer, [`Error::Stopped`] when `on` breaks off before
    /// a token is drawn, [`Error::Chat`], [`Error::Exec`]. The question was not asked then.
    pub fn ask(
        &mut self,
        question: impl Into<String>,
        on: &mut dyn FnMut(&Update) -> ControlFlow<()>,
    ) -> Result<End, Error> {
        let question = question.into();
        let engine = self.engine().clone();
        let think = self.render.think();
        let parser = engine.chat().stream_parser(&ParseOptions {
            think,
            evidence: true,
            ..ParseOptions::default()
        });
        let mut ends = engine.stops().tokens().to_vec();
        if !think.is_on() {
            // A model that was told to answer at once and thinks nevertheless has nothing more to say.
            let marker = |text| engine.tokenizer().id_of(text);
            ends.extend(["<think>", THINK_END].into_iter().filter_map(marker));
        }
        let request = Request {
            prompt: self.prompt(&question)?,
            sampler: self.sampler.clone(),
            stop: Stop::new(ends),
            limit: self.limit,
            ..Request::new(Reading::Chat(Box::new(parser)))
        };
        let (end, sampler) = Answer::new(&engine, request)?.run(&mut self.session, on)?;
        self.sampler = sampler;
        self.messages.push(Message::user(question));
        self.messages.push(remembered(
            &end,
            !think.is_on() || end.text.contains(THINK_END),
        ));
        Ok(end)
    }
}

/// The model's own text goes back into the next prompt as it was, so that its tokens need not be computed again; but not
/// when it was cut off while it thought, since it would be taken for what was said.
fn remembered(end: &End, whole: bool) -> Message {
    Message {
        reasoning: end.parsed.reasoning.clone(),
        replay: whole.then(|| end.replay.clone()),
        ..Message::assistant(end.parsed.content.clone())
    }
}
