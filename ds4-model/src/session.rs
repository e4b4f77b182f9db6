//! One timeline: tokens, what the model remembers of them, and the logits after the last.

mod back;

pub(crate) use back::{CHECKPOINTS, Checkpoint, least_missed};

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::engine::{Engine, Shared};
use crate::error::Error;
use crate::exec::{Both, NoTap, StateSet, Step, Tap, Token};

/// Which logits of a run are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// None: the tokens only extend the timeline.
    None,
    /// Those after the last token.
    Last,
    /// Those after every token.
    All,
}

/// What [`Session::sync`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reused {
    /// Tokens whose state was already there.
    pub reused: usize,
    /// Tokens computed.
    pub computed: usize,
}

/// How far [`Session::sync_some`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Tokens whose state was there when the call began.
    pub reused: usize,
    /// Tokens computed by the call.
    pub computed: usize,
    /// Tokens still to be computed.
    pub left: usize,
}

/// Tokens between checkpoints inside a long prompt.
const CHECKPOINT_EVERY: usize = 2048;

/// One timeline. `Send`, used by one thread at a time. Dropping it frees its memory.
pub struct Session {
    engine: Engine,
    set: Option<StateSet>,
    timeline: Vec<Token>,
    logits: Vec<f32>,
    /// Positions below this have been written to the rings at some time.
    written: usize,
    /// Length at which the rings were last restored; they hold nothing older than that length needed.
    base: usize,
    checkpoints: Vec<Arc<Checkpoint>>,
    /// Sees every step.
    tap: Option<Box<dyn Tap>>,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Result<Self, Error> {
        let shared = engine.shared();
        let set = shared
            .executor()
            .new_state(shared.graph.states(), shared.options.prefill_rows)?;
        let (timeline, logits, checkpoints) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            engine,
            set: Some(set),
            timeline,
            logits,
            written: 0,
            base: 0,
            checkpoints,
            tap: None,
        })
    }

    /// Let `tap` see every step from now on, beside the one that [`Session::run`] is given; the one that did so before comes
    /// back.
    pub fn watch(&mut self, tap: Option<Box<dyn Tap>>) -> Option<Box<dyn Tap>> {
        std::mem::replace(&mut self.tap, tap)
    }

    /// The engine this session belongs to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tokens so far.
    pub fn tokens(&self) -> &[Token] {
        &self.timeline
    }

    /// Logits after the last token, `[vocab]`. Empty when there are none: in a new session, after a rewind that took tokens
    /// away, after [`Session::run`] with [`Logits::None`] or with no tokens, after a step that failed, and after
    /// [`Session::load`] of a session that had none when it was saved.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// Make the timeline equal to `tokens`, keeping of the common prefix what is at hand ([`Session::reusable`]) and computing
    /// the rest; afterwards [`Session::logits`] are those after the last token. When all of `tokens` is there but not the
    /// logits, the last token is computed again. With no tokens the session is emptied, and has no logits.
    ///
    /// # Errors
    /// [`Error::Context`] when `tokens` are too many, and nothing changes then; [`Error::Exec`] with the timeline as long as
    /// it got, and without logits.
    pub fn sync(&mut self, tokens: &[Token]) -> Result<Reused, Error> {
        self.sync_with(tokens, &mut |_, _| ControlFlow::Continue(()))
    }

    /// As [`Session::sync`]; `progress(done, total)` is called after every step of up to
    /// [`prefill_rows`](crate::Options::prefill_rows) tokens, and counts the tokens computed in this call, not those reused.
    /// [`ControlFlow::Break`] stops the work, except after the last step.
    ///
    /// # Errors
    /// As for [`Session::sync`], and [`Error::Stopped`].
    pub fn sync_with(
        &mut self,
        tokens: &[Token],
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Reused, Error> {
        self.fits(tokens.len())?;
        let reused = self.cut(tokens)?;
        let computed = tokens.len() - reused;
        if computed > 0 {
            self.extend(
                &tokens[reused..],
                Logits::Last,
                &mut NoTap,
                &mut |_| {},
                progress,
            )?;
            self.remember()?;
        }
        Ok(Reused { reused, computed })
    }

    /// A part of [`Session::sync`]: computes at most `most` tokens (at least 1) and comes back, so that several sessions
    /// can take turns. Called again with the same tokens until nothing is left, it ends where `sync` does.
    ///
    /// # Errors
    /// As for [`Session::sync`].
    pub fn sync_some(&mut self, tokens: &[Token], most: usize) -> Result<Progress, Error> {
        self.fits(tokens.len())?;
        let reused = self.cut(tokens)?;
        let end = tokens.len().min(reused.saturating_add(most.max(1)));
        let left = tokens.len() - end;
        if end == reused {
            let (computed, left) = (0, 0);
            return Ok(Progress {
                reused,
                computed,
                left,
            });
        }
        let want = if left == 0 {
            Logits::Last
        } else {
            Logits::None
        };
        self.extend(
            &tokens[reused..end],
            want,
            &mut NoTap,
            &mut |_| {},
            &mut |_, _| ControlFlow::Continue(()),
        )?;
        if left == 0 || reused / CHECKPOINT_EVERY != end / CHECKPOINT_EVERY {
            self.remember()?;
        }
        Ok(Progress {
            reused,
            computed: end - reused,
            left,
        })
    }

    /// How many tokens the timeline and `tokens` have in common from the start.
    #[must_use]
    pub fn common(&self, tokens: &[Token]) -> usize {
        self.timeline
            .iter()
            .zip(tokens)
            .take_while(|(a, b)| a == b)
            .count()
    }

    /// Append one token; afterwards [`Session::logits`] are those after it.
    ///
    /// # Errors
    /// [`Error::Context`] when the context is full, [`Error::Exec`].
    pub fn push(&mut self, token: Token) -> Result<(), Error> {
        self.run(&[token], Logits::Last, &mut NoTap, &mut |_| {})
    }

    /// Append tokens, with every choice open. `rows` gets the wanted logits once a step, `[n, vocab]`: with [`Logits::All`]
    /// those of each token of the step, with [`Logits::Last`] one row at the end. `tap` sees intermediate values. With no
    /// tokens nothing runs, and the logits are gone.
    ///
    /// # Errors
    /// [`Error::Context`] when they do not fit, and nothing changes then; [`Error::Exec`] with the timeline as long as it got.
    pub fn run(
        &mut self,
        tokens: &[Token],
        want: Logits,
        tap: &mut dyn Tap,
        rows: &mut dyn FnMut(&[f32]),
    ) -> Result<(), Error> {
        self.fits(self.timeline.len() + tokens.len())?;
        self.extend(tokens, want, tap, rows, &mut |_, _| {
            ControlFlow::Continue(())
        })
    }

    /// Go back to the first `len` tokens, exactly. Near the end this is free; further back, the tokens since the last
    /// checkpoint before `len` are computed again. The logits are gone afterwards, unless nothing changed.
    ///
    /// # Errors
    /// [`Error::Rewind`] when the timeline is shorter, [`Error::Exec`].
    pub fn rewind(&mut self, len: usize) -> Result<(), Error> {
        let have = self.timeline.len();
        if len > have {
            return Err(Error::Rewind { wanted: len, have });
        }
        let again = self.timeline[..len].to_vec();
        let from = self.fall_back(len)?;
        if from == len {
            return Ok(());
        }
        self.extend(
            &again[from..],
            Logits::None,
            &mut NoTap,
            &mut |_| {},
            &mut |_, _| ControlFlow::Continue(()),
        )
    }

    pub(crate) fn set(&self) -> &StateSet {
        self.set.as_ref().expect("present until drop")
    }

    /// Take over a restored timeline; its state rows have been copied in.
    pub(crate) fn restored(
        &mut self,
        tokens: Vec<Token>,
        logits: Vec<f32>,
        checkpoints: Vec<Arc<Checkpoint>>,
    ) {
        (self.written, self.base) = (tokens.len(), tokens.len());
        self.timeline = tokens;
        self.logits = logits;
        self.checkpoints = checkpoints;
    }

    pub(crate) fn checkpoints(&self) -> &[Arc<Checkpoint>] {
        &self.checkpoints
    }

    fn fits(&self, wanted: usize) -> Result<(), Error> {
        let limit = self.engine.context();
        if wanted > limit {
            Err(Error::Context { wanted, limit })
        } else {
            Ok(())
        }
    }

    fn extend(
        &mut self,
        tokens: &[Token],
        want: Logits,
        tap: &mut dyn Tap,
        rows: &mut dyn FnMut(&[f32]),
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let most = self.engine.options().prefill_rows;
        let vocab = self.engine.config().vocab;
        let total = tokens.len();
        let mut done = 0;
        self.logits.clear();
        for chunk in tokens.chunks(most) {
            let last = done + chunk.len() == total;
            let head_row = match want {
                Logits::All => 0,
                Logits::Last if last => chunk.len() - 1,
                _ => chunk.len(),
            };
            let step = Step::new(
                self.timeline.len() as u32,
                chunk.len() as u32,
                head_row as u32,
            );
            // Even a step that fails may have written its rows.
            self.written = self.written.max(self.timeline.len() + chunk.len());
            {
                let shared: &Shared = self.engine.shared();
                let mut executor = shared.executor();
                let plan = shared.plan(&mut executor, chunk.len(), want == Logits::All)?;
                let set = self.set.as_ref().expect("present until drop");
                let logits = match &mut self.tap {
                    Some(own) => {
                        executor.run(plan, set, &step, chunk, &mut Both(tap, &mut **own))?
                    }
                    None => executor.run(plan, set, &step, chunk, tap)?,
                };
                if want != Logits::None && last {
                    self.logits
                        .extend_from_slice(&logits[logits.len() - vocab..]);
                }
                if !logits.is_empty() {
                    rows(logits);
                }
            }
            let before = self.timeline.len();
            self.timeline.extend_from_slice(chunk);
            done += chunk.len();
            if !last && before / CHECKPOINT_EVERY != self.timeline.len() / CHECKPOINT_EVERY {
                self.remember()?;
            }
            if progress(done, total).is_break() && !last {
                return Err(Error::Stopped { done, total });
            }
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(set) = self.set.take() {
            self.engine.shared().executor().free_state(set);
        }
    }
}

const _: fn() = || {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Session>();
    send::<Engine>();
    sync::<Engine>();
};
