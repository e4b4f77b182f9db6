//! `bash`: a command in the folder, in a process group of its own, with a time limit and bounded output.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Arguments, Toolbox, number, text};
use crate::interrupt;

/// Longest time that a call may ask for.
const LONGEST: u64 = 3600;
/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long output is waited for after its writers were killed. One that left the group may hold it open.
const GRACE: Duration = Duration::from_millis(500);

pub(super) const BASH: &str = r#"{"name": "bash", "description": "Run a shell command.", "parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "The command to run"}, "timeout_sec": {"type": "integer", "description": "Most seconds"}}, "required": ["command"]}}"#;

/// How much a call may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::agent) struct Limits {
    /// Most bytes of a result.
    pub(in crate::agent) output: usize,
    /// Seconds of a command, when the call does not say.
    pub(in crate::agent) seconds: u64,
}

impl Limits {
    /// The beginning and the end of a long text.
    pub(in crate::agent) fn cut(&self, text: &str) -> String {
        let mut bounded = Bounded::new(self.output);
        bounded.add(text.as_bytes());
        bounded.text()
    }
}

pub(super) fn bash(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let command = text(arguments, "command")?;
    let seconds = number(arguments, "timeout_sec")?.map_or(toolbox.limits.seconds, |n| n as u64);
    run(toolbox, command, seconds, &[], None)
}

/// Run `sh -c command` with `variables` added to its environment and `input` as its standard input.
pub(super) fn run(
    toolbox: &Toolbox,
    command: &str,
    seconds: u64,
    variables: &[(String, String)],
    input: Option<String>,
) -> Result<String> {
    let limit = Duration::from_secs(seconds.clamp(1, LONGEST));
    let stdin = if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    // One pipe for both, so that lines are in the order in which they were written.
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(toolbox.sandbox.root())
        .stdin(stdin)
        .stdout(writer.try_clone().context("cannot make a pipe")?)
        .stderr(writer)
        .process_group(0);
    let mut child = shell.spawn().context("cannot start a shell")?;
    // It holds the writing ends, without which the reader would never come to an end.
    drop(shell);
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // A command need not read it; its end ends this thread.
        thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    }
    let output = Arc::new(Mutex::new(Bounded::new(toolbox.limits.output)));
    let finished = collect(reader, Arc::clone(&output));

    let start = Instant::now();
    let mut why = None;
    let status: Option<ExitStatus> = loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            break Some(status);
        }
        if interrupt::is_set() {
            why = Some("stopped by the user".to_owned());
            break None;
        }
        if start.elapsed() >= limit {
            why = Some(format!("stopped after {} s", limit.as_secs()));
            break None;
        }
        thread::sleep(LOOK);
    };
    // Also after its end: what it left in the background would go on unseen. A group that is gone is no error.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    if status.is_none() {
        child.wait().context("cannot wait for the command")?;
    }
    // Not for ever, and its end is no matter then.
    let _ = finished.recv_timeout(GRACE);
    let mut text = output.lock().unwrap_or_else(PoisonError::into_inner).text();
    let note = why.or_else(|| {
        let status = status.filter(|s| !s.success())?;
        Some(
            status
                .code()
                .map_or_else(|| format!("{status}"), |code| format!("exit code {code}")),
        )
    });
    if let Some(note) = note {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("({note})\n");
    } else if text.is_empty() {
        text.push_str("(no output)");
    }
    Ok(text)
}

/// Read a pipe to its end on a thread, which says so.
fn collect(mut pipe: impl Read + Send + 'static, output: Arc<Mutex<Bounded>>) -> Receiver<()> {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 {
                break;
            }
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.add(&buffer[..n]);
        }
        // Nobody waits any more when a time limit came first.
        let _ = done.send(());
    });
    finished
}

/// The first and the last bytes of a long output.
struct Bounded {
    limit: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
}

impl Bounded {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: Vec::new(),
            left_out: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let half = self.limit / 2;
        let room = half.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > self.limit - half {
            let over = self.tail.len() - (self.limit - half);
            self.tail.drain(..over);
            self.left_out += over;
        }
    }

    fn text(&self) -> String {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if self.left_out == 0 {
            // Together, so that a character across the two halves stays whole.
            return lossy(&[&self.head[..], &self.tail].concat());
        }
        format!(
            "{}\n… {} bytes left out …\n{}",
            lossy(&self.head),
            self.left_out,
            lossy(&self.tail)
        )
    }
}
