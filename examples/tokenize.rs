//! Text to token ids and back, with the tokenizer that a GGUF carries.
//!
//! ```text
//! cargo run --example tokenize -- model.gguf "How many tokens?"
//! cargo run --example tokenize -- model.gguf --decode "0,17,42"
//! ```
//! The first line is the list of ids; then one token a line. What the text says stays text: `<think>` is seven characters unless
//! `--special` is given.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use ds4_gguf::Gguf;
use ds4_model::tokenizer::Special;
use ds4_model::{Token, Tokenizer};

#[derive(Parser)]
struct Args {
    /// The model.
    model: PathBuf,
    /// The text, or with --decode ids separated by commas.
    text: String,
    /// From ids to text.
    #[arg(long)]
    decode: bool,
    /// Read control tokens in the text as what they are.
    #[arg(long)]
    special: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&args.model)?)?;
    if args.decode {
        let ids = args
            .text
            .split([',', ' ', '[', ']'])
            .filter(|id| !id.is_empty());
        let ids: Vec<Token> = ids
            .map(|id| id.parse().with_context(|| format!("`{id}` is no token id")))
            .collect::<Result<_, _>>()?;
        println!("{}", tokenizer.decode(&ids));
        return Ok(());
    }
    let special = if args.special {
        Special::All
    } else {
        Special::None
    };
    let ids = tokenizer.encode(&args.text, special);
    println!("{ids:?}");
    for id in ids {
        println!(
            "{id:>7}  {:?}",
            String::from_utf8_lossy(tokenizer.token_bytes(id))
        );
    }
    Ok(())
}
