//! A conversation that is saved, taken up again, or made shorter.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use ds4_model::chat::{Conversation, Role};
use ds4_model::inspect::human_bytes;
use ds4_model::serve::Ended;
use ds4_model::{Message, Saved};
use serde_json::json;

use super::transcript::now;
use super::turn::Agent;
use crate::interrupt;

/// Characters of a title that is the first task.
const TITLE: usize = 60;

/// What is asked for a summary, and what stands for all that was said.
const SUMMARIZE: &str = "Summarize our conversation for yourself: the task, what was found and changed, with the names of files, and \
    what is left to do. Only this summary will be there when we go on. Make no call.";
const BEFORE: &str = "What has happened so far?";

/// The name under which a conversation is saved.
pub(super) struct Kept {
    pub(super) id: String,
    title: String,
}

impl Agent {
    /// Save under the name that it has or a new one; an empty `title` leaves the old one.
    pub(super) fn save(&mut self, title: &str) -> Result<()> {
        if !self
            .conversation
            .messages
            .iter()
            .any(|m| m.role == Role::User)
        {
            bail!("nothing was said yet");
        }
        let (id, old) = match &self.kept {
            Some(kept) => (kept.id.clone(), kept.title.clone()),
            None => (self.sessions.new_id(), self.first_words()),
        };
        let title = if title.is_empty() {
            old
        } else {
            title.to_owned()
        };
        self.kept = Some(Kept { id, title });
        self.keep()
    }

    /// Save what was saved before; nothing else.
    pub(super) fn keep(&mut self) -> Result<()> {
        let Some(Kept { id, title }) = &self.kept else {
            return Ok(());
        };
        let saved = Saved {
            title: title.clone(),
            time: now(),
            drawn: self.sampler.used,
            conversation: self.conversation.clone(),
        };
        let bytes = self.sessions.save(id, &saved, &self.session)?;
        writeln!(
            io::stderr(),
            "saved as {id}, {}: {}",
            human_bytes(bytes),
            super::person::plain(title)
        )?;
        Ok(())
    }

    /// Go on with a saved conversation. The one at hand is gone then, and stays when this fails.
    pub(super) fn resume(&mut self, id: &str) -> Result<()> {
        let mut out = io::stderr();
        let engine = self.session.engine().clone();
        let (saved, mut timeline) = self.sessions.open(id, &engine)?;
        if let Err(error) = self.session.load(&mut timeline) {
            let error = anyhow::Error::from(error);
            writeln!(out, "(the conversation is read anew: {error:#})")?;
        } else if saved.conversation.tools != self.toolbox.tools() {
            writeln!(
                out,
                "(the conversation is read anew: the tools are others now)"
            )?;
        }
        let messages = saved.conversation.messages;
        self.calls = messages.iter().map(|m| m.tool_calls.len()).sum();
        self.sampler.used = saved.drawn;
        self.conversation = Conversation {
            messages,
            tools: self.toolbox.tools().to_vec(),
        };
        self.kept = Some(Kept {
            id: id.to_owned(),
            title: saved.title,
        });
        self.transcript.add("resume", &json!({ "session": id }))?;
        writeln!(out, "{}", self.status())?;
        Ok(())
    }

    /// The conversation in a line.
    pub(super) fn status(&self) -> String {
        let name = match &self.kept {
            Some(kept) => format!("{}: {}", kept.id, super::person::plain(&kept.title)),
            None => "not saved".to_owned(),
        };
        format!(
            "{name}; {} messages, {} tokens known of {}",
            self.conversation.messages.len(),
            self.session.tokens().len(),
            self.session.engine().context()
        )
    }

    /// Let the model say in few words what happened, and go on with those. Nothing changes when it does not.
    pub(super) fn compact(&mut self) -> Result<()> {
        if !self
            .conversation
            .messages
            .iter()
            .any(|m| m.role == Role::User)
        {
            bail!("nothing was said yet");
        }
        self.conversation.messages.push(Message::user(SUMMARIZE));
        let end = self.answer();
        self.conversation.messages.pop();
        let end = end.context("no summary")?;
        let summary = end.parsed.content.trim();
        if interrupt::take() || end.ended != Ended::Stop {
            bail!("the summary did not come to its end; nothing has changed");
        }
        if !end.parsed.calls.is_empty() || summary.is_empty() {
            bail!("the model made no summary; nothing has changed");
        }
        let before = self.conversation.messages.len();
        let summary = Message::assistant(summary);
        self.forget_all_but_instructions();
        self.transcript
            .add("compact", &json!({ "messages": before }))?;
        self.say(Message::user(BEFORE))?;
        self.say(summary)?;
        writeln!(io::stderr(), "{before} messages became a summary")?;
        Ok(())
    }

    fn first_words(&self) -> String {
        let mut messages = self.conversation.messages.iter();
        let first = messages.find(|m| m.role == Role::User);
        let words = first.map_or("", |m| m.content.as_str());
        let words: Vec<&str> = words.split_whitespace().collect();
        words.join(" ").chars().take(TITLE).collect()
    }
}
