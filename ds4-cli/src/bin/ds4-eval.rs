//! `ds4-eval --help` says what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_cli::eval::run(std::env::args_os()).into()
}
