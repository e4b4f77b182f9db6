//! `ds4 bench`: tokens a second of one model on this machine.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::{Engine, Logits, NoTap, Options, Session, Token};
use serde_json::json;

use crate::args::Bench;
use crate::running::file_name;

pub(crate) fn run(args: &Bench) -> Result<()> {
    let (prompt, generate) = (args.prompt.get(), args.generate.get());
    let mut options = Options::default();
    options.threads = args.threads.count()?;
    options.context = Some(prompt + generate);
    let engine = Engine::from_gguf(Gguf::open(&args.model)?, options)
        .with_context(|| args.model.display().to_string())?;
    let tokens = tokens(prompt + generate, engine.config().vocab);
    let (question, answer) = tokens.split_at(prompt);

    // The first pass brings weights into memory and is not counted.
    read(&mut engine.session()?, question)?;
    let mut session = engine.session()?;
    let start = Instant::now();
    read(&mut session, question)?;
    let prefill = start.elapsed().as_secs_f64();
    for &token in answer {
        session.push(token)?;
    }
    let decode = start.elapsed().as_secs_f64() - prefill;
    report(args, prompt as f64 / prefill, generate as f64 / decode)
}

fn read(session: &mut Session, prompt: &[Token]) -> Result<()> {
    Ok(session.run(prompt, Logits::Last, &mut NoTap, &mut |_| {})?)
}

fn report(args: &Bench, prefill: f64, decode: f64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = json!({
            "model": file_name(&args.model),
            "prompt": args.prompt,
            "generated": args.generate,
            "threads": args.threads.count()?,
            "prefill_tokens_per_second": prefill,
            "decode_tokens_per_second": decode,
        });
        writeln!(out, "{report:#}")?;
    } else {
        writeln!(out, "prefill {prefill:8.1} tok/s  ({} tokens)", args.prompt)?;
        writeln!(
            out,
            "decode  {decode:8.1} tok/s  ({} tokens)",
            args.generate
        )?;
    }
    Ok(())
}

/// `count` token ids below `vocab`, scattered, always the same: a multiplicative walk over the integers.
fn tokens(count: usize, vocab: usize) -> Vec<Token> {
    let step = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (0..count)
        .map(|i| (step(i) % vocab.max(1) as u64) as Token)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_of_the_vocabulary_and_scattered() {
        let tokens = tokens(1000, 300);
        assert!(tokens.iter().all(|t| *t < 300));
        let mut distinct = tokens.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 250, "{}", distinct.len());
        assert_eq!(tokens, super::tokens(1000, 300));
    }
}
