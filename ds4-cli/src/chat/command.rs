//! What can be typed at the prompt of a conversation.

use std::num::NonZeroUsize;

/// The list of commands.
pub(crate) const HELP: &str = "\
Commands of a conversation:
  /help          Show this list.
  /think         Think before answering.
  /think-max     Think as hard as the model can; needs a context of 393216 tokens.
  /nothink       Answer at once.
  /ctx N         Give the conversation a context of N tokens.
  /read FILE     Ask what is in FILE.
  /status        Show model, context and how answers are made.
  /reset         Forget the conversation.
  /quit, /exit   Leave; Ctrl-D does the same.
  Ctrl-C         Stop an answer; at the prompt, a second one leaves.
A line that ends in \\ goes on in the next one; what is pasted is one question.
";

/// A line, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    Empty,
    Ask(&'l str),
    Help,
    Think,
    ThinkMax,
    NoThink,
    Context(NonZeroUsize),
    Read(&'l str),
    Status,
    Reset,
    Quit,
}

/// Understand a line. A question may have many lines; one that begins with `/` is a command.
///
/// # Errors
/// What is wrong with the command, for the person who typed it.
pub(super) fn parse(line: &str) -> Result<Line<'_>, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(Line::Empty);
    }
    if !line.starts_with('/') {
        return Ok(Line::Ask(line));
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let alone = |command| match rest {
        "" => Ok(command),
        _ => Err(format!("{name} stands alone, found `{rest}` after it")),
    };
    match name {
        "/help" => alone(Line::Help),
        "/think" => alone(Line::Think),
        "/think-max" => alone(Line::ThinkMax),
        "/nothink" => alone(Line::NoThink),
        "/status" => alone(Line::Status),
        "/reset" => alone(Line::Reset),
        "/quit" | "/exit" => alone(Line::Quit),
        "/ctx" => match rest.parse() {
            Ok(tokens) => Ok(Line::Context(tokens)),
            Err(_) => Err(format!(
                "/ctx needs a number of tokens, at least 1, found `{rest}`"
            )),
        },
        "/read" => match rest {
            "" => Err("/read needs the path of a file".to_owned()),
            path => Ok(Line::Read(path)),
        },
        _ => Err(format!("no command `{name}`; /help lists them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_questions_or_commands() {
        let tokens = NonZeroUsize::new(4096).unwrap();
        for (line, meant) in [
            ("  ", Line::Empty),
            (" What?\nAnd why? \n", Line::Ask("What?\nAnd why?")),
            ("/help", Line::Help),
            ("/think ", Line::Think),
            ("/think-max", Line::ThinkMax),
            ("/nothink", Line::NoThink),
            ("/ctx  4096", Line::Context(tokens)),
            ("/read a file.txt ", Line::Read("a file.txt")),
            ("/status", Line::Status),
            ("/reset", Line::Reset),
            ("/quit", Line::Quit),
            ("/exit", Line::Quit),
        ] {
            assert_eq!(parse(line), Ok(meant), "{line}");
        }
    }

    #[test]
    fn a_command_that_makes_no_sense_says_why() {
        for (line, words) in [
            ("/ctx", "found ``"),
            ("/ctx 0", "`0`"),
            ("/ctx many", "`many`"),
            ("/read", "path"),
            ("/think hard", "`hard`"),
            ("/usr/bin", "/help"),
        ] {
            let why = parse(line).unwrap_err();
            assert!(why.contains(words), "{line}: {why}");
        }
    }

    #[test]
    fn help_names_every_command() {
        for name in [
            "/help",
            "/think",
            "/think-max",
            "/nothink",
            "/ctx",
            "/read",
            "/status",
            "/reset",
            "/quit",
            "/exit",
        ] {
            assert!(HELP.contains(name), "{name}");
        }
    }
}
