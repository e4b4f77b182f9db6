//! A conversation line by line.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;

use super::about;
use super::command::{HELP, Line, parse};
use super::talk::{Talk, Thinking};
use crate::{env, interrupt};

/// Prompts that are kept.
const KEPT: usize = 512;

/// What a person does at the prompt.
pub(super) enum Input {
    Line(String),
    Interrupt,
    End,
}

/// With a terminal: an editor with history, which takes what is pasted as one question.
pub(super) fn on_terminal(mut talk: Talk) -> Result<()> {
    let config = Config::builder()
        .max_history_size(KEPT)?
        .history_ignore_dups(true)?
        .bracketed_paste(true)
        .build();
    let mut editor = rustyline::Editor::<(), FileHistory>::with_config(config)?;
    let history = env::history();
    if let Some(file) = history.as_ref().filter(|file| file.exists())
        && let Err(error) = editor.load_history(file)
    {
        talk.screen
            .note(&format!("no earlier prompts: {}: {error}", file.display()))?;
    }
    talk.screen.note("/help lists commands")?;
    converse(&mut talk, &mut |talk| {
        let line = match editor.readline("ds4> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Input::Interrupt),
            Err(ReadlineError::Eof) => return Ok(Input::End),
            Err(error) => return Err(error.into()),
        };
        if !line.trim().is_empty() {
            editor.add_history_entry(line.trim())?;
            if let Some(file) = &history
                && let Err(error) = editor.append_history(file)
            {
                talk.screen
                    .note(&format!("prompt not kept: {}: {error}", file.display()))?;
            }
        }
        Ok(Input::Line(line))
    })
}

/// Answer what `read` brings until it ends. What goes wrong with one line is said, and the conversation goes on.
pub(super) fn converse(
    talk: &mut Talk,
    read: &mut dyn FnMut(&mut Talk) -> Result<Input>,
) -> Result<()> {
    // Whether the last thing that happened was an interruption.
    let mut interrupted = false;
    loop {
        let line = match read(talk)? {
            Input::End => return Ok(()),
            Input::Interrupt if interrupted => return Ok(()),
            Input::Interrupt => {
                interrupted = true;
                talk.screen.note("Ctrl-C again leaves")?;
                continue;
            }
            Input::Line(line) => line,
        };
        interrupt::clear();
        match parse(&line) {
            Ok(Line::Quit) => return Ok(()),
            Ok(line) => {
                if let Err(error) = carry_out(talk, &line) {
                    talk.screen.note(&format!("error: {error:#}"))?;
                }
            }
            Err(why) => talk.screen.note(&why)?,
        }
        interrupted = interrupt::is_set();
        interrupt::clear();
    }
}

fn carry_out(talk: &mut Talk, line: &Line<'_>) -> Result<()> {
    match line {
        Line::Empty | Line::Quit => Ok(()),
        Line::Ask(question) => talk.answer(question),
        Line::Help => Ok(talk.screen.errors.write_all(HELP.as_bytes())?),
        Line::Think => think(talk, Thinking::On),
        Line::ThinkMax => think(talk, Thinking::Max),
        Line::NoThink => think(talk, Thinking::Off),
        Line::Context(tokens) => {
            talk.set_context(tokens.get())?;
            let about = about(talk.dialogue.engine());
            Ok(talk.screen.note(&about)?)
        }
        Line::Read(path) => {
            let read = || super::limited(fs::File::open(path)?);
            let question = read().with_context(|| (*path).to_owned())?;
            talk.answer(&question)
        }
        Line::Status => status(talk),
        Line::Reset => {
            talk.dialogue.reset();
            Ok(talk.screen.note("forgotten")?)
        }
    }
}

fn think(talk: &mut Talk, thinking: Thinking) -> Result<()> {
    talk.think(thinking)?;
    let now = talk.thinking().name();
    Ok(talk.screen.note(&format!("thinking: {now}"))?)
}

fn status(talk: &mut Talk) -> Result<()> {
    let dialogue = &talk.dialogue;
    let sampler = &dialogue.sampler;
    let lines = format!(
        "{}\n{} messages, {} tokens known of {}\nthinking: {}; temperature {}, top-p {}, min-p {}, top-k {}; at most {} tokens an answer",
        about(dialogue.engine()),
        dialogue.messages().len(),
        dialogue.tokens(),
        dialogue.engine().context(),
        talk.thinking().name(),
        sampler.temperature,
        sampler.top_p,
        sampler.min_p,
        sampler.top_k,
        dialogue.limit,
    );
    Ok(talk.screen.note(&lines)?)
}
