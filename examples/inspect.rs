//! What is in a GGUF: metadata, tensors, sizes by role and type, bytes a decoded token reads, what cannot be decoded.
//!
//! ```text
//! cargo run --example inspect -- model.gguf [more.gguf …] [--json]
//! ```
//! Without a file it shows the demo model. Nothing but the header is read, so a file of 87 GB takes milliseconds.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ds4_gguf::Gguf;
use ds4_model::inspect::Report;

#[derive(Parser)]
struct Args {
    /// Files to look into; the first part of a split model stands for all of them.
    #[arg(default_value = ds4_examples::DEMO_MODEL)]
    files: Vec<PathBuf>,
    /// One JSON document a file.
    #[arg(long)]
    json: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    for path in &args.files {
        let gguf = Gguf::open(path)?;
        let report = Report::of(&gguf);
        if args.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&report.to_json())?)?;
        } else {
            writeln!(out, "{report}")?;
        }
    }
    Ok(())
}
