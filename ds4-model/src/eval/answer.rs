//! An answer within a budget: near its end, thinking is closed, so that there is room for what is to be graded.

use std::ops::ControlFlow;

use crate::chat::{Finish, ParseOptions, RenderOptions};
use crate::error::Error;
use crate::sample::Sampler;
use crate::session::Session;
use crate::tokenizer::Token;

use super::Case;

/// The marker that ends thinking.
const THINK_END: &str = "</think>";

/// How many tokens an answer may have, and how many of them are for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Tokens in all.
    pub tokens: usize,
    /// With so many left, thinking is closed as soon as its end is likely; at most three quarters of `tokens` count.
    pub soft: usize,
    /// How likely: among so many likeliest tokens.
    pub soft_rank: usize,
    /// With so many left, thinking is closed; at most half of `tokens` count.
    pub hard: usize,
}

impl Default for Budget {
    /// As antirez/ds4's program.
    fn default() -> Self {
        Self {
            tokens: 16_000,
            soft: 1024,
            soft_rank: 3,
            hard: 512,
        }
    }
}

/// An answer to be graded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// What is said.
    pub content: String,
    /// What was thought.
    pub reasoning: Option<String>,
    /// Whether the model ended it, rather than the budget or the context.
    pub complete: bool,
    /// Tokens drawn.
    pub tokens: usize,
}

/// Answer `case` in `session`, whose timeline it replaces. `each(tokens)` is called before every token and may stop it.
///
/// # Errors
/// [`Error::Chat`] when the conversation cannot be rendered, [`Error::Context`] when it does not fit,
/// [`Error::Exec`], [`Error::Stopped`].
pub fn answer(
    session: &mut Session,
    case: &Case,
    options: &RenderOptions,
    sampler: &mut Sampler,
    budget: &Budget,
    each: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Answered, Error> {
    let engine = session.engine().clone();
    let tokenizer = engine.tokenizer();
    let prompt = engine.render_with(&case.messages.clone().into(), options)?;
    session.sync_with(&prompt, &mut |_, _| each(0))?;
    let mut parser = engine.chat().stream_parser(&ParseOptions {
        think: options.think(),
        evidence: true,
        ..ParseOptions::default()
    });
    let think_end = tokenizer.id_of(THINK_END);
    let (stops, mut decoder) = (engine.stops(), tokenizer.decoder());
    let soft = budget.soft.min(budget.tokens / 4 * 3);
    let hard = budget.hard.min(budget.tokens / 2);
    let (mut drawn, mut complete) = (0, false);
    while drawn < budget.tokens {
        if each(drawn).is_break() {
            let (done, total) = (drawn, budget.tokens);
            return Err(Error::Stopped { done, total });
        }
        let left = budget.tokens - drawn;
        let token = match think_end {
            Some(end) if parser.in_reasoning() && left <= hard => end,
            Some(end)
                if parser.in_reasoning()
                    && left <= soft
                    && rank(session.logits(), end) < budget.soft_rank =>
            {
                end
            }
            _ => sampler.sample(session.logits()),
        };
        drawn += 1;
        if stops.is_stop(token) {
            complete = true;
            break;
        }
        if tokenizer.is_marker(token) {
            parser.push(&decoder.finish().unwrap_or_default());
            if !tokenizer.is_control(token) {
                parser.push_marker(&String::from_utf8_lossy(tokenizer.token_bytes(token)));
            }
        } else if let Some(text) = decoder.push(token) {
            parser.push(&text);
        }
        if session.tokens().len() >= engine.context() {
            break;
        }
        session.push(token)?;
    }
    parser.push(&decoder.finish().unwrap_or_default());
    let finish = if complete {
        Finish::Stop
    } else {
        Finish::Length
    };
    let (_, parsed) = parser.finish(finish);
    Ok(Answered {
        content: parsed.content,
        reasoning: parsed.reasoning,
        complete,
        tokens: drawn,
    })
}

/// How many tokens are likelier than `token`.
fn rank(logits: &[f32], token: Token) -> usize {
    let Some(&own) = logits.get(token as usize) else {
        return usize::MAX;
    };
    logits.iter().filter(|&&other| other > own).count()
}
