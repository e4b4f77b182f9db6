//! A command that runs: in a process group of its own, watched by a thread until it ends, its time is over or it is
//! stopped. It may go on while the model says something else.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::bounded::Bounded;
use crate::interrupt;

/// How often a command is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long output is waited for after its writers were killed. One that left the group may hold it open.
const GRACE: Duration = Duration::from_millis(500);
/// Most commands that run at a time.
const MOST: usize = 16;

/// What to run, and how much of it.
pub(super) struct Task<'t> {
    /// For `sh -c`.
    pub(super) command: &'t str,
    pub(super) folder: &'t Path,
    /// Added to the environment.
    pub(super) variables: &'t [(String, String)],
    /// Standard input; without it there is none.
    pub(super) input: Option<String>,
    /// Most time.
    pub(super) limit: Duration,
    /// Most bytes of output between two reports.
    pub(super) output: usize,
}

/// A command that was started.
pub(super) struct Job {
    shared: Arc<Shared>,
    done: Receiver<Option<String>>,
    started: Instant,
}

struct Shared {
    output: Mutex<Bounded>,
    /// Why it should end, when it should.
    stop: Mutex<Option<&'static str>>,
    limit: usize,
}

/// What is known after some waiting.
pub(super) enum Waited {
    /// It ended; what there is to say about that, if not that all is well.
    Ended(Option<String>),
    /// It goes on.
    Running,
}

/// What Ctrl-C means while a command is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CtrlC {
    /// The command ends.
    Stops,
    /// The waiting ends.
    LeavesIt,
}

impl Job {
    pub(super) fn start(task: Task<'_>) -> Result<Self> {
        let stdin = if task.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        // One pipe for both, so that lines are in the order in which they were written.
        let (reader, writer) = io::pipe().context("cannot make a pipe")?;
        // Before the command: there is no moment at which that could be left alone.
        let group = Group::new().context("cannot start a shell")?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", task.command])
            .envs(task.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(task.folder)
            .stdin(stdin)
            .stdout(writer.try_clone().context("cannot make a pipe")?)
            .stderr(writer)
            .process_group(group.id.as_raw_nonzero().get());
        let mut child = shell.spawn().context("cannot start a shell")?;
        // It holds the writing ends, without which the reader would never come to an end.
        drop(shell);
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), task.input) {
            // A command need not read it; its end ends this thread.
            thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
        }
        let shared = Arc::new(Shared {
            output: Mutex::new(Bounded::new(task.output)),
            stop: Mutex::new(None),
            limit: task.output,
        });
        let piped = collect(reader, Arc::clone(&shared));
        let (sender, done) = mpsc::channel();
        let (watched, limit) = (Arc::clone(&shared), task.limit);
        thread::spawn(move || {
            // Nobody may wait any more.
            let _ = sender.send(watch(child, &group, limit, &watched, &piped));
        });
        Ok(Self {
            shared,
            done,
            started: Instant::now(),
        })
    }

    /// Wait until it ends, at most for `most`.
    pub(super) fn wait(&self, most: Option<Duration>, ctrl_c: CtrlC) -> Waited {
        let start = Instant::now();
        loop {
            match self.done.recv_timeout(LOOK) {
                Ok(note) => return Waited::Ended(note),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Waited::Ended(Some("it cannot be watched".to_owned()));
                }
            }
            let pressed = interrupt::is_set();
            if pressed && ctrl_c == CtrlC::Stops {
                self.stop("stopped by the user");
            } else if pressed || most.is_some_and(|most| start.elapsed() >= most) {
                return Waited::Running;
            }
        }
    }

    /// Let it end soon, and say why.
    pub(super) fn stop(&self, why: &'static str) {
        lock(&self.shared.stop).get_or_insert(why);
    }

    /// What it wrote since this was asked last.
    pub(super) fn output(&self) -> String {
        let fresh = Bounded::new(self.shared.limit);
        std::mem::replace(&mut *lock(&self.shared.output), fresh).text()
    }

    /// Seconds since its start.
    pub(super) fn seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

