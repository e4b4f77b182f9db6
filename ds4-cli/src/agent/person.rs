//! Who sits at the terminal: asked for tasks, and whether a call may be made.

use std::io::{self, BufRead, Write};

use anyhow::Result;
use serde_json::Value;

use crate::prompt::{Input, Prompt};

/// What may be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is made.
    Yes,
    /// It is not, and the model is told.
    No,
}

/// Most characters of an argument that are shown; of a command, all are, since its end counts as much as its beginning.
const SHOWN: usize = 2000;

/// The person's choices so far.
pub(super) struct Person {
    /// Every call is made without asking.
    always: bool,
    /// There is nobody to ask.
    absent: bool,
    /// Where tasks are typed, on a terminal.
    prompt: Option<Prompt>,
}

impl Person {
    pub(super) fn new(always: bool, absent: bool) -> Self {
        Self {
            always,
            absent,
            prompt: None,
        }
    }

    /// The next task or command: typed at a prompt, or a line of what standard input is otherwise.
    pub(super) fn task(&mut self) -> Result<Input> {
        if self.prompt.is_none() {
            self.prompt = Prompt::on_terminal("> ")?;
        }
        match &mut self.prompt {
            Some(prompt) => prompt.read(),
            None => Ok(line()?.map_or(Input::End, Input::Line)),
        }
    }

    /// Show a call, and ask unless that was settled.
    pub(super) fn allows(&mut self, name: &str, arguments: &str) -> Result<Verdict> {
        let mut out = io::stderr().lock();
        writeln!(out, "· {}", described(name, arguments))?;
        if self.always {
            return Ok(Verdict::Yes);
        }
        if self.absent {
            writeln!(
                out,
                "  not made: nobody is asked here, and --yes was not given"
            )?;
            return Ok(Verdict::No);
        }
        write!(out, "  make this call? [y]es, [n]o, [a]lways: ")?;
        out.flush()?;
        drop(out);
        // The end of the input is no consent.
        let answer = line()?.unwrap_or_default();
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Verdict::Yes,
            "a" | "always" => {
                self.always = true;
                Verdict::Yes
            }
            _ => Verdict::No,
        })
    }
}

fn line() -> Result<Option<String>> {
    let mut line = String::new();
    let n = io::stdin().lock().read_line(&mut line)?;
    Ok((n > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// A call on a few lines.
fn described(name: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let mut out = plain(name);
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let count = text.chars().count();
        let most = if name == "command" { count } else { SHOWN };
        let shown: String = text.chars().take(most).collect();
        let shown = plain(&shown).replace('\n', "\n      ");
        out += &format!("\n    {}: {shown}", plain(name));
        if count > most {
            out += &format!(" … {} characters more", count - most);
        }
    }
    out
}

/// A text for a terminal: characters that could make it show something else are spelled out, line breaks and tabs excepted.
pub(super) fn plain(text: &str) -> String {
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\n' && c != '\t') || turns(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_without_tricks() {
        let long = "x".repeat(3000);
        let arguments =
            serde_json::json!({"command": "a\u{1b}[2Kb\nc\u{202e}", "n": 3, "long": long});
        let shown = described("bash", &arguments.to_string());
        let command = "command: a\\u{1b}[2Kb\n      c\\u{202e}\n";
        assert!(shown.contains(command), "{shown}");
        assert!(shown.contains("n: 3\n"), "{shown}");
        assert!(shown.ends_with("xx … 1000 characters more"), "{shown}");
        let command = serde_json::json!({"command": format!("{long}; rm")});
        assert!(described("bash", &command.to_string()).ends_with("x; rm"));
    }

    #[test]
    fn with_nobody_there_only_what_was_allowed_before_is_done() {
        assert_eq!(
            Person::new(false, true).allows("t", "{}").unwrap(),
            Verdict::No
        );
        assert_eq!(
            Person::new(true, true).allows("t", "{}").unwrap(),
            Verdict::Yes
        );
    }
}
