//! Token by token against all at once.

use std::fmt;
use std::ops::ControlFlow;

use crate::engine::Engine;
use crate::error::Error;
use crate::sample::Sampler;
use crate::tokenizer::Token;

/// Logits after an answer that was decoded token by token, against those of the same tokens read in one go.
#[derive(Clone, Debug, PartialEq)]
pub struct Consistency {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// What was decoded after it: the likeliest token every time, a stop token being the last.
    pub decoded: Vec<Token>,
    /// Logits compared.
    pub vocab: usize,
    /// The largest difference.
    pub largest: f32,
    /// The token whose logit it is.
    pub at: Token,
    /// That logit after decoding, and after reading.
    pub logits: [f32; 2],
    /// Root mean square of all differences.
    pub rms: f64,
    /// The likeliest token after decoding, and after reading.
    pub top: [Token; 2],
}

/// Decode at most `tokens` after `prompt`, then read prompt and answer in another session, and compare.
/// `progress(done, total)` counts tokens computed and may stop the work.
///
/// # Errors
/// [`Error::Context`] when prompt and answer do not fit, [`Error::Stopped`], [`Error::Exec`].
pub fn consistency(
    engine: &Engine,
    prompt: &[Token],
    tokens: usize,
    progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Consistency, Error> {
    let total = 2 * (prompt.len() + tokens);
    let stop = engine.stops();
    let mut greedy = Sampler {
        vocab_len: engine.tokenizer().vocab_len(),
        ..Sampler::default()
    };
    let mut session = engine.session()?;
    session.sync_with(prompt, &mut |done, _| progress(done, total))?;
    let mut decoded = Vec::new();
    for _ in 0..tokens {
        let token = greedy.sample(session.logits());
        decoded.push(token);
        session.push(token)?;
        let done = prompt.len() + decoded.len();
        if progress(done, total).is_break() {
            return Err(Error::Stopped { done, total });
        }
        if stop.is_stop(token) {
            break;
        }
    }
    let live = session.logits().to_vec();
    drop(session);
    let mut fresh = engine.session()?;
    let whole: Vec<Token> = prompt.iter().chain(&decoded).copied().collect();
    fresh.sync_with(&whole, &mut |done, _| progress(whole.len() + done, total))?;
    Ok(compared(
        &live,
        fresh.logits(),
        &mut greedy,
        prompt,
        decoded,
    ))
}

fn compared(
    live: &[f32],
    fresh: &[f32],
    greedy: &mut Sampler,
    prompt: &[Token],
    decoded: Vec<Token>,
) -> Consistency {
    let (mut largest, mut at, mut squares) = (0.0f32, 0, 0.0);
    for (i, (a, b)) in live.iter().zip(fresh).enumerate() {
        // Two equal infinities, or two logits that are no numbers, do not differ.
        let same = a == b || (a.is_nan() && b.is_nan());
        let difference = if same { 0.0 } else { (a - b).abs() };
        if difference > largest || difference.is_nan() {
            (largest, at) = (difference, i);
        }
        squares += f64::from(difference) * f64::from(difference);
    }
    let logit = |of: &[f32]| of.get(at).copied().unwrap_or(f32::NAN);
    Consistency {
        prompt: prompt.len(),
        decoded,
        vocab: live.len(),
        largest,
        at: at as Token,
        logits: [logit(live), logit(fresh)],
        rms: (squares / live.len().max(1) as f64).sqrt(),
        top: [live, fresh].map(|logits| greedy.sample(logits)),
    }
}

impl Consistency {
    /// Whether both ways expect the same token next.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.top[0] == self.top[1]
    }
}

impl fmt::Display for Consistency {
    /// The one line that other engines print too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [live, fresh] = self.logits;
        write!(
            f,
            "decode-consistency compared prefix_tokens={} vocab={} max_abs={} at token={} live={live} fresh={fresh} rms={} top={}",
            self.prompt + self.decoded.len(),
            self.vocab,
            self.largest,
            self.at,
            self.rms,
            if self.agrees() { "same" } else { "different" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_where_they_are() {
        let live = [1.0, f32::NEG_INFINITY, 3.0, f32::NAN];
        let mut fresh = live;
        let found = compared(&live, &fresh, &mut Sampler::default(), &[7], vec![8]);
        assert_eq!((found.largest, found.rms), (0.0, 0.0));
        assert!(found.agrees());
        fresh[0] = 5.0;
        let found = compared(&live, &fresh, &mut Sampler::default(), &[7], vec![8]);
        assert_eq!((found.largest, found.at, found.rms), (4.0, 0, 2.0));
        assert_eq!((found.logits, found.top), ([1.0, 5.0], [2, 0]));
        assert!(!found.agrees());
        assert_eq!(
            found.to_string(),
            "decode-consistency compared prefix_tokens=2 vocab=4 max_abs=4 at token=0 live=1 fresh=5 rms=2 top=different"
        );
    }
}
