//! Watch values inside the model while it reads a prompt: the mechanism behind the tests against per-layer references.
//!
//! ```text
//! cargo run --example tap_layers                          the output of each layer's attention
//! cargo run --example tap_layers -- --value ffn.out       another value; the example dump_graph names them all
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::path::PathBuf;

use clap::Parser;
use ds4_model::graph::NodeName;
use ds4_model::{Engine, Logits, Message, Options, Tap, Values};

#[derive(Parser)]
struct Args {
    /// The model.
    #[arg(default_value = ds4_examples::DEMO_MODEL)]
    model: PathBuf,
    /// The value to watch in every layer.
    #[arg(long, default_value = "attn.out")]
    value: String,
    /// What the model reads.
    #[arg(long, default_value = "What is the capital of France?")]
    prompt: String,
}

/// Prints what it sees.
struct Watch {
    value: String,
    seen: usize,
}

impl Tap for Watch {
    fn wants(&self, name: &NodeName) -> bool {
        name.as_str()
            .split_once('.')
            .is_some_and(|(_, value)| value == self.value)
    }

    fn see(&mut self, name: &NodeName, position: u32, rows: usize, values: Values<'_>) {
        self.seen += 1;
        match values {
            Values::F32(x) => {
                let size = (x.iter().map(|v| v * v).sum::<f32>() / x.len().max(1) as f32).sqrt();
                let last = &x[x.len() - x.len() / rows.max(1)..];
                println!(
                    "{name}  {rows} rows from {position}  size {size:9.4}  last row {:8.4?} …",
                    &last[..last.len().min(4)]
                );
            }
            Values::I32(ids) => println!(
                "{name}  {rows} rows from {position}  {:?} …",
                &ids[..ids.len().min(12)]
            ),
        }
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let engine = Engine::open(&args.model, Options::default())?;
    let mut session = engine.session()?;
    let mut watch = Watch {
        value: args.value,
        seen: 0,
    };
    let prompt = engine.render(&[Message::user(args.prompt)])?;
    session.run(&prompt, Logits::Last, &mut watch, &mut |_| {})?;
    anyhow::ensure!(
        watch.seen > 0,
        "no value is called `{}`; the example dump_graph names them",
        watch.value
    );
    println!("{} values seen", watch.seen);
    Ok(())
}
