//! The recorded graph of a model, as Graphviz source or JSON.
//!
//! ```text
//! cargo run --example dump_graph > graph.dot && dot -Tsvg graph.dot > graph.svg
//! cargo run --example dump_graph -- model.gguf --json
//! ```
//! Two dumps of the same model are the same text, so a diff shows what a change did.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use ds4_model::graph::{to_dot, to_json};
use ds4_model::{Engine, Options};

#[derive(Parser)]
struct Args {
    /// The model.
    #[arg(default_value = ds4_examples::DEMO_MODEL)]
    model: PathBuf,
    /// Nodes, values and states as JSON.
    #[arg(long)]
    json: bool,
    /// The graph as the model file records it, before rewriting.
    #[arg(long)]
    unfused: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut options = Options::default();
    options.fuse = !args.unfused;
    let engine = Engine::open(&args.model, options)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", to_json(engine.graph(), engine.weights(), None))?;
    } else {
        writeln!(out, "{}", to_dot(engine.graph(), engine.weights()))?;
    }
    Ok(())
}
