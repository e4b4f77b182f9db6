//! Frontiers: the lengths of context at which prefill and decode are timed, on one timeline.
//!
//! ```text
//! prompt    ├────────────┼────────────┼────────────┤
//! prefill   └─ timed ────┴─ timed ────┴─ timed ────┘     only what is new
//! decode                 └┄┄ timed    └┄┄ timed    └┄┄   then back to the frontier
//! ```

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Error;
use crate::exec::Tap;
use crate::fnv::Fnv;
use crate::sample::Sampler;
use crate::session::Session;
use crate::tokenizer::Token;

/// How a frontier follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// So many tokens more, at least 1.
    By(usize),
    /// So many times as long, rounded up; more than 1.
    Times(f64),
}

/// Frontiers that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontierError {
    /// The first is not between 1 and the last.
    #[error("the first frontier is {start} tokens, expected 1 to the last one's {max}")]
    Range {
        /// The first.
        start: usize,
        /// The last.
        max: usize,
    },
    /// They would not grow.
    #[error("frontiers grow {found}, expected {expected}")]
    Growth {
        /// What was asked for.
        found: String,
        /// What would do.
        expected: &'static str,
    },
}

/// The lengths in ascending order; the last is always the longest one.
///
/// ```
/// use ds4_model::measure::{Frontiers, Growth};
/// let doubled = Frontiers::new(3, 20, Growth::Times(2.0))?;
/// assert_eq!(doubled.collect::<Vec<_>>(), [3, 6, 12, 20]);
/// # Ok::<(), ds4_model::measure::FrontierError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Frontiers {
    next: Option<usize>,
    max: usize,
    growth: Growth,
}

impl Frontiers {
    /// From `start` to `max` tokens.
    ///
    /// # Errors
    /// [`FrontierError`].
    pub fn new(start: usize, max: usize, growth: Growth) -> Result<Self, FrontierError> {
        if start == 0 || start > max {
            return Err(FrontierError::Range { start, max });
        }
        match growth {
            Growth::By(0) => Err(FrontierError::Growth {
                found: "by 0 tokens".to_owned(),
                expected: "at least 1",
            }),
            Growth::Times(n) if !n.is_finite() || n <= 1.0 => Err(FrontierError::Growth {
                found: format!("{n} times"),
                expected: "more than 1",
            }),
            _ => Ok(Self {
                next: Some(start),
                max,
                growth,
            }),
        }
    }
}

impl Iterator for Frontiers {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let now = self.next?;
        let next = match self.growth {
            Growth::By(tokens) => now.saturating_add(tokens),
            // A cast saturates; a factor just above 1 must still move.
            Growth::Times(factor) => {
                ((now as f64 * factor).ceil() as usize).max(now.saturating_add(1))
            }
        };
        self.next = (now < self.max).then_some(next.min(self.max));
        Some(now)
    }
}

/// What reading up to a frontier took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefill {
    /// Tokens read: those since the frontier before.
    pub tokens: usize,
    /// Time it took.
    pub took: Duration,
}

/// What drawing tokens after a frontier took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decode {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// Time of the first of them.
    pub first: Duration,
    /// Time of all others together.
    pub steady: Duration,
    /// Bytes of the snapshot that brought the timeline back; `None` without one, when tokens were computed again where
    /// the session did not hold them any more.
    pub snapshot: Option<u64>,
}

impl Decode {
    /// [`hash`] of the tokens.
    #[must_use]
    pub fn hash(&self) -> u64 {
        hash(&self.tokens)
    }

    /// Time of all tokens.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.first + self.steady
    }
}

/// FNV-1a over the ids, four bytes each, little endian: the number that antirez/ds4's `ds4-bench` prints. Equal hashes mean
/// equal tokens.
#[must_use]
pub fn hash(tokens: &[Token]) -> u64 {
    let mut hash = Fnv::default();
    for token in tokens {
        hash.write(&token.to_le_bytes());
    }
    hash.value()
}

/// A timeline that grows along a prompt and is measured on the way.
pub struct Bench {
    session: Session,
    prompt: Vec<Token>,
    /// Most bytes of a snapshot.
    limit: u64,
    frontier: usize,
    sampler: Sampler,
}

impl Bench {
    /// Nothing is read yet. A snapshot of the timeline is kept in memory while tokens are drawn, unless it has more than
    /// `snapshot_limit` bytes: then the session goes back on its own.
    ///
    /// # Errors
    /// [`Error::Exec`] when the session's memory cannot be had.
    pub fn new(engine: &Engine, prompt: Vec<Token>, snapshot_limit: u64) -> Result<Self, Error> {
        Ok(Self {
            session: engine.session()?,
            prompt,
            limit: snapshot_limit,
            frontier: 0,
            sampler: Sampler {
                vocab_len: engine.tokenizer().vocab_len(),
                ..Sampler::default()
            },
        })
    }

