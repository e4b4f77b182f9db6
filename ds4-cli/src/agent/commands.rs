//! What can be typed to the agent beside tasks.

use std::io::{self, Write};

use anyhow::{Result, bail};

use super::person::plain;
use super::transcript::now;
use super::turn::Agent;

pub(super) const HELP: &str = "\
/new              begin anew
/save [TITLE]     save the conversation; from then on it is saved when it is left, too
/list             show what is saved
/switch ID        go on with a saved conversation; the beginning of its name will do, or `last`
/del ID           delete a saved conversation
/history [N]      show the last N messages, 10 without a number
/compact          go on with a summary of the conversation instead of all of it
/status           show how long the conversation is
/tools            show what the model may call
/help             show this
/quit, /exit      end; Ctrl-D does the same
Ctrl-C            stop what is being done; at the prompt, a second one ends
A line that ends in \\ goes on in the next one; what is pasted is one task.
";

/// Messages that `/history` shows, when nobody says how many.
const HISTORY: usize = 10;
/// Most characters of a message that it shows.
const SHOWN: usize = 400;

/// An input, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'l> {
    Nothing,
    Task(&'l str),
    New,
    Save(&'l str),
    List,
    Switch(&'l str),
    Delete(&'l str),
    History(usize),
    Compact,
    Status,
    Tools,
    Help,
    Quit,
}

/// Understand an input; one that begins with `/` is a command.
///
/// # Errors
/// What is wrong with the command, for the person who typed it.
pub(super) fn parse<'l>(input: &'l str) -> Result<Command<'l>, String> {
    let input = input.trim();
    if input.is_empty() {
        return Ok(Command::Nothing);
    }
    if !input.starts_with('/') {
        return Ok(Command::Task(input));
    }
    let (name, rest) = input.split_once(char::is_whitespace).unwrap_or((input, ""));
    let rest = rest.trim();
    let alone = |command| match rest {
        "" => Ok(command),
        _ => Err(format!("{name} stands alone, found `{rest}` after it")),
    };
    let named = |command: fn(&'l str) -> Command<'l>| match rest {
        "" => Err(format!(
            "{name} needs the name of a saved conversation; /list shows them"
        )),
        id => Ok(command(id)),
    };
    match name {
        "/new" => alone(Command::New),
        "/save" => Ok(Command::Save(rest)),
        "/list" => alone(Command::List),
        "/switch" => named(Command::Switch),
        "/del" => named(Command::Delete),
        "/history" if rest.is_empty() => Ok(Command::History(HISTORY)),
        "/history" => match rest.parse() {
            Ok(n) => Ok(Command::History(n)),
            Err(_) => Err(format!(
                "/history needs a number of messages, found `{rest}`"
            )),
        },
        "/compact" => alone(Command::Compact),
        "/status" => alone(Command::Status),
        "/tools" => alone(Command::Tools),
        "/help" => alone(Command::Help),
        "/quit" | "/exit" => alone(Command::Quit),
        _ => Err(format!("no command {name}; /help lists them")),
    }
}

/// Do what a command says; whether to go on.
pub(super) fn carry_out(agent: &mut Agent, command: &Command<'_>) -> Result<bool> {
    let mut out = io::stderr();
    match command {
        Command::Nothing => {}
        Command::Quit => return Ok(false),
        Command::Task(task) => agent.task(task)?,
        Command::New => {
            agent.keep()?;
            agent.forget()?;
        }
        Command::Save(title) => agent.save(title)?,
        Command::List => list(agent)?,
        Command::Switch(name) => {
            let id = agent.sessions.find(name)?;
            agent.keep()?;
            agent.resume(&id)?;
        }
        Command::Delete(name) => {
            let id = agent.sessions.find(name)?;
            if agent.kept.as_ref().is_some_and(|kept| kept.id == id) {
                bail!("{id} is the conversation at hand; /new leaves it");
            }
            agent.sessions.delete(&id)?;
            writeln!(out, "{id} is deleted")?;
        }
        Command::History(most) => history(agent, *most)?,
        Command::Compact => agent.compact()?,
        Command::Status => writeln!(out, "{}", agent.status())?,
        Command::Tools => {
            for tool in agent.toolbox.tools() {
                writeln!(out, "{}", tool.json())?;
            }
        }
        Command::Help => write!(out, "{HELP}")?,
    }
    Ok(true)
}

fn list(agent: &Agent) -> Result<()> {
    let mut out = io::stderr();
    let (now, model) = (now(), agent.session.engine().fingerprint().value());
    let all = agent.sessions.list()?;
    if all.is_empty() {
        writeln!(out, "nothing is saved")?;
    }
    for listed in all {
        let here = match &agent.kept {
            Some(kept) if kept.id == listed.id => '*',
            _ => ' ',
        };
        match listed.saved {
            Ok((saved, of)) => writeln!(
                out,
                "{here} {}  {:>8}  {:>4} messages  {}{}",
                listed.id,
                age(now.saturating_sub(saved.time)),
                saved.conversation.messages.len(),
                plain(&saved.title),
                if of == model {
                    ""
                } else {
                    "  (of another model)"
                }
            )?,
            Err(error) => writeln!(out, "{here} {}  cannot be read: {error:#}", listed.id)?,
        }
    }
    Ok(())
}

/// How long ago something was, by its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn history(agent: &Agent, most: usize) -> Result<()> {
    let mut out = io::stderr();
    let messages = &agent.conversation.messages;
    for message in &messages[messages.len().saturating_sub(most)..] {
        let role = serde_json::to_value(message.role).unwrap_or_default();
        let role = role.as_str().unwrap_or_default();
        let count = message.content.chars().count();
        let text: String = message.content.chars().take(SHOWN).collect();
        let text = plain(&text).replace('\n', "\n    ");
        let more = match count.saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" … {more} characters more"),
        };
        writeln!(out, "{role}: {text}{more}")?;
        for call in &message.tool_calls {
            writeln!(out, "  · {} {}", plain(&call.name), plain(&call.arguments))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_tasks_or_commands() {
        for (input, meant) in [
            (" ", Command::Nothing),
            (
                " Fix it.\nAll of it. ",
                Command::Task("Fix it.\nAll of it."),
            ),
            ("/new", Command::New),
            ("/save", Command::Save("")),
            ("/save two  words ", Command::Save("two  words")),
            ("/list", Command::List),
            ("/switch 6a", Command::Switch("6a")),
            ("/del 6a", Command::Delete("6a")),
            ("/history", Command::History(HISTORY)),
            ("/history 3", Command::History(3)),
            ("/compact", Command::Compact),
            ("/status", Command::Status),
            ("/tools", Command::Tools),
            ("/help", Command::Help),
            ("/exit", Command::Quit),
        ] {
            assert_eq!(parse(input), Ok(meant), "{input}");
        }
        for (input, words) in [
            ("/fly", "no command /fly"),
            ("/switch", "needs the name"),
            ("/del ", "needs the name"),
            ("/history many", "`many`"),
            ("/quit now", "`now`"),
        ] {
            let why = parse(input).unwrap_err();
            assert!(why.contains(words), "{input}: {why}");
        }
    }

    #[test]
    fn an_age_is_told_by_its_largest_unit() {
        for (seconds, shown) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (7199, "1 h"),
            (86_400 * 3, "3 d"),
        ] {
            assert_eq!(age(seconds), shown);
        }
    }
}
