//! A model in ten lines: open, ask, print.
//!
//! ```text
//! cargo run --release --example embed
//! ```
#![expect(clippy::print_stdout, reason = "the answer")]

use ds4_model::{Engine, Message, Options, Sampler};

fn main() -> anyhow::Result<()> {
    let engine = Engine::open(ds4_examples::DEMO_MODEL, Options::default())?;
    let mut session = engine.session()?;
    session.sync(&engine.render(&[Message::user("What is the capital of France?")])?)?;
    for piece in session.generate(&mut Sampler::default(), &engine.stops()) {
        print!("{}", piece?.text);
    }
    println!();
    Ok(())
}
