//! How well a model foretells a text.

use std::fmt;
use std::ops::ControlFlow;

use crate::engine::Engine;
use crate::error::Error;
use crate::exec::NoTap;
use crate::sample::log_probability;
use crate::session::Logits;
use crate::tokenizer::Token;

/// Tokens at the start of a text that are given, not foretold.
pub const GIVEN: usize = 32;

/// Negative log-likelihood of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Perplexity {
    /// Tokens of the text.
    pub tokens: usize,
    /// Those that were foretold: all after the first [`GIVEN`], as far as limit and context reach.
    pub scored: usize,
    /// `−Σ ln p` over them, in nats.
    pub nll: f64,
}

/// Let `engine` read `tokens` and add up how unlikely each was after the ones before it, for at most `limit` of them.
/// `progress(done, total)` counts tokens read and may stop the work.
///
/// Logits of one step are in memory at a time: [`prefill_rows`](crate::Options::prefill_rows) rows. Source of the rule:
/// antirez/ds4:ds4_cli.c (`run_perplexity_file`).
///
/// # Errors
/// [`Error::Option`] for a text without a token to score, or a limit or context that leaves none; [`Error::Stopped`],
/// [`Error::Exec`].
pub fn perplexity(
    engine: &Engine,
    tokens: &[Token],
    limit: usize,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Perplexity, Error> {
    let end = tokens.len().min(engine.context());
    let scored = end.saturating_sub(GIVEN).min(limit);
    if scored == 0 {
        let (option, found, expected) = match () {
            () if limit == 0 => ("tokens", 0, "at least 1"),
            () if tokens.len() <= GIVEN => ("text", tokens.len(), "more than 32 tokens"),
            () => ("context", engine.context(), "more than 32 tokens"),
        };
        return Err(Error::Option {
            option,
            found,
            expected,
        });
    }
    // The last token is only foretold, never read.
    let read = GIVEN + scored - 1;
    let vocab = engine.tokenizer().vocab_len();
    let mut session = engine.session()?;
    session.run(&tokens[..GIVEN - 1], Logits::None, &mut NoTap, &mut |_| {})?;
    let (mut nll, mut next) = (0.0, GIVEN);
    for step in tokens[GIVEN - 1..read].chunks(engine.options().prefill_rows) {
        session.run(step, Logits::All, &mut NoTap, &mut |rows| {
            for row in rows.chunks_exact(engine.config().vocab) {
                // Rows past the vocabulary stand for nothing, and never count as possible.
                nll -= log_probability(&row[..row.len().min(vocab)], tokens[next]);
                next += 1;
            }
        })?;
        let done = session.tokens().len();
        if progress(done, read).is_break() && done < read {
            return Err(Error::Stopped { done, total: read });
        }
    }
    Ok(Perplexity {
        tokens: tokens.len(),
        scored,
        nll,
    })
}

impl Perplexity {
    /// Nats a token.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.nll / self.scored as f64
    }

    /// `e` to the mean.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.mean().exp()
    }
}

impl fmt::Display for Perplexity {
    /// The one line that other engines print too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tokens={} scored={} nll={:.9} avg_nll={:.9} ppl={:.9}",
            self.tokens,
            self.scored,
            self.nll,
            self.mean(),
            self.value()
        )
    }
}
