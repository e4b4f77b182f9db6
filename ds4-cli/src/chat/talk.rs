//! Questions and answers: a dialogue, on a screen.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use ds4_model::serve::{Answer, Ended, Reading, Request, Update};
use ds4_model::tokenizer::Special;
use ds4_model::{Dialogue, Engine, Error, Tap, Token};

use super::args::Chat;
use super::screen::{Screen, Showing};
use crate::exit::Exit;
use crate::interrupt;
use crate::thinking::Thinking;

/// A conversation on a screen.
pub(super) struct Talk {
    pub(super) dialogue: Dialogue,
    pub(super) screen: Screen,
    /// What was asked for; the context may allow less.
    thinking: Thinking,
}

impl Talk {
    pub(super) fn new(engine: &Engine, args: &Chat, screen: Screen) -> Result<Self> {
        let mut dialogue = Dialogue::new(engine, args.system())?;
        dialogue.sampler = args.sampler(engine.tokenizer().vocab_len());
        dialogue.limit = args.tokens.get();
        let mut talk = Self {
            dialogue,
            screen,
            thinking: Thinking::On,
        };
        talk.think(args.thinking())?;
        Ok(talk)
    }

    /// Think so from now on, as far as the context allows.
    pub(super) fn think(&mut self, thinking: Thinking) -> Result<()> {
        self.thinking = thinking;
        let context = self.dialogue.engine().context();
        if let Some(line) = thinking.shortened(context) {
            self.screen.note(&line)?;
        }
        self.dialogue.render = thinking.within(context).render();
        Ok(())
    }

    /// How it thinks now.
    pub(super) fn thinking(&self) -> Thinking {
        self.thinking.within(self.dialogue.engine().context())
    }

    /// Another context for the same conversation.
    pub(super) fn set_context(&mut self, tokens: usize) -> Result<()> {
        let engine = self.dialogue.engine();
        let mut options = engine.options().clone();
        options.context = Some(tokens);
        let gguf = engine.weights().gguf().clone();
        let engine = Engine::from_gguf(gguf, options)?;
        self.dialogue.move_to(&engine)?;
        self.think(self.thinking)
    }

    /// Ask, and show the answer while it comes. An answer that Ctrl-C stops is no error.
    pub(super) fn answer(&mut self, question: &str) -> Result<()> {
        let prompt = self.dialogue.prompt(question)?.len();
        let mut showing = Showing::new(&mut self.screen, prompt);
        let mut failed = Ok(());
        let ended = self.dialogue.ask(question, &mut |update| {
            see(&mut showing, update, &mut failed)
        });
        failed?;
        match ended {
            Ok(end) => {
                showing.finish(end.usage)?;
                if end.ended == Ended::Length && !interrupt::is_set() {
                    self.screen
                        .note("[stopped at the limit of tokens or the end of the context]")?;
                }
                Ok(())
            }
            Err(Error::Stopped { done, total }) if interrupt::is_set() => {
                drop(showing);
                self.screen.note(&format!(
                    "[stopped after reading {done} of {total} tokens; the question is forgotten]"
                ))?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Show an update; whether to go on. A screen that is gone ends the answer.
fn see(
    showing: &mut Showing<'_>,
    update: &Update,
    failed: &mut std::io::Result<()>,
) -> ControlFlow<()> {
    if failed.is_ok() {
        *failed = showing.update(update);
    }
    if failed.is_err() {
        return ControlFlow::Break(());
    }
    interrupt::flow()
}

/// The tokens of a prompt that is given as it is: what it spells out of markers are markers, and nothing is added.
pub(super) fn raw_tokens(tokenizer: &ds4_model::Tokenizer, prompt: &str) -> Vec<Token> {
    tokenizer.encode(prompt, Special::All)
}

/// Continue a prompt that is given as it is.
pub(super) fn raw(
    engine: &Engine,
    args: &Chat,
    prompt: &str,
    screen: &mut Screen,
    tap: Option<Box<dyn Tap>>,
) -> Result<Exit> {
    let request = Request {
        prompt: raw_tokens(engine.tokenizer(), prompt),
        sampler: args.sampler(engine.tokenizer().vocab_len()),
        stop: engine.stops(),
        limit: args.tokens.get(),
        ..Request::new(Reading::Text)
    };
    let answer = Answer::new(engine, request)?;
    let mut session = engine.session()?;
    session.watch(tap);
    let mut showing = Showing::new(screen, answer.prompt().len());
    let mut failed = Ok(());
    let ended = answer.run(&mut session, &mut |update| {
        see(&mut showing, update, &mut failed)
    });
    failed?;
    let (end, _) = ended.context("no answer")?;
    showing.finish(end.usage)?;
    Ok(super::ended())
}
