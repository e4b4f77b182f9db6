//! Talk to a model, or ask it one thing.
//!
//! ```text
//! cargo run --release --example chat                      a conversation with the demo model
//! cargo run --release --example chat -- "PROMPT"          one answer, alone on standard output
//! cargo run --release --example chat -- -m model.gguf -t 8 --temp 0.6 --think
//! ```
//! Ctrl-C stops an answer; at the prompt, it or Ctrl-D ends the conversation. Reasoning, progress and speed go to standard
//! error.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a conversation in the terminal"
)]

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use ds4_model::chat::{Delta, ThinkMode};
use ds4_model::{Dialogue, Engine, Error, Options, Sampler};
use indicatif::{ProgressBar, ProgressStyle};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

/// Talk to a DeepSeek-V4 model.
#[derive(Parser)]
struct Args {
    /// Answer this and end; without it, a conversation.
    prompt: Option<String>,
    /// The model.
    #[arg(short, long, default_value = ds4_examples::DEMO_MODEL)]
    model: PathBuf,
    /// Threads [default: one a core].
    #[arg(short, long, default_value_t = 0)]
    threads: usize,
    /// 0 takes the most likely token, 1 draws as the model says.
    #[arg(long, default_value_t = 0.0)]
    temp: f32,
    /// The same seed draws the same answer.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Instructions before the conversation.
    #[arg(long)]
    system: Option<String>,
    /// Let the model reason before it answers.
    #[arg(long, overrides_with = "nothink")]
    think: bool,
    /// Answer at once (the default).
    #[arg(long)]
    nothink: bool,
    /// Most tokens of an answer.
    #[arg(short = 'n', long, default_value_t = 4096)]
    tokens: usize,
    /// Tokens of the whole conversation [default: what the model can].
    #[arg(short, long)]
    context: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;

    let mut chat = Chat::open(&args, stopped)?;
    if let Some(prompt) = args.prompt {
        return chat.answer(prompt);
    }
    let mut editor = DefaultEditor::new()?;
    loop {
        match editor.readline("you> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                editor.add_history_entry(&line)?;
                chat.answer(line)?;
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

struct Chat {
    dialogue: Dialogue,
    stopped: Arc<AtomicBool>,
}

impl Chat {
    fn open(args: &Args, stopped: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let mut options = Options::default();
        (options.threads, options.context) = (args.threads, args.context);
        let bar =
            ProgressBar::new_spinner().with_message(format!("opening {}", args.model.display()));
        bar.enable_steady_tick(Duration::from_millis(100));
        let engine =
            Engine::open(&args.model, options).with_context(|| args.model.display().to_string())?;
        bar.finish_and_clear();
        let mut dialogue = Dialogue::new(&engine, args.system.as_deref())?;
        dialogue.sampler = Sampler {
            temperature: args.temp,
            ..Sampler::seeded(args.seed)
        };
        dialogue.render.think = if args.think {
            ThinkMode::On
        } else {
            ThinkMode::Off
        };
        dialogue.limit = args.tokens;
        Ok(Self { dialogue, stopped })
    }

    /// Ask and show the answer as it comes.
    fn answer(&mut self, question: String) -> anyhow::Result<()> {
        self.stopped.store(false, Ordering::Relaxed);
        let style = ProgressStyle::with_template("reading {bar:40} {pos}/{len} tokens")?;
        let prompt = self.dialogue.prompt(&question)?.len() as u64;
        let bar = ProgressBar::new(prompt).with_style(style);
        let (start, mut read) = (Instant::now(), Duration::ZERO);
        let (mut reasoning, mut shown) = (false, Ok(()));
        let ended = self.dialogue.ask(question, &mut |update| {
            if !bar.is_finished() {
                bar.set_position(update.read as u64);
                if update.read as u64 == prompt {
                    bar.finish_and_clear();
                    read = start.elapsed();
                }
            }
            shown = show(&update.deltas, &mut reasoning);
            match shown.is_err() || self.stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        bar.finish_and_clear();
        shown?;
        let usage = match ended {
            Err(Error::Stopped { .. }) => return Ok(()),
            ended => ended?.usage,
        };
        println!();
        eprintln!(
            "[prompt {}, answer {}]",
            speed(usage.prompt - usage.cached, read),
            speed(usage.completion, start.elapsed() - read)
        );
        Ok(())
    }
}

/// Content and calls to standard output, reasoning to standard error.
fn show(deltas: &[Delta], reasoning: &mut bool) -> std::io::Result<()> {
    for delta in deltas {
        if let Delta::Reasoning(text) = delta {
            *reasoning = true;
            eprint!("{text}");
            continue;
        }
        if std::mem::take(reasoning) {
            eprintln!();
        }
        match delta {
            Delta::Content(text) | Delta::Arguments { json: text, .. } => print!("{text}"),
            Delta::Call { name, .. } => print!("{name} "),
            Delta::Reasoning(_) => {}
        }
    }
    std::io::stdout().flush()
}

fn speed(tokens: usize, time: Duration) -> String {
    format!(
        "{tokens} tokens {:.1} tok/s",
        tokens as f64 / time.as_secs_f64().max(1e-9)
    )
}
