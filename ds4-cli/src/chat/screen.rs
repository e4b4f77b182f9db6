//! Where an answer appears: itself on standard output, all the rest on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use ds4_model::chat::Delta;
use ds4_model::serve::{Update, Usage};
use indicatif::{ProgressBar, ProgressStyle};

/// The two streams, and what they can show.
pub(super) struct Screen {
    pub(super) out: Box<dyn Write>,
    pub(super) errors: Box<dyn Write>,
    /// Whether reasoning can be shown dim.
    dim: bool,
}

impl Screen {
    pub(super) fn of_this_terminal() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            out: Box::new(io::stdout()),
            errors: Box::new(io::stderr()),
            dim: io::stderr().is_terminal() && !plain,
        }
    }

    /// Streams of a test.
    #[cfg(test)]
    pub(super) fn into(out: Box<dyn Write>, errors: Box<dyn Write>) -> Self {
        Self {
            out,
            errors,
            dim: false,
        }
    }

    /// A line that is not part of an answer.
    pub(super) fn note(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.errors, "{line}")
    }
}

/// One answer on its way to the screen.
pub(super) struct Showing<'s> {
    screen: &'s mut Screen,
    bar: ProgressBar,
    thinking: bool,
    /// Whether a line of the answer is open.
    open: bool,
    started: Instant,
    /// When the prompt was read.
    read: Option<Duration>,
}

impl<'s> Showing<'s> {
    /// Of a prompt of `tokens`, some of which need not be read.
    pub(super) fn new(screen: &'s mut Screen, tokens: usize) -> Self {
        let bar = ProgressBar::new(tokens as u64);
        let style = ProgressStyle::with_template("reading {bar:40} {pos}/{len} tokens {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self {
            screen,
            bar,
            thinking: false,
            open: false,
            started: Instant::now(),
            read: None,
        }
    }

    /// Show what is new.
    pub(super) fn update(&mut self, update: &Update) -> io::Result<()> {
        if self.read.is_none() {
            self.bar.set_position(update.read as u64);
            if self.bar.length() == Some(update.read as u64) {
                self.bar.finish_and_clear();
                self.read = Some(self.started.elapsed());
            }
        }
        for delta in &update.deltas {
            self.delta(delta)?;
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if let Delta::Reasoning(text) = delta {
            let (on, mark) = match (self.thinking, self.screen.dim) {
                (true, _) => ("", ""),
                (false, true) => ("\x1b[2m", "<think>"),
                (false, false) => ("", "<think>"),
            };
            self.thinking = true;
            write!(self.screen.errors, "{on}{mark}{text}")?;
            return self.screen.errors.flush();
        }
        self.end_thinking()?;
        let out = &mut self.screen.out;
        match delta {
            Delta::Content(text) => {
                write!(out, "{text}")?;
                self.open = text.chars().next_back().map_or(self.open, |c| c != '\n');
            }
            Delta::Call { name, .. } => {
                let line = if self.open { "\n" } else { "" };
                write!(out, "{line}{name} ")?;
                self.open = true;
            }
            Delta::Arguments { json, .. } => write!(out, "{json}")?,
            Delta::Reasoning(_) => {}
        }
        out.flush()
    }

    fn end_thinking(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.thinking) {
            let off = if self.screen.dim { "\x1b[0m" } else { "" };
            writeln!(self.screen.errors, "</think>{off}")?;
        }
        Ok(())
    }

    /// End the last line; say what was read and written, and how fast.
    pub(super) fn finish(mut self, usage: Usage) -> io::Result<()> {
        self.end_thinking()?;
        if self.open {
            writeln!(self.screen.out)?;
        }
        self.screen.out.flush()?;
        let whole = self.started.elapsed();
        let read = self.read.unwrap_or(whole);
        let line = format!(
            "[prompt {}, {} known; answer {}]",
            speed(usage.prompt - usage.cached, read),
            usage.cached,
            speed(usage.completion, whole - read)
        );
        self.screen.note(&line)
    }
}

impl Drop for Showing<'_> {
    /// Whatever happened, what follows is not dim and no bar is left.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        let _ = self.end_thinking();
    }
}

fn speed(tokens: usize, time: Duration) -> String {
    let rate = tokens as f64 / time.as_secs_f64().max(1e-9);
    format!("{tokens} tokens {rate:.1} tok/s")
}
