//! What the parser of the command line has no way to say: `-sys`, and `--help TOPIC`.

use std::ffi::OsString;
use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;

use super::args::TOPICS;
use super::command;
use crate::args::Args;
use crate::exit::Usage;

/// Options whose value may look like an option.
const TAKE_ANYTHING: [&str; 4] = ["-p", "--prompt", "-sys", "--system"];

/// `-sys` as the long option that it is in the original, up to `--`.
pub(crate) fn as_upstream(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut is_value = true;
    for argument in &mut arguments {
        if argument == "--" {
            break;
        }
        let starts_value = !is_value && TAKE_ANYTHING.iter().any(|option| argument == option);
        if !is_value {
            if argument == "-sys" {
                *argument = "--system".into();
            } else if let Some(text) = argument.to_str().and_then(|a| a.strip_prefix("-sys=")) {
                *argument = format!("--system={text}").into();
            }
        }
        is_value = starts_value;
    }
    arguments
}

/// `ds4 --help TOPIC`: shown, when that is what was asked for.
pub(crate) fn help_topic(arguments: &[OsString]) -> Option<Result<()>> {
    let (help, topic) = (arguments.get(1)?, arguments.get(2)?.to_str()?);
    let asked = (help == "--help" || help == "-h") && arguments.len() == 3;
    (asked && !topic.starts_with('-')).then(|| show(topic))
}

fn show(topic: &str) -> Result<()> {
    let mut command = Args::command();
    if topic == "commands" {
        std::io::stdout()
            .lock()
            .write_all(command::HELP.as_bytes())?;
        return Ok(());
    }
    if topic != "all" {
        let Some((_, heading)) = TOPICS.iter().find(|(name, _)| *name == topic) else {
            let names: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
            return Err(Usage(format!(
                "no help on `{topic}`, expected all, {} or commands",
                names.join(", ")
            ))
            .into());
        };
        let elsewhere = |arg: clap::Arg| {
            let hide = arg.get_help_heading() != Some(heading);
            arg.hide(hide)
        };
        command = command
            .disable_help_flag(true)
            .disable_version_flag(true)
            .mut_args(elsewhere)
            .help_template("{all-args}");
        let names: Vec<String> = command
            .get_subcommands()
            .map(|c| c.get_name().to_owned())
            .collect();
        for name in names {
            command = command.mut_subcommand(name, |c| c.hide(true));
        }
    }
    Ok(command.print_long_help()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn sys_is_an_option_and_a_value_is_none() {
        for (given, meant) in [
            ("ds4 -sys X -p Y", "ds4 --system X -p Y"),
            ("ds4 -sys=X", "ds4 --system=X"),
            ("ds4 -p -sys -sys X", "ds4 -p -sys --system X"),
            ("ds4 -sys -sys", "ds4 --system -sys"),
            ("ds4 -- -sys", "ds4 -- -sys"),
            ("-sys -m X", "-sys -m X"),
        ] {
            assert_eq!(as_upstream(line(given)), line(meant), "{given}");
        }
    }

    #[test]
    fn help_on_a_topic_is_heard_only_where_it_is_one() {
        for (given, heard) in [
            ("ds4 --help --raw", false),
            ("ds4 --help", false),
            ("ds4 -p --help x", false),
            ("ds4 --help nothing", true),
        ] {
            let shown = help_topic(&line(given));
            assert_eq!(shown.is_some(), heard, "{given}");
            assert!(shown.is_none_or(|result| result.is_err()), "{given}");
        }
    }
}
