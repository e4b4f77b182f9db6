//! `ds4` without a command: a conversation, one answer, or a look at what the model makes of a prompt.
//!
//! ```text
//! line.rs, refused.rs ─ args.rs ─ mod.rs ─┬─ repl.rs ─ command.rs
//!                                         ├─ talk.rs ─ screen.rs      ds4_model::Dialogue
//!                                         └─ diagnose.rs              ds4_model::diagnose
//! ```

pub(crate) mod args;
pub(crate) mod command;
mod diagnose;
pub(crate) mod line;
mod repl;
mod screen;
mod talk;

use std::fs;
use std::io::{IsTerminal, Read};

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::Engine;
use ds4_model::inspect::{Report, human_bytes};
use indicatif::ProgressBar;

use crate::exit::{Exit, Usage};
use crate::expert_profile::ExpertProfile;
use crate::progress::Progress;
use crate::{inspect, interrupt};
use args::Chat;
use screen::Screen;
use talk::Talk;

/// Most bytes of a prompt.
const LONGEST: u64 = 64 << 20;

pub(crate) fn run(args: &Chat) -> Result<Exit> {
    if args.inspect {
        inspect::show(std::slice::from_ref(&args.running.model), false)?;
        return Ok(Exit::Ok);
    }
    if let Some(text) = &args.perplexity_file {
        return diagnose::perplexity(args, text);
    }
    let open_reader = || open(args, args.running.prefill_chunk.get());
    if let Some(done) = args.dataset.run(&args.running.model, open_reader) {
        return done.map(|()| Exit::Ok);
    }
    let prompt = prompt(args)?;
    if args.needs_prompt() {
        let prompt = prompt
            .ok_or_else(|| Usage("there is no prompt; give one with -p or --prompt-file".into()))?;
        return diagnose::run(args, &prompt);
    }
    if args.raw && prompt.is_none() {
        return Err(Usage("--raw is for a prompt of -p, --prompt-file or a pipe".into()).into());
    }
    interrupt::hear();
    let engine = open(args, args.running.prefill_chunk.get())?;
    let mut screen = Screen::of_this_terminal();
    screen.note(&about(&engine))?;
    let profile = ExpertProfile::new(args.expert_profile.as_deref(), &engine)?;
    let tap = ExpertProfile::tap(profile.as_ref());
    let exit = match prompt {
        Some(prompt) if args.raw => talk::raw(&engine, args, &prompt, &mut screen, tap)?,
        prompt => {
            let mut talk = Talk::new(&engine, args, screen)?;
            talk.dialogue.watch(tap);
            match prompt {
                Some(prompt) => {
                    talk.answer(&prompt)?;
                    ended()
                }
                None => {
                    repl::on_terminal(talk)?;
                    Exit::Ok
                }
            }
        }
    };
    ExpertProfile::write(profile, "ds4", &args.running.model)?;
    Ok(exit)
}

/// What an answer that Ctrl-C ended is worth.
fn ended() -> Exit {
    if interrupt::is_set() {
        Exit::Failed
    } else {
        Exit::Ok
    }
}

/// The prompt, where the command line or a pipe brings one.
fn prompt(args: &Chat) -> Result<Option<String>> {
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(prompt), _) => prompt.clone(),
        (_, Some(file)) => {
            let open = || limited(fs::File::open(file)?);
            open().with_context(|| file.display().to_string())?
        }
        _ if std::io::stdin().is_terminal() => return Ok(None),
        _ => {
            let mut text = limited(std::io::stdin().lock()).context("standard input")?;
            // The end of the last line, which `echo` adds, is not meant.
            if text.ends_with('\n') {
                text.truncate(text.trim_end_matches(['\n', '\r']).len());
            }
            text
        }
    };
    if prompt.is_empty() {
        return Err(Usage("the prompt is empty; give one with -p or --prompt-file".into()).into());
    }
    Ok(Some(prompt))
}

/// Text, of a length that can be a prompt.
fn limited(reader: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    reader.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let problem = format!("longer than a prompt may be, {LONGEST} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            problem,
        ));
    }
    Ok(text)
}

/// Open the model, with a sign of life for as long as that takes.
fn open(args: &Chat, prefill_rows: usize) -> Result<Engine> {
    let path = &args.running.model;
    let mut options = args.running.options(Some(args.context.get()))?;
    options.prefill_rows = prefill_rows;
    let bar = ProgressBar::new_spinner().with_message(format!("opening {}", path.display()));
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let opened = Engine::open(path, options);
    bar.finish_and_clear();
    let engine = opened.with_context(|| cannot_open(args))?;
    if args.running.warm_weights {
        let progress = Progress::new("weights");
        engine
            .weights()
            .warm(|done, total| progress.at("", done, total));
    }
    Ok(engine)
}

/// Open the model's file alone.
fn open_file(args: &Chat) -> Result<Gguf> {
    Gguf::open(&args.running.model).with_context(|| cannot_open(args))
}

fn cannot_open(args: &Chat) -> String {
    let path = args.running.model.display();
    if args.running.model.exists() {
        format!("cannot open {path}")
    } else {
        format!("cannot open {path}; -m FILE names a model")
    }
}

/// One line on what was opened, and how.
fn about(engine: &Engine) -> String {
    let config = engine.config();
    let gguf = engine.weights().gguf();
    let session = engine.graph().states().bytes(
        engine.context() as u64,
        engine.options().prefill_rows as u64,
    );
    format!(
        "{}, {} on the processor; {} tokens of context, {} of state",
        config.name.as_deref().unwrap_or("a model without a name"),
        human_bytes(Report::of(gguf).bytes()),
        engine.context(),
        human_bytes(session),
    )
}
