//! The program `ds4`: thin subcommands over the libraries, and one exit code for each kind of failure.
//!
//! ```
//! let arguments = ["ds4", "inspect", concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf")];
//! assert_eq!(ds4_cli::run(arguments), ds4_cli::Exit::Ok);
//! assert_eq!(ds4_cli::run(["ds4", "inspect", "nowhere.gguf"]), ds4_cli::Exit::ModelFile);
//! ```

pub mod agent;
mod args;
mod bench;
mod compare;
mod convert;
mod edit;
pub mod eval;
mod exit;
pub mod frontier;
mod imatrix;
mod inspect;
mod progress;
mod quantize;
mod reading;
mod requant;
mod running;
pub mod server;
mod split;

use std::ffi::OsString;

use clap::Parser;

pub use exit::Exit;

/// Parse the command line, run the subcommand, report an error on standard error.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    let args = match args::Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    let result = match args.command {
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
    };
    exit::report(result)
}
