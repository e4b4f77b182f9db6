//! `ds4 help` says what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_cli::run(std::env::args_os()).into()
}
