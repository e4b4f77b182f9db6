//! `ds4-agent`: a model that works in a folder, by calls that a person sees and allows.
//!
//! ```text
//! person.rs ── tasks ──▶ turn.rs ── calls ──▶ tools/ ── paths ──▶ sandbox.rs
//!                          ▲  └── results ◀─────┘
//!                          └──── every message ──▶ transcript.rs
//! ```

mod args;
mod person;
mod sandbox;
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
use crate::{interrupt, refused};
use args::Args;
use person::Person;
use sandbox::Sandbox;
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

const HELP: &str = "\
/new      begin anew
/tools    show what the model may call
/help     show this
/quit     end
Ctrl-C    stop what is being done; twice, end
";

/// Parse the command line and work.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    match refused::parse::<Args>(arguments) {
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
        render: args.render(),
        sampler: args.sampler(transcript::clock(), engine.tokenizer().vocab_len()),
        tokens: args.tokens,
        max_steps: args.max_steps.get(),
        calls: 0,
        session,
    };
    interrupt::hear();
    if let Some(text) = &args.prompt {
        return agent.task(text);
    }
    if args.non_interactive {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the task")?;
        return agent.task(text.trim_end());
    }
    converse(&mut agent)
}

fn converse(agent: &mut Agent) -> Result<()> {
    let mut out = io::stderr();
    writeln!(out, "working in {}", agent.toolbox.sandbox.root().display())?;
    if let Some(path) = agent.transcript.path() {
        writeln!(out, "transcript in {}", path.display())?;
    }
    while let Some(text) = agent.person.task()? {
        // A Ctrl-C at the prompt is about nothing.
        interrupt::take();
        match text.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            "/help" => write!(out, "{HELP}")?,
            "/new" => agent.forget()?,
            "/tools" => {
                for tool in agent.toolbox.tools() {
                    writeln!(out, "{}", tool.json())?;
                }
            }
            command if command.starts_with('/') => {
                writeln!(out, "there is no command {command}; /help shows all")?;
            }
            task => {
                // A task that failed leaves the conversation, and the next may do better.
                if let Err(error) = agent.task(task) {
                    writeln!(out, "error: {error:#}")?;
                }
            }
        }
    }
    Ok(())
}
