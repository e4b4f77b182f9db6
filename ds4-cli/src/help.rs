//! `--help TOPIC`: a part of a program's help.

use std::ffi::OsString;
use std::io::Write;

use anyhow::Result;
use clap::Command;

use crate::exit::Usage;

/// Topics and the options that belong to them; every other option belongs to the first one.
const TOPICS: [(&str, &[&str]); 10] = [
    ("runtime", &[]),
    (
        "sampling",
        &[
            "prompt",
            "prompt-file",
            "chat-prompt-file",
            "system",
            "raw",
            "tokens",
            "temp",
            "top-p",
            "min-p",
            "top-k",
            "seed",
            "default-temperature",
        ],
    ),
    (
        "thinking",
        &[
            "think",
            "think-max",
            "nothink",
            "soft-limit-reply-budget",
            "soft-limit-think-close-rank",
            "hard-limit-reply-budget",
        ],
    ),
    (
        "diagnostics",
        &[
            "inspect",
            "dump-tokens",
            "dump-logits",
            "dump-logprobs",
            "logprobs-top-k",
            "decode-consistency",
            "perplexity-file",
            "expert-profile",
            "imatrix-dataset",
            "imatrix-out",
            "imatrix-max-prompts",
            "imatrix-max-tokens",
            "semantic-smoke",
            "decode-self-check",
            "teacher-force-control",
            "teacher-force-expect-fnv64",
            "dump-frontier-logits-dir",
        ],
    ),
    (
        "api",
        &[
            "host",
            "port",
            "alias",
            "url",
            "api-key",
            "remote-model",
            "timeout",
            "allowed-host",
            "cors",
            "max-body-mb",
            "max-queue",
            "sessions",
            "mixed-prefill-quantum",
            "tool-memory-max-ids",
        ],
    ),
    (
        "kv-cache",
        &["kv-disk-dir", "kv-disk-space-mb", "kv-cache-min-tokens"],
    ),
    (
        "sessions",
        &["session-dir", "resume", "transcript", "no-transcript"],
    ),
    (
        "tools",
        &[
            "yes",
            "non-interactive",
            "root",
            "builtin",
            "tools",
            "max-steps",
            "bash-timeout",
            "max-output",
        ],
    ),
    (
        "benchmark",
        &[
            "ctx-start",
            "ctx-max",
            "step-incr",
            "step-mul",
            "ctx-alloc",
            "gen-tokens",
            "csv",
            "svg",
            "snapshot-max-bytes",
            "show-output",
        ],
    ),
    (
        "evaluation",
        &[
            "cases",
            "suite",
            "questions",
            "case-sequence",
            "list-cases",
            "trace",
            "retry-incomplete",
            "regrade-trace",
            "self-test-extractors",
            "pause-ms",
            "plain",
        ],
    ),
];

/// What can be typed to a program, if it listens to people.
type Commands = Option<&'static str>;

/// The command line with a last line of help that names the topics.
pub(crate) fn add_to(command: Command, commands: Commands) -> Command {
    let line = format!(
        "{} --help TOPIC shows a part: {}.",
        command.get_name(),
        names(&command, commands).join(", ")
    );
    command.after_help(line)
}

/// `--help TOPIC`: shown, when that is what was asked for.
pub(crate) fn topic(
    arguments: &[OsString],
    command: Command,
    commands: Commands,
) -> Option<Result<()>> {
    let (help, topic) = (arguments.get(1)?, arguments.get(2)?.to_str()?);
    let asked = (help == "--help" || help == "-h") && arguments.len() == 3;
    (asked && !topic.starts_with('-')).then(|| show(command, topic, commands))
}

fn show(mut command: Command, topic: &str, commands: Commands) -> Result<()> {
    match (topic, commands) {
        ("commands", Some(text)) => Ok(std::io::stdout().lock().write_all(text.as_bytes())?),
        ("all", _) => Ok(command.print_long_help()?),
        _ => {
            let names = names(&command, commands);
            if !names.contains(&topic) {
                let names = names.join(", ");
                return Err(Usage(format!("no help on `{topic}`, expected one of {names}")).into());
            }
            Ok(part(command, topic).print_long_help()?)
        }
    }
}

/// The command with the options of one topic alone.
fn part(command: Command, topic: &str) -> Command {
    let subcommands: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    let command = command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .after_help("")
        .help_template("{all-args}")
        .mut_args(|arg| {
            let hide = arg.is_hide_set() || topic_of(arg.get_long()) != topic;
            arg.hide(hide)
        });
    subcommands.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |c| c.hide(true))
    })
}

/// The topics that a program has something to say on.
fn names(command: &Command, commands: Commands) -> Vec<&'static str> {
    let has = |name: &str| {
        let mut own = command.get_arguments().filter(|arg| !arg.is_hide_set());
        own.any(|arg| topic_of(arg.get_long()) == name)
    };
    let topics = TOPICS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| has(name));
    let commands = commands.map(|_| "commands");
    ["all"].into_iter().chain(topics).chain(commands).collect()
}

/// The topic of an option.
fn topic_of(option: Option<&str>) -> &'static str {
    let belongs = |(_, options): &&(_, &[&str])| option.is_some_and(|name| options.contains(&name));
    TOPICS
        .iter()
        .find(belongs)
        .map_or(TOPICS[0].0, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::HashSet;

    fn line(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn help_on_a_topic_is_heard_only_where_it_is_one() {
        for (given, heard) in [
            ("ds4 --help --raw", false),
            ("ds4 --help", false),
            ("ds4 -p --help x", false),
            ("ds4 --help nothing", true),
            ("ds4 --help api", true),
        ] {
            let shown = topic(&line(given), crate::args::Args::command(), None);
            assert_eq!(shown.is_some(), heard, "{given}");
            assert!(shown.is_none_or(|result| result.is_err()), "{given}");
        }
    }

    /// An option that was renamed would be left behind under the first topic.
    #[test]
    fn every_option_of_a_topic_is_one_of_some_program_and_belongs_to_one_topic() {
        let programs = [
            crate::args::Args::command(),
            crate::frontier::args::Args::command(),
            crate::eval::args::Args::command(),
            crate::agent::args::Args::command(),
        ];
        let known: HashSet<&str> = programs
            .iter()
            .flat_map(Command::get_arguments)
            .filter_map(|arg| arg.get_long())
            .collect();
        let listed = |(_, options): &(&str, &'static [&'static str])| options.to_vec();
        // Some of these are the server's.
        let others = TOPICS
            .iter()
            .filter(|(name, _)| !["api", "kv-cache", "sampling"].contains(name));
        for option in others.flat_map(listed) {
            assert!(known.contains(option), "--{option}");
        }
        let listed: Vec<&str> = TOPICS.iter().flat_map(listed).collect();
        let once: HashSet<&str> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len());
    }

    #[test]
    fn a_part_shows_its_own_options_alone() {
        let shown = part(crate::args::Args::command(), "thinking")
            .render_long_help()
            .to_string();
        assert!(shown.contains("--think-max"), "{shown}");
        for other in ["--temp", "--model", "inspect", "--help", "Usage"] {
            assert!(!shown.contains(other), "{other}: {shown}");
        }
    }
}
