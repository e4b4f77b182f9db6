//! `ds4-bench`: tokens a second of prompt and answer where the context grows, in the columns of antirez/ds4's program.

pub(crate) mod args;
mod checks;
mod table;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use ds4_gguf::NewFile;
use ds4_model::measure::{Bench, Frontiers, Prefill};
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Message, Sampler, Session, Token};
use serde_json::json;

use crate::exit::{self, Exit};
use crate::expert_profile::ExpertProfile;
use crate::progress::Progress;
use crate::running::file_name;
use crate::{env, refused};
use args::Args;
use table::Row;

/// The command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Most bytes of a snapshot, when nobody says: larger ones take longer to copy than the session takes to go back.
const SNAPSHOT_MAX: u64 = 1 << 30;

/// Parse the command line and measure.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    let args: Args = match refused::parse(arguments) {
        Ok(args) => args,
        Err(exit) => return exit,
    };
    let invalid = |error| Args::command().error(clap::error::ErrorKind::ValueValidation, error);
    match args.frontiers().map_err(invalid) {
        Ok(frontiers) => exit::report(measure(&args, frontiers)),
        Err(error) => exit::usage(&error),
    }
}

fn measure(args: &Args, frontiers: Frontiers) -> Result<()> {
    let engine = args.running.open(Some(args.context()))?;
    if args.semantic_smoke {
        checks::semantic_smoke(&engine)?;
    }
    if args.decode_self_check {
        return checks::decode_self_check(&engine);
    }
    let Some(prompt) = prompt(args, &engine)? else {
        return Ok(());
    };
    let needed = args.ctx_max.saturating_add(args.gen_tokens);
    ensure!(
        engine.context() >= needed,
        "the context has {} tokens, --ctx-max and --gen-tokens need {needed}",
        engine.context()
    );
    if args.teacher_force_control {
        ensure!(
            args.ctx_start < args.ctx_max,
            "--ctx-start and --ctx-max are both {}, nothing is left to be read in between",
            args.ctx_max
        );
        let expected = args.teacher_force_expect_fnv64;
        return checks::teacher_force(&engine, &prompt, args.ctx_start, expected);
    }
    let rows = rows(args, &engine, prompt, frontiers)?;
    write_reports(args, &engine, &rows)
}

/// The tokens to read, as many as the last frontier has; `None` when no text was named.
fn prompt(args: &Args, engine: &Engine) -> Result<Option<Vec<Token>>> {
    let Some(path) = args.prompt_file.as_ref().or(args.chat_prompt_file.as_ref()) else {
        return Ok(None);
    };
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut tokens = if args.prompt_file.is_some() {
        engine.tokenizer().encode(&text, Special::None)
    } else {
        let system = args.system.iter().map(Message::system);
        let messages: Vec<Message> = system.chain([Message::user(text)]).collect();
        engine.render(&messages)?
    };
    ensure!(
        tokens.len() >= args.ctx_max,
        "{} has {} tokens, --ctx-max needs {}",
        path.display(),
        tokens.len(),
        args.ctx_max
    );
    tokens.truncate(args.ctx_max);
    Ok(Some(tokens))
}

