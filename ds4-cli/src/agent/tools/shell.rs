//! `bash`, `bash_status` and `bash_stop`: commands in the folder, each in a process group of its own, with a time limit and
//! bounded output.

use std::time::Duration;

use anyhow::{Context, Result};

use super::jobs::{CtrlC, Job, Task, Waited};
use super::{Arguments, Toolbox, number, text};

/// Longest time that a call may ask for.
const LONGEST: u64 = 3600;

pub(super) const BASH: &str = r#"{"name": "bash", "description": "Run a shell command.", "parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "The command to run"}, "timeout_sec": {"type": "integer", "description": "Most seconds"}, "refresh_sec": {"type": "integer", "description": "Seconds to wait; a command that runs longer becomes a job in the background"}}, "required": ["command"]}}"#;

pub(super) const STATUS: &str = r#"{"name": "bash_status", "description": "Say what a job has written since it was looked at last, and whether it still runs.", "parameters": {"type": "object", "properties": {"job": {"type": "integer", "description": "Number of the job"}, "refresh_sec": {"type": "integer", "description": "Seconds to wait for its end"}}, "required": ["job"]}}"#;

pub(super) const STOP: &str = r#"{"name": "bash_stop", "description": "End a job, and say what it has written last.", "parameters": {"type": "object", "properties": {"job": {"type": "integer", "description": "Number of the job"}}, "required": ["job"]}}"#;

fn seconds(arguments: &Arguments, name: &str) -> Result<Option<Duration>> {
    let seconds = number(arguments, name)?.map(|n| n as u64);
    Ok(seconds.map(|n| Duration::from_secs(n.min(LONGEST))))
}

pub(super) fn bash(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let command = text(arguments, "command")?;
    let refresh = seconds(arguments, "refresh_sec")?;
    let limit = seconds(arguments, "timeout_sec")?;
    if refresh.is_some() {
        toolbox.jobs.borrow().room()?;
    }
    let job = Job::start(task(toolbox, command, limit, &[], None))?;
    Ok(match job.wait(refresh, CtrlC::Stops) {
        Waited::Ended(note) => result(&job, note.as_deref()),
        Waited::Running => {
            let (seconds, output) = (job.seconds(), job.output());
            let number = toolbox.jobs.borrow_mut().add(job);
            let note = format!(
                "job {number} is still running after {seconds} s; bash_status and bash_stop take its number"
            );
            with_note(output, Some(&note))
        }
    })
}

pub(super) fn status(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let number = number(arguments, "job")?.context("`job` is missing")?;
    let refresh = seconds(arguments, "refresh_sec")?;
    let job = toolbox.jobs.borrow_mut().take(number)?;
    Ok(
        match job.wait(Some(refresh.unwrap_or_default()), CtrlC::LeavesIt) {
            Waited::Ended(note) => ended(number, &job, note),
            Waited::Running => {
                let note = format!("job {number} is running, {} s so far", job.seconds());
                let output = job.output();
                toolbox.jobs.borrow_mut().put_back(number, job);
                with_note(output, Some(&note))
            }
        },
    )
}

pub(super) fn stop(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let number = number(arguments, "job")?.context("`job` is missing")?;
    let job = toolbox.jobs.borrow_mut().take(number)?;
    job.stop("stopped");
    Ok(match job.wait(None, CtrlC::Stops) {
        Waited::Ended(note) => ended(number, &job, note),
        // Only a time limit leads here, and there is none.
        Waited::Running => with_note(job.output(), None),
    })
}

/// Run `sh -c command` to its end, with `variables` added to its environment and `input` as its standard input.
pub(super) fn run(
    toolbox: &Toolbox,
    command: &str,
    variables: &[(String, String)],
    input: Option<String>,
) -> Result<String> {
    let job = Job::start(task(toolbox, command, None, variables, input))?;
    let note = match job.wait(None, CtrlC::Stops) {
        Waited::Ended(note) => note,
        Waited::Running => None,
    };
    Ok(result(&job, note.as_deref()))
}

fn task<'t>(
    toolbox: &'t Toolbox,
    command: &'t str,
    limit: Option<Duration>,
    variables: &'t [(String, String)],
    input: Option<String>,
) -> Task<'t> {
    let usual = Duration::from_secs(toolbox.limits.seconds.min(LONGEST));
    Task {
        command,
        folder: toolbox.sandbox.root(),
        variables,
        input,
        limit: limit.unwrap_or(usual).max(Duration::from_secs(1)),
        output: toolbox.limits.output,
    }
}

/// What a command that nobody had to ask for wrote.
fn result(job: &Job, note: Option<&str>) -> String {
    match (job.output(), note) {
        (output, None) if output.is_empty() => "(no output)".to_owned(),
        (output, note) => with_note(output, note),
    }
}

fn ended(number: usize, job: &Job, note: Option<String>) -> String {
    let why = note.map(|note| format!(": {note}")).unwrap_or_default();
    with_note(job.output(), Some(&format!("job {number} has ended{why}")))
}

fn with_note(mut text: String, note: Option<&str>) -> String {
    if let Some(note) = note {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("({note})\n");
    }
    text
}
