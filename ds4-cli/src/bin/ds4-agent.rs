//! `ds4-agent --help` says what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_cli::agent::run(std::env::args_os()).into()
}