    /// Let `tap` see every step from now on: [`Session::watch`].
    pub fn watch(&mut self, tap: Option<Box<dyn Tap>>) {
        self.session.watch(tap);
    }

    /// The timeline, with the logits of the frontier after [`Bench::prefill`].
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Read the prompt up to `frontier` tokens, from where the last frontier was. `progress` is that of
    /// [`Session::sync_with`].
    ///
    /// # Errors
    /// [`Error::Rewind`] when the prompt is shorter; otherwise as for [`Session::sync_with`].
    pub fn prefill(
        &mut self,
        frontier: usize,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Prefill, Error> {
        let prefix = self.prompt.get(..frontier).ok_or(Error::Rewind {
            wanted: frontier,
            have: self.prompt.len(),
        })?;
        let start = Instant::now();
        let reused = self.session.sync_with(prefix, progress)?;
        self.frontier = frontier;
        Ok(Prefill {
            tokens: reused.computed,
            took: start.elapsed(),
        })
    }

    /// Draw `count` tokens greedily, the end-of-text token excluded, and go back to the frontier if the timeline is to
    /// `go_on`. `progress(done, count)` may stop it.
    ///
    /// # Errors
    /// [`Error::Context`], [`Error::Exec`], [`Error::NoLogits`] before [`Bench::prefill`], [`Error::Stopped`].
    pub fn decode(
        &mut self,
        count: usize,
        go_on: bool,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Decode, Error> {
        let kept = if go_on && count > 0 {
            self.snapshot()?
        } else {
            None
        };
        let mut drawn = Decode {
            tokens: Vec::with_capacity(count.min(self.session.engine().context())),
            first: Duration::ZERO,
            steady: Duration::ZERO,
            snapshot: kept.as_ref().map(|bytes| bytes.len() as u64),
        };
        for done in 0..count {
            if progress(done, count).is_break() {
                return Err(Error::Stopped { done, total: count });
            }
            let start = Instant::now();
            let token = self.choose()?;
            self.session.push(token)?;
            let took = start.elapsed();
            if done == 0 {
                drawn.first = took;
            } else {
                drawn.steady += took;
            }
            drawn.tokens.push(token);
        }
        match kept {
            Some(bytes) => self.session.load(&mut bytes.as_slice())?,
            None if go_on => self.session.rewind(self.frontier)?,
            None => {}
        }
        Ok(drawn)
    }

    /// The likeliest token that does not end the text.
    fn choose(&mut self) -> Result<Token, Error> {
        let mut logits = self.session.logits().to_vec();
        if logits.is_empty() {
            return Err(Error::NoLogits);
        }
        let end = self.session.engine().tokenizer().eos();
        if let Some(logit) = logits.get_mut(end as usize) {
            // The sampler never draws what is no number.
            *logit = f32::NAN;
        }
        Ok(self.sampler.sample(&logits))
    }

    /// The timeline's bytes, unless there are too many.
    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Bounded {
            bytes: Vec::new(),
            limit: self.limit,
            over: false,
        };
        match self.session.save(&mut bytes) {
            Ok(_) => Ok(Some(bytes.bytes)),
            Err(_) if bytes.over => {
                // Later ones are longer still.
                self.limit = 0;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Memory that refuses to grow past a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: u64,
    over: bool,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + more.len()) as u64 > self.limit {
            self.over = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(start: usize, max: usize, growth: Growth) -> Vec<usize> {
        Frontiers::new(start, max, growth).unwrap().collect()
    }

    #[test]
    fn frontiers_end_at_the_longest_and_never_stand_still() {
        assert_eq!(lengths(2, 9, Growth::By(3)), [2, 5, 8, 9]);
        assert_eq!(lengths(4, 4, Growth::By(usize::MAX)), [4]);
        assert_eq!(lengths(1, 4, Growth::Times(1.000_001)), [1, 2, 3, 4]);
        assert_eq!(
            lengths(1, usize::MAX, Growth::Times(f64::MAX)),
            [1, usize::MAX]
        );
    }

    #[test]
    fn frontiers_that_make_no_sense_say_why() {
        for (start, max, growth, words) in [
            (0, 4, Growth::By(1), "first frontier is 0"),
            (5, 4, Growth::By(1), "first frontier is 5"),
            (1, 4, Growth::By(0), "by 0 tokens"),
            (1, 4, Growth::Times(1.0), "1 times"),
            (1, 4, Growth::Times(f64::NAN), "NaN times"),
        ] {
            let error = Frontiers::new(start, max, growth).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    /// 7 and 1 as eight bytes, hashed by hand.
    #[test]
    fn the_hash_is_over_ids_in_little_endian() {
        let mut by_hand = 0xcbf2_9ce4_8422_2325_u64;
        for byte in [7, 0, 0, 0, 1, 0, 0, 0] {
            by_hand = (by_hand ^ byte).wrapping_mul(0x0000_0100_0000_01b3);
        }
        assert_eq!(hash(&[7, 1]), by_hand);
        assert_ne!(hash(&[1, 7]), by_hand);
    }
}
