//! Distributions against distributions.

use std::fmt;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::CompareError;
use crate::engine::Engine;
use crate::exec::{NoTap, Token};
use crate::reading::Reading;
use crate::session::{Logits, Session};

/// Most tokens of each model whose logits are in memory at a time.
pub const ROWS: usize = 32;

/// How two models see the same text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Text {
    /// Distributions that were compared.
    pub positions: usize,
    /// Mean of the divergence of the second model from the first, in nats.
    pub divergence_mean: f64,
    /// What 99 of 100 positions stay below or at.
    pub divergence_p99: f64,
    /// The largest.
    pub divergence_max: f64,
    /// Share of positions with the same most likely token, 0 to 1.
    pub same_top: f64,
    /// Perplexity of the text under each model; the first token of a piece is given.
    pub perplexity: [f64; 2],
}

/// Let both models read `text`. `on(done, total)` hears of tokens and may stop the work.
///
/// Opened with [`ROWS`] as its `prefill_rows`, an engine keeps few logits in memory.
///
/// # Errors
/// [`CompareError::Vocabulary`] and [`CompareError::Tokens`] for models that do not speak of the same tokens,
/// [`CompareError::Logit`] for a model whose logits are no numbers; [`CompareError::Model`], with
/// [`Error::Option`](crate::Error::Option) and [`Error::Text`](crate::Error::Text) for pieces or a text below
/// [`Reading::LEAST`]; [`CompareError::Stopped`].
pub fn text(
    a: &Engine,
    b: &Engine,
    text: &str,
    reading: &Reading,
    mut on: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Text, CompareError> {
    let vocab = [a, b].map(|engine| engine.config().vocab);
    if vocab[0] != vocab[1] {
        let [a, b] = vocab;
        return Err(CompareError::Vocabulary { a, b });
    }
    let [tokens, others] = [a, b].map(|engine| engine.tokenizer().encode(text, reading.special));
    if tokens != others {
        let at = tokens
            .iter()
            .zip(&others)
            .take_while(|(a, b)| a == b)
            .count();
        return Err(CompareError::Tokens { at });
    }
    let mut pieces = reading.pieces(&tokens)?;
    // The last may be a token alone.
    pieces.retain(|piece| piece.len() >= Reading::LEAST);
    let total = pieces.iter().map(|piece| piece.len()).sum();
    let mut sums = Sums::default();
    let mut done = 0;
    for piece in pieces {
        let mut sessions = (a.session()?, b.session()?);
        for (i, part) in piece.chunks(ROWS).enumerate() {
            let x = logits(&mut sessions.0, part)?;
            let y = logits(&mut sessions.1, part)?;
            let next = &piece[i * ROWS + 1..];
            let rows = x.chunks_exact(vocab[0]).zip(y.chunks_exact(vocab[0]));
            for (row, ((x, y), &next)) in rows.zip(next).enumerate() {
                for (engine, logits, which) in [(a, x, "the first model"), (b, y, "the second")] {
                    finite(logits).map_err(|(token, value)| CompareError::Logit {
                        model: file(engine).unwrap_or_else(|| which.into()),
                        position: done + row,
                        token,
                        value,
                    })?;
                }
                sums.add(x, y, next);
            }
            done += part.len();
            if on(done, total).is_break() && done < total {
                return Err(CompareError::Stopped);
            }
        }
    }
    Ok(sums.finish())
}

/// Logits after each of `tokens`.
fn logits(session: &mut Session, tokens: &[Token]) -> Result<Vec<f32>, crate::Error> {
    let mut out = Vec::new();
    session.run(tokens, Logits::All, &mut NoTap, &mut |rows| {
        out.extend_from_slice(rows);
    })?;
    Ok(out)
}

/// Where the weights of `engine` lie.
fn file(engine: &Engine) -> Option<Box<str>> {
    let path = engine.weights().gguf().shards().first()?.path()?;
    Some(path.display().to_string().into())
}

/// Whether all logits are numbers; else the first token that has none, and what it has.
fn finite(logits: &[f32]) -> Result<(), (Token, f32)> {
    match logits.iter().position(|x| !x.is_finite()) {
        Some(token) => Err((token as Token, logits[token])),
        None => Ok(()),
    }
}

#[derive(Default)]
struct Sums {
    divergences: Vec<f64>,
    same: usize,
    surprise: [f64; 2],
}

impl Sums {
    /// Add a position; all logits are finite.
    fn add(&mut self, a: &[f32], b: &[f32], next: Token) {
        let norms = [a, b].map(log_sum_exp);
        let log = |x: f32, norm: f64| f64::from(x) - norm;
        let divergence: f64 = a
            .iter()
            .zip(b)
            .map(|(&x, &y)| {
                let p = log(x, norms[0]);
                p.exp() * (p - log(y, norms[1]))
            })
            .sum();
        // Rounding may leave a sum of nothing just below it.
        self.divergences.push(divergence.max(0.0));
        self.same += usize::from(top(a) == top(b));
        for ((sum, x), norm) in self.surprise.iter_mut().zip([a, b]).zip(norms) {
            *sum -= log(x[next as usize], norm);
        }
    }

    fn finish(mut self) -> Text {
        let count = self.divergences.len();
        self.divergences.sort_by(f64::total_cmp);
        let rank = (count * 99).div_ceil(100);
        Text {
            positions: count,
            divergence_mean: self.divergences.iter().sum::<f64>() / count as f64,
            divergence_p99: self.divergences[rank - 1],
            divergence_max: self.divergences[count - 1],
            same_top: self.same as f64 / count as f64,
            perplexity: self.surprise.map(|sum| (sum / count as f64).exp()),
        }
    }
}

fn log_sum_exp(x: &[f32]) -> f64 {
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let most = f64::from(most);
    most + x
        .iter()
        .map(|&x| (f64::from(x) - most).exp())
        .sum::<f64>()
        .ln()
}

/// The first of the largest.
fn top(x: &[f32]) -> usize {
    let mut best = 0;
    for (i, x_i) in x.iter().enumerate() {
        if *x_i > x[best] {
            best = i;
        }
    }
    best
}

impl Text {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "positions": self.positions,
            "kl_divergence": { "mean": self.divergence_mean, "p99": self.divergence_p99, "max": self.divergence_max },
            "same_top": self.same_top,
            "perplexity": self.perplexity,
        })
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.perplexity;
        writeln!(f, "positions      {}", self.positions)?;
        writeln!(
            f,
            "KL divergence  mean {:.6}  p99 {:.6}  max {:.6} nats",
            self.divergence_mean, self.divergence_p99, self.divergence_max
        )?;
        writeln!(f, "same top token {:.2} %", 100.0 * self.same_top)?;
        writeln!(f, "perplexity     {a:.4} | {b:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_compared_as_by_hand() {
        let mut sums = Sums::default();
        // p = 1/2, 1/4, 1/4 and q = 1/4, 1/2, 1/4, both off by a constant.
        let a = [2f32.ln() + 3.0, 3.0, 3.0];
        let b = [-1.0, 2f32.ln() - 1.0, -1.0];
        sums.add(&a, &b, 1);
        sums.add(&a, &a, 0);
        let text = sums.finish();
        let want = 0.25 * 2f64.ln();
        assert!((text.divergence_max - want).abs() < 1e-6, "{text:?}");
        assert!((text.divergence_mean - want / 2.0).abs() < 1e-6);
        assert_eq!(
            (text.divergence_p99, text.same_top, text.positions),
            (text.divergence_max, 0.5, 2)
        );
        // −ln p: ln 4 + ln 2, and ln 2 + ln 2.
        assert!(
            (text.perplexity[0] - 8f64.sqrt()).abs() < 1e-6
                && (text.perplexity[1] - 2.0).abs() < 1e-6
        );
    }
}
