//! Options of the original that this build does not have. They are refused by name: whoever gives one counts on it.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, Parser};

use crate::chat::line;
use crate::exit::{self, Exit, Usage};
use crate::{env, help};

/// Why, and the options.
const REFUSED: [(&str, &[&str]); 10] = [
    ("`ds4` and `ds4-bench` write profiles", &["expert-profile"]),
    (
        "this build computes on the processor alone",
        &[
            "rocm",
            "hip",
            "metal",
            "cuda",
            "gpu-vram",
            "gpu-devices",
            "cuda-tensor-parallel",
            "power",
        ],
    ),
    (
        "this build maps all weights into memory and streams none",
        &[
            "ssd-streaming",
            "ssd-streaming-cold",
            "ssd-streaming-cache-experts",
            "ssd-streaming-full-layers",
            "ssd-streaming-preload-experts",
            "simulate-used-memory",
        ],
    ),
    (
        "this build decodes without drafts",
        &[
            "mtp",
            "mtp-model",
            "mtp-draft",
            "mtp-margin",
            "mtp-exact-sampling",
            "dspark",
            "dspark-confidence",
            "dspark-strict",
            "glm-mtp",
            "glm-mtp-timing",
        ],
    ),
    (
        "this build has no such input",
        &[
            "dir-steering-file",
            "dir-steering-ffn",
            "dir-steering-attn",
            "dir-steering-policy",
            "think-level",
            "prefix-file",
            "vision",
        ],
    ),
    (
        "this build runs on one machine",
        &[
            "role",
            "layers",
            "listen",
            "coordinator",
            "dist-prefill-chunk",
            "dist-prefill-window",
            "dist-activation-bits",
            "dist-replay-check",
            "tensor-parallel",
            "transport",
            "rdma-device",
            "rdma-gid-index",
            "tensor-parallel-token-prefill",
            "debug",
            "debug-hash",
        ],
    ),
    (
        "importance is collected by `ds4 imatrix MODEL TEXT OUTPUT`",
        &["imatrix-min-expert-samples"],
    ),
    (
        "the numbers are checked by `--decode-consistency N`",
        &[
            "head-test",
            "first-token-test",
            "metal-graph-test",
            "metal-graph-full-test",
            "metal-graph-prompt-test",
        ],
    ),
    ("the server is `ds4-server`", &["server"]),
    (
        "timelines are kept where prompts end and conversations part; `--kv-cache-min-tokens N` says from which length",
        &[
            "kv-cache-cold-max-tokens",
            "kv-cache-continued-interval-tokens",
            "kv-cache-boundary-trim-tokens",
            "kv-cache-boundary-align-tokens",
        ],
    ),
];

/// Most values that one of them has.
const VALUES: usize = 2;

/// The command line with these options, which help does not show.
pub(crate) fn add_to(command: Command) -> Command {
    let own: Vec<String> = command
        .get_arguments()
        .filter_map(|a| a.get_long().map(str::to_owned))
        .collect();
    let options = REFUSED.iter().flat_map(|(_, names)| names.iter());
    let options = options.filter(|name| !own.iter().any(|own| own == *name));
    command.args(options.map(|&name| {
        Arg::new(name)
            .long(name)
            .num_args(0..=VALUES)
            .action(ArgAction::Append)
            .hide(true)
    }))
}

/// The command line of a program, with the original's spellings; what is wrong with it has been said when there is none.
pub(crate) fn parse<A: Parser>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<A, Exit> {
    parse_with(arguments, None)
}

/// As [`parse`], of a program that people type `commands` to.
pub(crate) fn parse_with<A: Parser>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    commands: Option<&'static str>,
) -> Result<A, Exit> {
    let arguments = line::as_upstream(arguments.into_iter().map(Into::into).collect());
    let command = help::add_to(A::command(), commands);
    if let Some(shown) = help::topic(&arguments, command.clone(), commands) {
        return Err(exit::report(shown));
    }
    let matches = add_to(command)
        // As the original takes them: of an option that is there twice, the last one counts.
        .args_override_self(true)
        .try_get_matches_from(arguments)
        .map_err(|error| exit::usage(&error))?;
    match check(&matches) {
        Ok(()) => {
            let args = A::from_arg_matches(&matches).map_err(|error| exit::usage(&error))?;
            env::warn();
            Ok(args)
        }
        Err(error) => Err(exit::report(Err(error))),
    }
}

/// The first of them that was given, as an error.
pub(crate) fn check(matches: &ArgMatches) -> Result<()> {
    let refused = |name: &str| matches.try_contains_id(name).unwrap_or(false);
    let given = |name: &&&str| refused(name) && matches.value_source(name).is_some();
    for (why, names) in REFUSED {
        if let Some(name) = names.iter().find(given) {
            return Err(Usage(format!("--{name} is not taken: {why}")).into());
        }
    }
    Ok(())
}
