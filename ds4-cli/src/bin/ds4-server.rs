//! `ds4-server --help` says what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_cli::server::run(std::env::args_os()).into()
}
