//! Developer commands of ds4: `cargo xtask help` lists them.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program reports by printing"
)]

mod bench;
mod bindgen;
mod ci;
mod clients;
mod demo_model;
mod examples;
mod kernels;
mod shell;
mod synthetic;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Developer commands of ds4.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything continuous integration runs, in the same order.
    Ci(ci::Args),
    /// Drive ds4-server with the official clients of OpenAI and Anthropic, and its page with a browser.
    Clients,
    /// The rules a compiler does not check: layers, file sizes, unsafe files, licences, documents.
    Tidy,
    /// Benches of the libraries and tokens a second of the whole engine; JSON and charts in target/bench.
    Bench(bench::Args),
    /// Compile the GPU kernels for every target and hold them against their budgets.
    Kernels(kernels::Args),
    /// Make the bindings of ds4-hip again from HIP's header.
    Bindgen(bindgen::Args),
    /// Make the demo models again from what was trained.
    DemoModel(demo_model::Args),
    /// Write a GGUF with the first layers of V4-Flash in true dimensions and random weights.
    Synthetic(synthetic::Args),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = workspace::root()?;
    match Args::parse().command {
        Command::Ci(args) => ci::run(&root, &args),
        Command::Clients => clients::run(&root).map(drop),
        Command::Tidy => tidy::run(&root),
        Command::Bench(args) => bench::run(&root, &args),
        Command::Kernels(args) => kernels::run(&root, &args),
        Command::Bindgen(args) => bindgen::run(&root, &args),
        Command::DemoModel(args) => demo_model::run(&root, &args),
        Command::Synthetic(args) => synthetic::run(&args),
    }
}
