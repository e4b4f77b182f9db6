//! One task: the model answers, its calls are made, their results are read, until it answers without a call.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail, ensure};
use ds4_model::chat::{Conversation, Delta, Outcome, ParseOptions, RenderOptions, Role};
use ds4_model::serve::{Answer, End, Ended, Reading, Request};
use ds4_model::{Message, Sampler, Session};
use serde_json::json;

use super::keep::Kept;
use super::person::{Person, Verdict, plain};
use super::sessions::Sessions;
use super::tools::Toolbox;
use super::transcript::Transcript;
use crate::interrupt;

/// What a model reads when a call was not allowed.
const REFUSED: &str = "error: the user does not allow this call";

/// A conversation with its tools and its timeline.
pub(super) struct Agent {
    pub(super) session: Session,
    pub(super) conversation: Conversation,
    pub(super) toolbox: Toolbox,
    pub(super) transcript: Transcript,
    pub(super) person: Person,
    pub(super) render: RenderOptions,
    pub(super) sampler: Sampler,
    pub(super) tokens: usize,
    pub(super) max_steps: usize,
    /// Calls made so far: their ids.
    pub(super) calls: usize,
    pub(super) sessions: Sessions,
    /// The name that the conversation is saved under, once it is.
    pub(super) kept: Option<Kept>,
}

impl Agent {
    /// Begin anew, with the instructions alone.
    pub(super) fn forget(&mut self) -> Result<()> {
        self.forget_all_but_instructions();
        self.kept = None;
        self.transcript.add("new", &json!({}))
    }

    pub(super) fn forget_all_but_instructions(&mut self) {
        let messages = &mut self.conversation.messages;
        messages.retain(|m| m.role == Role::System);
    }

    /// Do a task.
    pub(super) fn task(&mut self, text: &str) -> Result<()> {
        self.say(Message::user(text))?;
        for _ in 0..self.max_steps {
            let end = self.answer()?;
            if let Ended::Failed(reason) = &end.ended {
                bail!("the answer failed: {reason}");
            }
            let stopped = interrupt::take();
            let calls = self.heard(&end)?;
            if stopped {
                writeln!(io::stderr(), "(stopped)")?;
                return Ok(());
            }
            if end.ended == Ended::Length {
                writeln!(
                    io::stderr(),
                    "(cut off by the limit of tokens or the context)"
                )?;
            }
            if let Outcome::Malformed { expected, .. } = end.parsed.outcome {
                writeln!(
                    io::stderr(),
                    "(a call is not understood: expected {expected})"
                )?;
            }
            if calls.is_empty() {
                return Ok(());
            }
            for (id, name, arguments) in calls {
                let result = match self.person.allows(&name, &arguments)? {
                    Verdict::Yes => self.toolbox.call(&name, &arguments),
                    Verdict::No => REFUSED.to_owned(),
                };
                self.say(Message::tool(id, result))?;
            }
            if interrupt::take() {
                writeln!(io::stderr(), "(stopped)")?;
                return Ok(());
            }
        }
        writeln!(
            io::stderr(),
            "(stopped after {} answers with calls)",
            self.max_steps
        )?;
        Ok(())
    }

    /// Add a message to the conversation.
    pub(super) fn say(&mut self, message: Message) -> Result<()> {
        let json = serde_json::to_value(&message).context("a message")?;
        self.transcript.add("message", &json)?;
        self.conversation.messages.push(message);
        Ok(())
    }

    /// Add an answer to the conversation; its calls, with ids.
    fn heard(&mut self, end: &End) -> Result<Vec<(String, String, String)>> {
        let mut message = Message::assistant(end.parsed.content.clone());
        message.reasoning.clone_from(&end.parsed.reasoning);
        message.tool_calls.clone_from(&end.parsed.calls);
        for call in &mut message.tool_calls {
            self.calls += 1;
            call.id = Some(format!("call_{}", self.calls));
        }
        // Put back as it was drawn, its tokens are those of the timeline.
        if end.ended == Ended::Stop {
            message.replay = Some(end.replay.clone());
        }
        let calls = message.tool_calls.iter();
        let calls = calls
            .map(|c| {
                (
                    c.id.clone().unwrap_or_default(),
                    c.name.clone(),
                    c.arguments.clone(),
                )
            })
            .collect();
        self.say(message)?;
        Ok(calls)
    }

    /// Let the model answer, and show it while it does: content on standard output, reasoning to people alone.
    pub(super) fn answer(&mut self) -> Result<End> {
        let engine = self.session.engine().clone();
        let parser = engine.chat().stream_parser(&ParseOptions {
            think: self.render.think(),
            tools: self.conversation.tools.clone(),
            evidence: true,
            ..ParseOptions::default()
        });
        let request = Request {
            prompt: engine.render_with(&self.conversation, &self.render)?,
            sampler: self.sampler.clone(),
            stop: engine.stops(),
            limit: self.tokens,
            reading: Reading::Chat(Box::new(parser)),
            logprobs: None,
            grammar: None,
        };
        ensure!(!request.prompt.is_empty(), "the conversation is empty");
        let prompt = request.prompt.len();
        let mut answer = Answer::new(&engine, request)?;
        let rows = engine.options().prefill_rows;
        let mut shown = Shown::new();
        loop {
            if interrupt::is_set() && answer.is_decoding() {
                // As much as there is becomes part of the conversation.
                if let Some(end) = answer.cut_short().end {
                    return shown.end(end);
                }
            }
            if interrupt::take() {
                bail!("stopped while {prompt} tokens were read");
            }
            let update = answer.turn(&mut self.session, rows);
            for delta in &update.deltas {
                shown.add(delta)?;
            }
            if let Some(end) = update.end {
                // Other tokens are drawn in the next answer.
                self.sampler.used += end.usage.completion as u64;
                return shown.end(end);
            }
        }
    }
}

/// What of an answer is out.
struct Shown {
    people: bool,
    content: bool,
    reasoning: bool,
}

impl Shown {
    fn new() -> Self {
        Self {
            people: io::stderr().is_terminal(),
            content: false,
            reasoning: false,
        }
    }

    fn add(&mut self, delta: &Delta) -> Result<()> {
        match delta {
            Delta::Content(text) => {
                if std::mem::take(&mut self.reasoning) {
                    writeln!(io::stderr())?;
                }
                let mut out = io::stdout().lock();
                if out.is_terminal() {
                    out.write_all(plain(text).as_bytes())?;
                } else {
                    out.write_all(text.as_bytes())?;
                }
                out.flush()?;
                self.content |= !text.is_empty();
            }
            Delta::Reasoning(text) if self.people => {
                let mut out = io::stderr().lock();
                out.write_all(plain(text).as_bytes())?;
                out.flush()?;
                self.reasoning |= !text.is_empty();
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self, end: End) -> Result<End> {
        if self.reasoning {
            writeln!(io::stderr())?;
        }
        if self.content {
            writeln!(io::stdout())?;
        }
        Ok(end)
    }
}
