//! From logits to a token.
//!
//! ```text
//! logits ─ mask (NaN, ids past the vocabulary) ─ ÷ temperature ─ top-k ─ min-p ─ softmax ─ top-p ─ draw
//! ```
//! A temperature of 0 takes the greatest logit; the lowest id wins a tie. The same seed draws the same tokens on every
//! platform: the generator is integer arithmetic, sums run in one fixed order, and `exp` is our own (libm differs).
//!
//! ```
//! use ds4_model::sample::Sampler;
//! let mut greedy = Sampler::default();
//! assert_eq!(greedy.sample(&[0.5, 2.0, -1.0, 2.0]), 1);
//! let mut warm = Sampler { temperature: 0.8, top_p: 0.95, ..Sampler::seeded(7) };
//! assert!(warm.sample(&[0.5, 2.0, -1.0, f32::NAN]) < 3);
//! ```

use crate::tokenizer::Token;
use std::cmp::Ordering;

/// How tokens are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    /// 0: the most likely token, always. 1: as the model says. Not a number or negative: 0.
    pub temperature: f32,
    /// Only the `top_k` most likely tokens; 0: all.
    pub top_k: usize,
    /// Only the most likely tokens that together have this probability; 1 or more: all.
    pub top_p: f32,
    /// Only tokens with at least this share of the most likely one's probability; 0: all.
    pub min_p: f32,
    /// Tokens of the vocabulary: logits past it are never drawn. `usize::MAX`: all logits count.
    pub vocab_len: usize,
    /// Which sequence of random numbers.
    pub seed: u64,
    /// How many of them have been used: with `seed`, the whole state.
    pub used: u64,
}

/// A drawn token and how likely it was, by the model alone: before temperature and cuts.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The token.
    pub token: Token,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The most likely tokens with theirs, best first.
    pub top: Vec<(Token, f32)>,
}

impl Default for Sampler {
    /// Greedy.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            vocab_len: usize::MAX,
            seed: 0,
            used: 0,
        }
    }
}

impl Sampler {
    /// Greedy until a temperature is set, then drawing by `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Draw a token. `logits`: one a token id.
    ///
    /// Never fails: NaN is never drawn; when nothing can be drawn (no logits, all NaN) the answer is token 0.
    pub fn sample(&mut self, logits: &[f32]) -> Token {
        let logits = self.known(logits);
        let temperature = self.temperature.max(0.0);
        if temperature == 0.0 {
            return greatest(logits);
        }
        let mut candidates = Candidates::new(logits, temperature, self.top_k, self.min_p);
        candidates.keep_top_p(self.top_p);
        candidates
            .draw(self.unit())
            .unwrap_or_else(|| greatest(logits))
    }

    /// Draw a token and report its log-probability and those of the `top` most likely tokens.
    pub fn sample_with_logprobs(&mut self, logits: &[f32], top: usize) -> Sampled {
        let token = self.sample(logits);
        self.logprobs(logits, token, top)
    }

    /// The log-probability of `token`, however it was drawn, and of the `top` most likely tokens; those without any chance
    /// are left out.
    pub(crate) fn logprobs(&self, logits: &[f32], token: Token, top: usize) -> Sampled {
        let logits = self.known(logits);
        let log_sum = log_sum_exp(logits);
        let logprob = |id: Token| (f64::from(value(logits, id)) - log_sum) as f32;
        let mut best: Vec<Token> = ids(logits)
            .filter(|&id| value(logits, id) > f32::NEG_INFINITY)
            .collect();
        let top = top.min(best.len());
        let order = |a: &Token, b: &Token| {
            value(logits, *b)
                .total_cmp(&value(logits, *a))
                .then(a.cmp(b))
        };
        if top > 0 && top < best.len() {
            best.select_nth_unstable_by(top - 1, order);
        }
        best.truncate(top);
        best.sort_unstable_by(order);
        Sampled {
            token,
            logprob: logprob(token),
            top: best.into_iter().map(|id| (id, logprob(id))).collect(),
        }
    }

