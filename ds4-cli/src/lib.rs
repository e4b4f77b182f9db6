//! The program `ds4`: a conversation and thin subcommands over the libraries, and one exit code for each kind of failure.
//!
//! ```
//! let arguments = ["ds4", "inspect", concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf")];
//! assert_eq!(ds4_cli::run(arguments), ds4_cli::Exit::Ok);
//! assert_eq!(ds4_cli::run(["ds4", "inspect", "nowhere.gguf"]), ds4_cli::Exit::ModelFile);
//! ```

pub mod agent;
mod args;
mod bench;
mod chat;
mod compare;
mod complete;
mod convert;
mod edit;
mod env;
pub mod eval;
mod exit;
mod expert_profile;
mod fit;
pub mod frontier;
mod help;
mod imatrix;
mod inspect;
mod interrupt;
mod lock;
mod progress;
mod prompt;
mod quantize;
mod reading;
mod refused;
mod requant;
mod running;
mod sampling;
pub mod server;
mod split;
mod thinking;
mod threads;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

pub use exit::Exit;

/// Parse the command line, run what it asks for, report an error on standard error.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    let arguments = chat::line::as_upstream(arguments.into_iter().map(Into::into).collect());
    let commands = Some(chat::command::HELP);
    let command = help::add_to(args::Args::command(), commands);
    if let Some(shown) = help::topic(&arguments, command.clone(), commands) {
        return exit::report(shown);
    }
    let parsed = refused::add_to(command)
        .try_get_matches_from(arguments)
        .and_then(|matches| Ok((args::Args::from_arg_matches(&matches)?, matches)));
    let (args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return exit::usage(&error),
    };
    env::warn();
    let Some(command) = args.command else {
        let allowed = refused::check(&matches).and_then(|()| Ok(lock::take()?));
        return exit::report_as(allowed.and_then(|_lock| chat::run(&args.chat)));
    };
    let result = match command {
        args::Command::Inspect(args) => inspect::run(&args),
        args::Command::Bench(args) => bench::run(&args),
        args::Command::Convert(args) => convert::run(&args),
        args::Command::Imatrix(args) => imatrix::run(&args),
        args::Command::Compare(args) => compare::run(&args),
        args::Command::Quantize(args) => quantize::run(&args),
        args::Command::Requant(args) => requant::run(&args),
        args::Command::Split(args) => split::split(&args),
        args::Command::Merge(args) => split::merge(&args),
        args::Command::Edit(args) => edit::run(&args),
        args::Command::Fit(args) => return exit::report_as(fit::run(&args)),
        args::Command::Env => env::run(),
        args::Command::Completions(args) => complete::completions(&args),
        args::Command::Man(args) => complete::man(&args),
    };
    exit::report(result)
}