impl Drop for Job {
    /// What nobody can ask for any more does not go on.
    fn drop(&mut self) {
        self.stop("stopped");
        // An error says that it has ended already.
        let _ = self.done.recv_timeout(2 * GRACE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wait for the end of a command, or end it. What there is to say about it, if anything.
fn watch(
    mut child: Child,
    group: &Group,
    limit: Duration,
    shared: &Shared,
    piped: &Receiver<()>,
) -> Option<String> {
    let start = Instant::now();
    let mut why = None;
    let status: Option<ExitStatus> = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(error) => why = Some(format!("cannot be waited for: {error}")),
        }
        if let Some(reason) = *lock(&shared.stop) {
            why = Some(reason.to_owned());
        } else if start.elapsed() >= limit {
            why = Some(format!("stopped after {} s", limit.as_secs()));
        }
        if why.is_some() {
            break None;
        }
        thread::sleep(LOOK);
    };
    // Also after its end: what it left in the background would go on unseen.
    group.kill();
    if status.is_none() {
        let _ = child.wait();
    }
    // Not for ever, and its end is no matter then.
    let _ = piped.recv_timeout(GRACE);
    why.or_else(|| {
        let status = status.filter(|s| !s.success())?;
        let code = status.code();
        Some(code.map_or_else(|| format!("{status}"), |code| format!("exit code {code}")))
    })
}

/// Read a pipe to its end on a thread, which says so.
fn collect(mut pipe: impl Read + Send + 'static, shared: Arc<Shared>) -> Receiver<()> {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 {
                break;
            }
            lock(&shared.output).add(&buffer[..n]);
        }
        // Nobody waits any more when a time limit came first.
        let _ = done.send(());
    });
    finished
}

/// A process group with one process in it from the beginning: one that ends the group, and so itself, when this program is
/// gone, however it went. It waits for the end of a pipe that only this program holds.
struct Group {
    guard: Child,
    id: Pid,
}

impl Group {
    fn new() -> io::Result<Self> {
        let guard = Command::new("sh")
            .args(["-c", "read -r _; kill -s KILL 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let id = i32::try_from(guard.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { guard, id })
    }

    /// End all that is in it.
    fn kill(&self) {
        // As long as the guard was not waited for, the number is no other group's.
        let _ = kill_process_group(self.id, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.guard.wait();
    }
}

/// Commands that go on in the background, by number.
#[derive(Default)]
pub(super) struct Jobs {
    last: usize,
    running: Vec<(usize, Job)>,
}

impl Jobs {
    /// An error when there is no room for another.
    pub(super) fn room(&self) -> Result<()> {
        ensure!(
            self.running.len() < MOST,
            "{MOST} jobs are running; end one with bash_stop"
        );
        Ok(())
    }

    /// Keep one; its number.
    pub(super) fn add(&mut self, job: Job) -> usize {
        self.last += 1;
        self.running.push((self.last, job));
        self.last
    }

    /// Take one out.
    pub(super) fn take(&mut self, number: usize) -> Result<Job> {
        let at = self.running.iter().position(|(n, _)| *n == number);
        let Some(at) = at else {
            let known: Vec<String> = self.running.iter().map(|(n, _)| n.to_string()).collect();
            match known.as_slice() {
                [] => bail!("there is no job {number}; none is running"),
                known => bail!("there is no job {number}; there are {}", known.join(", ")),
            }
        };
        Ok(self.running.remove(at).1)
    }

    /// Put one back under its number.
    pub(super) fn put_back(&mut self, number: usize, job: Job) {
        self.running.push((number, job));
        self.running.sort_by_key(|(number, _)| *number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when this program was killed: the pipe ends, and nothing else happens.
    #[test]
    fn a_group_ends_when_its_pipe_ends() {
        let mut group = Group::new().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & wait"])
            .process_group(group.id.as_raw_nonzero().get())
            .spawn()
            .unwrap();
        assert!(child.try_wait().unwrap().is_none());
        drop(group.guard.stdin.take());
        let status = child.wait().unwrap();
        assert!(!status.success(), "{status}");
        assert!(!group.guard.wait().unwrap().success());
    }
}
