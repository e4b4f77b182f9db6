//! What the model makes of a prompt, number by number.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use ds4_gguf::NewFile;
use ds4_model::chat::Conversation;
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Message, Token, Tokenizer, compare, diagnose};
use serde_json::Value;

use super::args::Chat;
use super::talk::raw_tokens;
use super::{open, open_file};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::reading;

/// The one thing of these that was asked for.
pub(super) fn run(args: &Chat, prompt: &str) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    if args.dump_tokens {
        let tokenizer = Tokenizer::from_gguf(&open_file(args)?).map_err(ds4_model::Error::from)?;
        let ids = raw_tokens(&tokenizer, prompt);
        let tokens = diagnose::Tokens {
            tokenizer: &tokenizer,
            ids: &ids,
        };
        writeln!(out, "{tokens}")?;
        return Ok(Exit::Ok);
    }
    // Before the work: a folder that is not there is no surprise for its end.
    let file = args.dump_logits.as_ref().or(args.dump_logprobs.as_ref());
    let file = file.map(|path| NewFile::create(path, true)).transpose()?;
    let engine = open(args, args.running.prefill_chunk.get())?;
    let tokens = tokens(&engine, args, prompt)?;
    let progress = Progress::counting("tokens");
    let mut on = |done: usize, total: usize| progress.at("", done as u64, total as u64);
    let json = match args.decode_consistency {
        Some(n) => {
            let found = diagnose::consistency(&engine, &tokens, n, &mut on)?;
            writeln!(out, "{found}")?;
            return Ok(if found.agrees() {
                Exit::Ok
            } else {
                Exit::Failed
            });
        }
        None if args.dump_logits.is_some() => diagnose::logits(&engine, &tokens, &mut on)?,
        None => diagnose::logprobs(
            &engine,
            &tokens,
            args.tokens.get(),
            args.logprobs_top_k.into(),
            &mut on,
        )?,
    };
    if let Some(file) = file {
        write(file, &json)?;
    }
    Ok(Exit::Ok)
}

/// A whole file, or none.
fn write(mut file: NewFile, json: &Value) -> Result<()> {
    writeln!(file, "{json:#}")?;
    Ok(file.publish()?)
}

/// The prompt as an answer would follow it.
fn tokens(engine: &Engine, args: &Chat, prompt: &str) -> Result<Vec<Token>> {
    if args.raw {
        return Ok(raw_tokens(engine.tokenizer(), prompt));
    }
    let messages = args.system().map(Message::system).into_iter();
    let messages: Vec<Message> = messages.chain([Message::user(prompt)]).collect();
    let render = args.thinking().within(engine.context()).render();
    Ok(engine.render_with(&Conversation::from(messages), &render)?)
}

/// How well the model foretells the text in `file`.
pub(super) fn perplexity(args: &Chat, file: &Path) -> Result<Exit> {
    let text = reading::text(file)?;
    // Logits of every token of a step are in memory: few tokens a step.
    let engine = open(args, args.running.prefill_chunk.get().min(compare::ROWS))?;
    let tokens = engine.tokenizer().encode(&text, Special::None);
    let progress = Progress::counting("tokens");
    let found = diagnose::perplexity(&engine, &tokens, args.tokens.get(), &mut |done, total| {
        progress.at("", done as u64, total as u64)
    })?;
    drop(progress);
    writeln!(std::io::stdout(), "{found}")?;
    Ok(Exit::Ok)
}
