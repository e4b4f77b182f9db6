//! The line that a person types: edited on a terminal, with history, over several lines when they end in `\`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Result;
use rustyline::completion::Completer;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};

use crate::env;

/// Prompts that are kept.
const KEPT: usize = 512;

/// What a person does at a prompt.
pub(crate) enum Input {
    Line(String),
    Interrupt,
    End,
}

/// An editor with the history that all programs share. What is pasted is one input, whatever its lines.
pub(crate) struct Prompt {
    editor: Editor<Lines, FileHistory>,
    history: Option<PathBuf>,
    mark: &'static str,
}

impl Prompt {
    /// With the sign `mark` before each input; `None` where standard input is no terminal.
    pub(crate) fn on_terminal(mark: &'static str) -> Result<Option<Self>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let config = Config::builder()
            .max_history_size(KEPT)?
            .history_ignore_dups(true)?
            .bracketed_paste(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Lines));
        let history = env::history();
        if let Some(file) = history.as_ref().filter(|file| file.exists())
            && let Err(error) = editor.load_history(file)
        {
            writeln!(
                io::stderr(),
                "no earlier prompts: {}: {error}",
                file.display()
            )?;
        }
        Ok(Some(Self {
            editor,
            history,
            mark,
        }))
    }

    /// Wait for the next input, and keep it.
    pub(crate) fn read(&mut self) -> Result<Input> {
        let typed = match self.editor.readline(self.mark) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Input::Interrupt),
            Err(ReadlineError::Eof) => return Ok(Input::End),
            Err(error) => return Err(error.into()),
        };
        if !typed.trim().is_empty() {
            self.editor.add_history_entry(typed.trim())?;
            if let Some(file) = &self.history
                && let Err(error) = self.editor.append_history(file)
            {
                writeln!(io::stderr(), "prompt not kept: {}: {error}", file.display())?;
            }
        }
        Ok(Input::Line(joined(&typed)))
    }
}

/// Whether Ctrl-C was the last thing that happened at a prompt: a second one leaves.
#[derive(Default)]
pub(crate) struct Interruptions(bool);

impl Interruptions {
    /// It was pressed: whether to leave.
    pub(crate) fn pressed(&mut self) -> bool {
        std::mem::replace(&mut self.0, true)
    }

    /// Something else happened; `interrupted` says whether Ctrl-C ended that.
    pub(crate) fn other(&mut self, interrupted: bool) {
        self.0 = interrupted;
    }
}

/// What is said at the first one.
pub(crate) const AGAIN: &str = "Ctrl-C again leaves";

/// A line that ends in a backslash goes on in the next one.
struct Lines;

fn goes_on(input: &str) -> bool {
    input.ends_with('\\')
}

/// The input without the backslashes that only said that it goes on.
fn joined(input: &str) -> String {
    input.replace("\\\n", "\n")
}

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if goes_on(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Lines {
    type Candidate = String;
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_the_end_of_a_line_says_that_it_goes_on() {
        assert!(goes_on("one\\") && goes_on("one\\\ntwo\\"));
        assert!(!goes_on("one") && !goes_on("one\\\ntwo") && !goes_on(""));
        assert_eq!(joined("one\\\ntwo \\n\nthree"), "one\ntwo \\n\nthree");
    }

    #[test]
    fn two_interruptions_leave_unless_something_happens_between_them() {
        let mut seen = Interruptions::default();
        assert!(!seen.pressed());
        seen.other(false);
        assert!(!seen.pressed());
        assert!(seen.pressed());
        seen.other(true);
        assert!(seen.pressed());
    }
}