fn rows(
    args: &Args,
    engine: &Engine,
    prompt: Vec<Token>,
    frontiers: Frontiers,
) -> Result<Vec<Row>> {
    let last = prompt.len();
    let mut bench = Bench::new(engine, prompt, snapshot_limit(args)?)?;
    let profile = ExpertProfile::new(args.expert_profile.as_deref(), engine)?;
    bench.watch(ExpertProfile::tap(profile.as_ref()));
    let mut rows = Vec::new();
    if args.csv.is_none() {
        table::header(&mut io::stdout())?;
    }
    for frontier in frontiers {
        let progress = Progress::counting("prefill");
        let read = bench.prefill(frontier, &mut |done, total| {
            progress.at(&format!("to {frontier}"), done as u64, total as u64)
        })?;
        drop(progress);
        if let Some(folder) = &args.dump_frontier_logits_dir {
            dump_logits(args, folder, bench.session(), read)?;
        }
        let progress = Progress::counting("decode");
        let drawn = bench.decode(args.gen_tokens, frontier < last, &mut |done, total| {
            progress.at(&format!("at {frontier}"), done as u64, total as u64)
        })?;
        drop(progress);
        if args.show_output {
            let text = engine.tokenizer().decode(&drawn.tokens);
            writeln!(io::stderr(), "{frontier}: {text:?}")?;
        }
        let row = Row::new(frontier, read, &drawn);
        if args.csv.is_none() {
            // At once, so that a long measurement can be watched.
            let mut out = io::stdout().lock();
            row.csv(&mut out)?;
            out.flush()?;
        }
        rows.push(row);
    }
    ExpertProfile::write(profile, "ds4-bench", &args.running.model)?;
    Ok(rows)
}

/// Most bytes of a snapshot: by flag, else by the variables of antirez/ds4's program.
fn snapshot_limit(args: &Args) -> Result<u64> {
    if let Some(limit) = args.snapshot_max_bytes {
        return Ok(limit);
    }
    let set = |name| std::env::var_os(name).is_some();
    if set(env::BENCH_NO_SNAPSHOT) {
        return Ok(0);
    }
    if set(env::BENCH_ANY_SNAPSHOT) {
        return Ok(u64::MAX);
    }
    const NAME: &str = env::BENCH_SNAPSHOT_BYTES;
    match std::env::var(NAME) {
        Err(_) => Ok(SNAPSHOT_MAX),
        Ok(text) if text.eq_ignore_ascii_case("unlimited") => Ok(u64::MAX),
        Ok(text) => text
            .parse()
            .with_context(|| format!("{NAME} is `{text}`, expected a number of bytes")),
    }
}

/// The logits at a frontier, in the form of antirez/ds4's program; what is no number is null.
fn dump_logits(args: &Args, folder: &Path, session: &Session, read: Prefill) -> Result<()> {
    let (engine, logits) = (session.engine(), session.logits());
    let tokens = session.tokens().len();
    let best = Sampler::default().sample(logits);
    let report = json!({
        "source": "ds4-bench",
        "model": file_name(&args.running.model),
        "backend": "cpu",
        "prompt_tokens": tokens,
        "frontier_tokens": tokens,
        "prefill_tokens": read.tokens,
        "ctx": engine.context(),
        "vocab": logits.len(),
        "argmax_id": best,
        "argmax_logit": logits.get(best as usize),
        "logits": logits,
    });
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    publish(
        &folder.join(format!("frontier_{tokens:06}.logits.json")),
        |out| writeln!(out, "{report}"),
    )
}

fn write_reports(args: &Args, engine: &Engine, rows: &[Row]) -> Result<()> {
    let model = file_name(&args.running.model);
    if let Some(path) = &args.csv {
        publish(path, |out| {
            table::header(out)?;
            rows.iter().try_for_each(|row| row.csv(out))
        })?;
    }
    if let Some(path) = &args.json {
        let prompt = args.prompt_file.as_ref().or(args.chat_prompt_file.as_ref());
        let report = json!({
            "source": "ds4-bench",
            "version": env!("CARGO_PKG_VERSION"),
            "model": model,
            "backend": "cpu",
            "threads": engine.options().threads,
            "prefill_chunk": engine.options().prefill_rows,
            "ctx": engine.context(),
            "prompt": prompt.map(|path| file_name(path)),
            "chat": args.chat_prompt_file.is_some(),
            "rows": rows,
        });
        publish(path, |out| writeln!(out, "{report:#}"))?;
    }
    if let Some(path) = &args.svg {
        publish(path, |out| {
            out.write_all(table::svg(&model, rows).as_bytes())
        })?;
    }
    Ok(())
}

/// Write a file that appears under its name only when it is complete.
fn publish(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut file = NewFile::create(path, true)?;
    write(&mut file).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(file.publish()?)
}
