//! `ds4-eval`: questions with known answers, asked of a file or of a server.

pub(crate) mod args;
mod remote;
mod report;
mod trace;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use ds4_gguf::NewFile;
use ds4_model::eval::{self, Answered, Case, Sample};
use ds4_model::{Engine, Session};
use serde_json::{Value, json};

use crate::exit::{self, Exit, Usage};
use crate::progress::Progress;
use crate::running::file_name;
use crate::{interrupt, refused};
use args::Args;
use remote::Remote;
use report::Report;
use trace::{Entry, Trace};

/// The command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

/// Tokens that a message's markers and the effort's text can take, at most.
const MARKERS: usize = 256;

/// Parse the command line and ask.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    match refused::parse::<Args>(arguments) {
        Ok(args) => exit::report(evaluate(&args)),
        Err(exit) => exit,
    }
}

fn evaluate(args: &Args) -> Result<()> {
    if args.self_test_extractors {
        return self_test();
    }
    if let Some(path) = &args.regrade_trace {
        let entries = trace::read(path)?;
        return report(args, &entries, &json!({ "trace": path }));
    }
    let cases = cases(args)?;
    if args.list_cases {
        return list(&cases);
    }
    let kept = kept(args)?;
    let mut answerer = Answerer::new(args, &cases)?;
    // Once: a seed that is the time would otherwise be another for each question, and for the report.
    let seed = args.sampling.seed();
    let old = cases.iter().filter_map(|case| kept.get(&case.id));
    let mut trace = match &args.trace {
        None => None,
        Some(path) => Some(Trace::create(path, old)?),
    };
    let mut entries = Vec::with_capacity(cases.len());
    let total = cases.len() as u64;
    let progress = (!args.plain).then(|| Progress::counting("eval"));
    let mut stopped = None;
    let mut asked_before = false;
    for (index, case) in cases.into_iter().enumerate() {
        if let Some(entry) = kept.get(&case.id) {
            entries.push(entry.clone());
            continue;
        }
        if std::mem::replace(&mut asked_before, true) && pause(args.pause_ms).is_break() {
            stopped = Some(anyhow!("stopped").context(format!("question {}", case.id)));
            break;
        }
        let start = Instant::now();
        let mut each = |_: usize| match &progress {
            Some(progress) => progress.at(&case.id, index as u64, total),
            None => ControlFlow::Continue(()),
        };
        let answered = match answerer.answer(args, seed, index, &case, &mut each) {
            Ok(answered) => answered,
            // What has been asked is reported all the same.
            Err(error) => {
                stopped = Some(error.context(format!("question {}", case.id)));
                break;
            }
        };
        let entry = Entry::new(case, answered, start.elapsed().as_secs_f64());
        if let (Some(trace), Some(path)) = (&mut trace, &args.trace) {
            trace
                .add(&entry)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if args.plain {
            let word = if entry.grade.correct {
                "right"
            } else {
                "wrong"
            };
            writeln!(io::stderr(), "{word}  {}", entry.case.id)?;
        }
        entries.push(entry);
    }
    drop(progress);
    if let Some(error) = stopped {
        Report::of(&entries).table(&mut io::stderr().lock())?;
        return Err(error);
    }
    report(args, &entries, &asked(args, seed))
}

/// Wait between two questions, unless a stop is asked for.
fn pause(milliseconds: u32) -> ControlFlow<()> {
    const LOOK: Duration = Duration::from_millis(20);
    let end = Instant::now() + Duration::from_millis(milliseconds.into());
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || interrupt::is_set() {
            return interrupt::flow();
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Grade what the grades are known of.
fn self_test() -> Result<()> {
    let samples = eval::samples();
    let failed: Vec<_> = samples.iter().filter_map(Sample::check).collect();
    let mut out = io::stdout().lock();
    for wrong in &failed {
        writeln!(out, "{wrong}")?;
    }
    writeln!(
        out,
        "extractors: {} of {} samples are graded as they should be",
        samples.len() - failed.len(),
        samples.len()
    )?;
    ensure!(
        failed.is_empty(),
        "{} samples are graded wrong",
        failed.len()
    );
    Ok(())
}

/// The questions that the command line chooses.
fn cases(args: &Args) -> Result<Vec<Case>> {
    let all = match &args.cases {
        None => args.suite.cases(),
        Some(path) => {
            let name = || path.display().to_string();
            let text = fs::read_to_string(path).with_context(name)?;
            Case::parse_lines(&text).with_context(name)?
        }
    };
    if let Some(most) = args.questions {
        return Ok(all.into_iter().take(most.get()).collect());
    }
    if args.case_sequence.is_empty() {
        return Ok(all);
    }
    let place = |place: &NonZeroUsize| {
        all.get(place.get() - 1).cloned().ok_or_else(|| {
            let count = all.len();
            Usage(format!(
                "--case-sequence has {place}, there are {count} questions"
            ))
        })
    };
    Ok(args
        .case_sequence
        .iter()
        .map(place)
        .collect::<Result<_, _>>()?)
}

fn list(cases: &[Case]) -> Result<()> {
    let mut out = io::stdout().lock();
    for case in cases {
        let question = case.question().lines().next().unwrap_or_default();
        writeln!(
            out,
            "{}  {}  {}  {question}",
            case.id,
            case.category,
            case.expected.kind()
        )?;
    }
    Ok(())
}

/// Whole answers of an earlier run, by the question's id.
fn kept(args: &Args) -> Result<HashMap<String, Entry>> {
    match &args.trace {
        Some(path) if args.retry_incomplete && path.exists() => Ok(trace::read(path)?
            .into_iter()
            .filter(|entry| entry.answered.complete)
            .map(|entry| (entry.case.id.clone(), entry))
            .collect()),
        _ => Ok(HashMap::new()),
    }
}

/// Who answers.
enum Answerer {
    Local(Box<Session>),
    Remote(Remote),
}

impl Answerer {
    fn new(args: &Args, cases: &[Case]) -> Result<Self> {
        if let Some(url) = &args.url {
            return Ok(Self::Remote(Remote::new(args, url)?));
        }
        let engine: Engine = args.running.open(Some(context(args, cases)))?;
        let thinking = args.thinking.asked().unwrap_or_default();
        if let Some(line) = thinking.shortened(engine.context()) {
            writeln!(io::stderr(), "{line}")?;
        }
        Ok(Self::Local(Box::new(engine.session()?)))
    }

    fn answer(
        &mut self,
        args: &Args,
        seed: u64,
        index: usize,
        case: &Case,
        each: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Answered> {
        match self {
            Self::Local(session) => {
                let vocab_len = session.engine().tokenizer().vocab_len();
                let mut sampler = args.sampler(seed, index, vocab_len);
                let thinking = args.thinking.asked().unwrap_or_default();
                let render = thinking.within(session.engine().context()).render();
                let budget = args.budget();
                Ok(eval::answer(
                    session,
                    case,
                    &render,
                    &mut sampler,
                    &budget,
                    each,
                )?)
            }
            Self::Remote(remote) => {
                // A request cannot be stopped half-way; between two it can.
                ensure!(each(0).is_continue(), "stopped");
                remote.answer(args, seed, index, case)
            }
        }
    }
}

/// Tokens of context: enough for the longest question, since a token has at least one byte, and its answer.
fn context(args: &Args, cases: &[Case]) -> usize {
    let bytes = |case: &Case| -> usize {
        let messages = case.messages.iter();
        messages.map(|m| m.content.len() + MARKERS).sum::<usize>() + 4 * MARKERS
    };
    let longest = cases.iter().map(bytes).max().unwrap_or(0);
    let needed = longest.saturating_add(args.budget().tokens);
    args.ctx.map_or(needed, Into::into)
}

/// What was asked of whom, for the report.
fn asked(args: &Args, seed: u64) -> Value {
    json!({
        "model": args.url.is_none().then(|| file_name(&args.running.model)),
        "url": args.url,
        "cases": args.cases,
        "temperature": args.temperature(),
        "seed": seed,
        "tokens": args.budget().tokens,
    })
}

fn report(args: &Args, entries: &[Entry], asked: &Value) -> Result<()> {
    let report = Report::of(entries);
    report.table(&mut io::stderr().lock())?;
    if let Some(path) = &args.json {
        let mut file = NewFile::create(path, true)?;
        writeln!(file, "{:#}", report.to_json(asked))
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.publish()?;
    }
    Ok(())
}
