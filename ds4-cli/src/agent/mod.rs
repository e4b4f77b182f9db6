//! `ds4-agent`: a model that works in a folder, by calls that a person sees and allows.
//!
//! ```text
//! person.rs ── tasks ──▶ turn.rs ── calls ──▶ tools/ ── paths ──▶ sandbox.rs
//!    │                     ▲  └── results ◀─────┘
//!    │                     └──── every message ──▶ transcript.rs
//!    └── commands.rs ─── keep.rs ─── sessions.rs       ds4_model::Saved
//! ```

pub(crate) mod args;
mod commands;
mod keep;
mod person;
mod sandbox;
mod sessions;
mod tools;
mod transcript;
mod turn;

use std::ffi::OsString;
use std::io::{self, Read, Write};

use anyhow::{Context, Result};
use ds4_model::Message;
use ds4_model::chat::Conversation;
use serde_json::json;

use crate::exit::{self, Exit};
use crate::prompt::{AGAIN, Input, Interruptions};
use crate::{interrupt, refused};
use args::Args;
use person::Person;
use sandbox::Sandbox;
use sessions::Sessions;
use tools::{Declared, Limits, Toolbox};
use transcript::Transcript;
use turn::Agent;

/// The command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// What a model is told when nobody says otherwise.
const SYSTEM: &str = "You are an agent that works in a folder of files. Use the tools to look before you change anything, \
    make small changes, and check them. A user may refuse a call; then ask or do it another way. Say briefly what you did.";

/// Parse the command line and work.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    match refused::parse_with::<Args>(arguments, Some(commands::HELP)) {
        Ok(args) => exit::report(work(&args)),
        Err(exit) => exit,
    }
}

fn work(args: &Args) -> Result<()> {
    let sandbox =
        Sandbox::new(&args.root).with_context(|| format!("--root {}", args.root.display()))?;
    let declared = match &args.tools {
        None => Vec::new(),
        Some(path) => Declared::load(path)?,
    };
    let limits = Limits {
        output: args.max_output.get(),
        seconds: args.bash_timeout,
    };
    let toolbox = Toolbox::new(sandbox, limits, &args.builtin, declared)?;
    let engine = args.running.open(Some(args.ctx.get()))?;
    let session = engine.session()?;
    let thinking = args.thinking.asked().unwrap_or_default();
    if let Some(line) = thinking.shortened(engine.context()) {
        writeln!(io::stderr(), "{line}")?;
    }
    let mut transcript = Transcript::open(args)?;
    transcript.add(
        "start",
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "model": args.running.model,
            "root": toolbox.sandbox.root(),
            "tools": toolbox.tools(),
        }),
    )?;
    let system = args.system.as_deref().unwrap_or(SYSTEM);
    let messages = match system {
        "" => Vec::new(),
        text => vec![Message::system(text)],
    };
    let mut agent = Agent {
        conversation: Conversation {
            messages,
            tools: toolbox.tools().to_vec(),
        },
        toolbox,
        transcript,
        person: Person::new(args.yes, args.non_interactive),
        render: thinking.within(engine.context()).render(),
        sampler: args
            .sampling
            .sampler(1.0, args.sampling.seed(), engine.tokenizer().vocab_len()),
        tokens: args.tokens,
        max_steps: args.max_steps.get(),
        calls: 0,
        session,
        sessions: Sessions::new(args.session_dir.as_deref())?,
        kept: None,
    };
    interrupt::hear();
    if let Some(name) = &args.resume {
        let id = agent.sessions.find(name)?;
        agent.resume(&id)?;
    }
    let task = match &args.prompt {
        Some(text) => text.clone(),
        None if args.non_interactive => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .context("cannot read the task")?;
            text.trim_end().to_owned()
        }
        None => return converse(&mut agent),
    };
    let done = agent.task(&task);
    // What was saved before goes on with all that was said, also when the end was no good one.
    agent.keep()?;
    done
}

fn converse(agent: &mut Agent) -> Result<()> {
    interrupt::at_prompt();
    let mut out = io::stderr();
    writeln!(out, "working in {}", agent.toolbox.sandbox.root().display())?;
    if let Some(path) = agent.transcript.path() {
        writeln!(out, "transcript in {}", path.display())?;
    }
    let mut interruptions = Interruptions::default();
    loop {
        let text = match agent.person.task()? {
            Input::Line(text) => text,
            Input::End => break,
            Input::Interrupt if interruptions.pressed() => break,
            Input::Interrupt => {
                writeln!(out, "{AGAIN}")?;
                continue;
            }
        };
        // A Ctrl-C at the prompt is about nothing.
        interrupt::take();
        match commands::parse(&text) {
            // A task that failed leaves the conversation, and the next may do better.
            Ok(command) => match commands::carry_out(agent, &command) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => writeln!(out, "error: {error:#}")?,
            },
            Err(why) => writeln!(out, "{why}")?,
        }
        interruptions.other(interrupt::take());
    }
    agent.keep()
}
