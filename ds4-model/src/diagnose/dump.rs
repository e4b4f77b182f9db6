//! Logits and log-probabilities as JSON, tokens as a list.
//!
//! The shapes are those of the reference engine (antirez/ds4:ds4_cli.c, `run_logits_dump`, `run_logprob_dump`), so that
//! its scripts can read them.

use std::fmt;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::Error;
use crate::sample::Sampler;
use crate::session::Session;
use crate::tokenizer::{Token, Tokenizer};

/// Most alternatives of one token.
const MOST: usize = 128;

/// `{"id", "text", "bytes"}` of a token. The bytes are what counts: those of one token need not be whole characters.
fn token(tokenizer: &Tokenizer, id: Token) -> Value {
    let bytes = tokenizer.token_bytes(id);
    json!({ "id": id, "text": String::from_utf8_lossy(bytes), "bytes": bytes })
}

/// A logit as it is, as short as an f32 can be said; `null` for what JSON has no word for.
fn number(logit: f32) -> Value {
    let shortest = logit.to_string().parse::<f64>().ok();
    json!(shortest.filter(|n| n.is_finite()))
}

fn greedy(engine: &Engine) -> Sampler {
    Sampler {
        vocab_len: engine.tokenizer().vocab_len(),
        ..Sampler::default()
    }
}

/// All logits after `prompt`. `progress(done, total)` counts tokens read and may stop the work.
///
/// # Errors
/// [`Error::Context`], [`Error::NoLogits`] for a prompt of no tokens, [`Error::Stopped`], [`Error::Exec`].
pub fn logits(
    engine: &Engine,
    prompt: &[Token],
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Value, Error> {
    let session = read(engine, prompt, progress)?;
    let logits = session.logits();
    let best = greedy(engine).sample(logits);
    let path = engine.weights().gguf().path();
    Ok(json!({
        "source": "ds4",
        "model": path.map(|p| p.display().to_string()),
        "backend": "cpu",
        "prompt_tokens": prompt.len(),
        "ctx": engine.context(),
        "vocab": logits.len(),
        "argmax_token": token(engine.tokenizer(), best),
        "argmax_logit": number(logits[best as usize]),
        "logits": logits.iter().map(|&logit| number(logit)).collect::<Vec<_>>(),
    }))
}

/// At most `tokens` after `prompt`, the likeliest every time and a stop token the last, each with the `top` likeliest
/// (at most 128). `progress(done, total)` counts tokens of prompt and answer and may stop the work.
///
/// # Errors
/// As for [`logits`].
pub fn logprobs(
    engine: &Engine,
    prompt: &[Token],
    tokens: usize,
    top: usize,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Value, Error> {
    let top = top.min(MOST);
    let room = engine.context().saturating_sub(prompt.len());
    let tokens = tokens.min(room);
    let total = prompt.len() + tokens;
    let mut session = read(engine, prompt, &mut |done, _| progress(done, total))?;
    let (mut sampler, stop) = (greedy(engine), engine.stops());
    let tokenizer = engine.tokenizer();
    let mut steps = Vec::new();
    for step in 0..tokens {
        let logits = session.logits();
        let sampled = sampler.sample_with_logprobs(logits, top);
        let alternatives: Vec<Value> = sampled
            .top
            .iter()
            .map(|&(id, logprob)| {
                json!({ "token": token(tokenizer, id), "logit": number(logits[id as usize]), "logprob": number(logprob) })
            })
            .collect();
        steps.push(json!({
            "step": step,
            "selected": token(tokenizer, sampled.token),
            "top_logprobs": alternatives,
        }));
        let done = prompt.len() + step + 1;
        if progress(done, total).is_break() && done < total {
            return Err(Error::Stopped { done, total });
        }
        if stop.is_stop(sampled.token) || step + 1 == tokens {
            break;
        }
        session.push(sampled.token)?;
    }
    Ok(json!({
        "source": "ds4",
        "prompt_tokens": prompt.len(),
        "ctx": engine.context(),
        "top_k": top,
        "steps": steps,
    }))
}

fn read(
    engine: &Engine,
    prompt: &[Token],
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Session, Error> {
    let mut session = engine.session()?;
    session.sync_with(prompt, progress)?;
    if session.logits().is_empty() {
        return Err(Error::NoLogits);
    }
    Ok(session)
}

/// Tokens for people: the list of ids, then one a line with its text.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'t> {
    /// Whose tokens they are.
    pub tokenizer: &'t Tokenizer,
    /// The tokens.
    pub ids: &'t [Token],
}

impl fmt::Display for Tokens<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.ids)?;
        for &id in self.ids {
            let text = String::from_utf8_lossy(self.tokenizer.token_bytes(id));
            write!(f, "\n{id:>6}  {text}")?;
        }
        Ok(())
    }
}