    /// Draw by `probabilities` themselves (for accepting drafts): they need not add up to one.
    pub fn draw(&mut self, probabilities: &[f32]) -> Token {
        let total: f64 = probabilities.iter().map(|&p| weight(p)).sum();
        let mut left = self.unit() * total;
        let mut last = 0;
        for (id, &p) in (0..).zip(probabilities) {
            if weight(p) > 0.0 {
                last = id;
                left -= weight(p);
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }

    /// The next random number, in `[0, 1)`: 53 bits of number `used` of the sequence `seed`.
    pub fn unit(&mut self) -> f64 {
        self.used = self.used.wrapping_add(1);
        let bits = mix(mix(self.seed).wrapping_add(self.used.wrapping_mul(GOLDEN)));
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    fn known<'l>(&self, logits: &'l [f32]) -> &'l [f32] {
        &logits[..logits.len().min(self.vocab_len).min(Token::MAX as usize)]
    }
}

/// Natural logarithm of the probability of `token` by `logits`, one a token id; −∞ for a token that has none.
pub fn log_probability(logits: &[f32], token: Token) -> f64 {
    let logit = value(logits, token);
    if logit.is_nan() {
        return f64::NEG_INFINITY;
    }
    f64::from(logit) - log_sum_exp(logits)
}

fn weight(p: f32) -> f64 {
    if p > 0.0 && p.is_finite() {
        f64::from(p)
    } else {
        0.0
    }
}

fn ids(logits: &[f32]) -> std::ops::Range<Token> {
    0..Token::try_from(logits.len()).expect("`known` cuts at the last id")
}

fn value(logits: &[f32], id: Token) -> f32 {
    logits.get(id as usize).copied().unwrap_or(f32::NAN)
}

/// The id of the greatest logit; the lowest of equals; NaN never; 0 when there is none.
fn greatest(logits: &[f32]) -> Token {
    let mut best: Option<(Token, f32)> = None;
    for (id, &logit) in (0..).zip(logits) {
        if !logit.is_nan() && best.is_none_or(|(_, known)| logit > known) {
            best = Some((id, logit));
        }
    }
    best.map_or(0, |(id, _)| id)
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let max = value(logits, greatest(logits));
    if !max.is_finite() {
        return f64::from(max);
    }
    let mut weights: Vec<f32> = logits.iter().map(|&logit| logit - max).collect();
    exp(&mut weights);
    f64::from(max) + weights.into_iter().map(f64::from).sum::<f64>().ln()
}

/// Tokens that may still be drawn, with weights relative to the likeliest.
struct Candidates {
    tokens: Vec<(Token, f32)>,
}

/// Greatest first, the lowest id of equals.
fn by_value(a: &(Token, f32), b: &(Token, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

impl Candidates {
    /// The `top_k` likeliest tokens with at least `min_p` of the likeliest one's probability. Both cuts are made on the
    /// logits, so that only what is left costs an exponential.
    fn new(logits: &[f32], temperature: f32, top_k: usize, min_p: f32) -> Self {
        let max = value(logits, greatest(logits));
        let gap = |logit: f32| match logit == max {
            // An infinite logit beats everything; among several of them chances are equal.
            true => 0.0,
            false => (logit - max) / temperature,
        };
        let min_p = if min_p > 0.0 { min_p.min(1.0) } else { 0.0 };
        // A little lower than the cut, whose exact place is decided by weights: logarithms differ between platforms.
        let floor = if min_p > 0.0 {
            min_p.ln() - 1e-3
        } else {
            f32::NEG_INFINITY
        };
        let mut known: Vec<(Token, f32)> = (0..)
            .zip(logits.iter().copied())
            .filter(|&(_, logit)| gap(logit) >= floor)
            .collect();
        if top_k > 0 && top_k < known.len() {
            known.select_nth_unstable_by(top_k - 1, by_value);
            known.truncate(top_k);
            // The order in which tokens are drawn from must not depend on how selection works.
            known.sort_unstable_by(by_value);
        }
        let mut weights: Vec<f32> = known.iter().map(|&(_, logit)| gap(logit)).collect();
        exp(&mut weights);
        let weighted = known.into_iter().map(|(id, _)| id).zip(weights);
        Self {
            tokens: weighted
                .filter(|&(_, weight)| weight > 0.0 && weight >= min_p)
                .collect(),
        }
    }

    fn total(&self) -> f64 {
        self.tokens
            .iter()
            .map(|&(_, weight)| f64::from(weight))
            .sum()
    }

    fn keep_top_p(&mut self, p: f32) {
        if p < 1.0 {
            let (p, total) = (f64::from(p.max(0.0)), self.total());
            // All tokens below this share together have less than 1 − p: what is kept lies above, and only that is
            // sorted. Half of it, so that rounding cannot matter.
            let share = 0.5 * (1.0 - p) * total / self.tokens.len().max(1) as f64;
            self.tokens
                .retain(|&(_, weight)| f64::from(weight) >= share);
            self.tokens.sort_unstable_by(by_value);
            let mut sum = 0.0;
            let enough = self.tokens.iter().position(|&(_, weight)| {
                sum += f64::from(weight);
                sum >= p * total
            });
            self.tokens
                .truncate(enough.map_or(self.tokens.len(), |at| at + 1));
        }
    }

    fn draw(&self, unit: f64) -> Option<Token> {
        let mut left = unit * self.total();
        for &(id, weight) in &self.tokens {
            left -= f64::from(weight);
            if left < 0.0 {
                return Some(id);
            }
        }
        self.tokens.last().map(|&(id, _)| id)
    }
}

/// 1.5 · 2²³: at this size neighbouring numbers are 1 apart, so that adding it rounds to an integer, which its low bits
/// then hold.
const ROUND: f32 = 12_582_912.0;

/// `eˣ` for every `x ≤ 0`, in place; the same bits on every platform. Below −87, where the result is less than 2⁻¹²⁵, and
/// for NaN: 0.
///
/// `2ᵏ · eʳ` with `|r| ≤ ln 2 / 2` and a Taylor sum of 8 terms, whose rest is below `0.35⁸ / 8! = 6e-9`, a tenth of
/// rounding. Plain arithmetic without branches: compilers make vectors of it.
fn exp(values: &mut [f32]) {
    const LOWEST: f32 = -87.0;
    for value in values {
        let x = value.max(LOWEST);
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let k = shifted - ROUND;
        // ln 2 in two parts, so that k · ln 2 is exact enough to subtract.
        let r = (x - k * 0.693_359_4) - k * -2.121_944_4e-4;
        let sum = 1.0 / 5040.0;
        let sum = sum * r + 1.0 / 720.0;
        let sum = sum * r + 1.0 / 120.0;
        let sum = sum * r + 1.0 / 24.0;
        let sum = sum * r + 1.0 / 6.0;
        let sum = sum * r + 0.5;
        let sum = sum * r + 1.0;
        let sum = sum * r + 1.0;
        let power = shifted
            .to_bits()
            .wrapping_sub(ROUND.to_bits())
            .wrapping_add(127)
            << 23;
        *value = if *value >= LOWEST {
            sum * f32::from_bits(power)
        } else {
            0.0
        };
    }
}

/// 2⁶⁴ divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of splitmix64 (Steele, Lea and Flood 2014): counted inputs become independent-looking numbers.
fn mix(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the authors' C code from state 0, which counts in steps of the golden ratio.
    #[test]
    fn numbers_are_mixed_as_published() {
        let outputs: Vec<u64> = (1..=4u64).map(|n| mix(n.wrapping_mul(GOLDEN))).collect();
        let published = [
            0xE220_A839_7B1D_CDAF,
            0x6E78_9E6A_A1B9_65F4,
            0x06C4_5D18_8009_454F,
            0xF88B_B8A8_724C_81EC,
        ];
        assert_eq!(outputs, published);
    }

    /// Each of the 9 roundings is at most half a unit, 6e-8; what they add up to stays below 4 units, 5e-7.
    #[test]
    fn exp_agrees_with_the_platform() {
        let inputs: Vec<f32> = (0..87_000).map(|i| i as f32 * -0.001).collect();
        let mut outputs = inputs.clone();
        exp(&mut outputs);
        for (x, got) in inputs.iter().zip(&outputs) {
            let want = f64::from(*x).exp();
            assert!(
                (f64::from(*got) - want).abs() <= 5e-7 * want,
                "{x}: {got} {want}"
            );
        }
        let mut edges = [0.0, -87.1, f32::NEG_INFINITY, f32::NAN];
        exp(&mut edges);
        assert_eq!(edges, [1.0, 0.0, 0.0, 0.0]);
    }
}
