//! `ds4-bench --help` says what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_cli::frontier::run(std::env::args_os()).into()
}
