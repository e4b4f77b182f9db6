//! Going back: to which lengths a timeline can be cut exactly, what is kept aside for that, and a cut copied to another session.
//!
//! Rows of closed windows depend on their prefix alone, so a cut only makes them fewer. Rings are overwritten as a timeline
//! grows: rows of a shorter one are still there for about one step behind the end, and in checkpoints. Nothing less will do:
//! a row of a ring depends, layer by layer, on the window before it, so computing the last window again needs the windows of
//! all layers, one after the other. Between two checkpoints the tokens from the earlier one on are computed again.

use std::sync::Arc;

use super::Session;
use crate::error::Error;
use crate::exec::{CopyDir, Token};
use crate::graph::{Keep, StateId, StateKind};
use crate::snapshot::SnapshotError;

/// Checkpoints kept. The first stays, since many timelines share their beginning; of the others goes the one whose loss
/// costs the fewest tokens.
pub(crate) const CHECKPOINTS: usize = 6;

/// State rows kept aside at some length, so that a later cut need not start from the beginning.
#[derive(Clone)]
pub(crate) struct Checkpoint {
    /// Tokens.
    pub(crate) len: usize,
    /// Logits after the last of them, where they were computed: the end of a prompt has them.
    pub(crate) logits: Vec<f32>,
    /// First position and rows `[len - first, cols]` of every ring.
    pub(crate) rings: Vec<(StateId, usize, Vec<f32>)>,
}

/// Which of the checkpoints at `lens`, ascending, is missed least when the timeline is `now` tokens long: cuts in the gap it
/// leaves fall back furthest to the checkpoint before it. Never the first.
pub(crate) fn least_missed(lens: &[usize], now: usize) -> usize {
    let gap = |&at: &usize| lens.get(at + 1).unwrap_or(&now) - lens[at - 1];
    (1..lens.len()).min_by_key(gap).unwrap_or(0)
}

impl Session {
    /// How many of `tokens` [`Session::sync`] would not compute again.
    ///
    /// All of them when the logits after the last are at hand too; otherwise the last is computed at least.
    #[must_use]
    pub fn reusable(&self, tokens: &[Token]) -> usize {
        let common = self.common(tokens);
        if common == tokens.len() && self.knows(common) {
            return common;
        }
        self.reach(common.min(tokens.len().saturating_sub(1)))
    }

    /// Cut the timeline to what of it [`Session::sync`] to `tokens` would keep; how many tokens that is. Of what is thrown
    /// away nothing comes back, but for tokens that are computed again.
    ///
    /// # Errors
    /// [`Error::Exec`] when rows cannot be restored.
    pub(crate) fn cut(&mut self, tokens: &[Token]) -> Result<usize, Error> {
        let common = self.common(tokens);
        let len = tokens.len();
        if common < len || !self.knows(len) {
            return self.fall_back(common.min(len.saturating_sub(1)));
        }
        let current = len == self.timeline.len() && !self.logits.is_empty();
        let kept = self.checkpoints.iter().find(|c| c.len == len);
        let kept = kept.filter(|_| !current).map(|c| c.logits.clone());
        self.fall_back(len)?;
        if let Some(logits) = kept {
            self.logits = logits;
        }
        Ok(len)
    }

    /// Whether the state of `len` tokens and the logits after them are at hand; those after no token are none.
    fn knows(&self, len: usize) -> bool {
        len == 0
            || (len == self.timeline.len() && !self.logits.is_empty())
            || self
                .checkpoints
                .iter()
                .any(|c| c.len == len && !c.logits.is_empty())
    }

    /// The longest timeline of at most `len` tokens, of the present ones, whose state is at hand.
    fn reach(&self, len: usize) -> usize {
        if len >= self.timeline.len() {
            return self.timeline.len();
        }
        if self.holds(len) {
            return len;
        }
        self.checkpoint(len).map_or(0, |c| c.len)
    }

    /// The last checkpoint of at most `len` tokens.
    fn checkpoint(&self, len: usize) -> Option<&Arc<Checkpoint>> {
        self.checkpoints.iter().rev().find(|c| c.len <= len)
    }

    /// Go back to the longest timeline of at most `len` tokens whose state is at hand, and say how long it is.
    pub(super) fn fall_back(&mut self, len: usize) -> Result<usize, Error> {
        if len == self.timeline.len() {
            return Ok(len);
        }
        self.logits.clear();
        self.checkpoints.retain(|c| c.len <= len);
        if self.holds(len) {
            self.timeline.truncate(len);
            return Ok(len);
        }
        let from = match self.checkpoints.last() {
            Some(checkpoint) => {
                for (id, first, rows) in &checkpoint.rings {
                    self.put_rows(*id, *first, rows)?;
                }
                checkpoint.len
            }
            None => 0,
        };
        self.timeline.truncate(from);
        // The rings now hold rows of this checkpoint and of nothing later.
        (self.written, self.base) = (from, from);
        Ok(from)
    }

    /// Become what `other`, a session of the same model, would keep of its timeline for `tokens`; how many tokens that is.
    /// `other` is only read, and the bits are those of computing it: two timelines part without computing their beginning
    /// twice.
    ///
    /// # Errors
    /// [`Error::Snapshot`] when the models differ, [`Error::Context`] when it is more than this context holds, and nothing
    /// changes then; [`Error::Exec`] when there is no memory for the rows, and this session is empty then.
    pub fn copy_from(&mut self, other: &Session, tokens: &[Token]) -> Result<usize, Error> {
        let fingerprint = |session: &Session| session.engine.shared().fingerprint.value();
        let (found, expected) = (fingerprint(other), fingerprint(self));
        if found != expected {
            return Err(SnapshotError::Model { found, expected }.into());
        }
        let len = other.reusable(tokens);
        self.fits(len)?;
        self.restored(Vec::new(), Vec::new(), Vec::new());
        let current = len == other.timeline.len();
        let kept = other.checkpoint(len).filter(|c| c.len == len && !current);
        let mut rows = Vec::new();
        for piece in other.pieces(len) {
            let kind = other.engine.graph().states().spec(piece.id).kind;
            if kept.is_some() && matches!(kind, StateKind::Ring { .. }) {
                continue;
            }
            rows.resize(piece.rows * piece.cols, 0.0);
            // One after the other: the two may share an executor.
            let mut from = other.engine.shared().executor();
            from.copy_state(other.set(), piece.id, piece.first, CopyDir::Out(&mut rows))?;
            drop(from);
            self.put_rows(piece.id, piece.first, &rows)?;
        }
        for (id, first, rows) in kept.map_or(&[][..], |c| &c.rings) {
            self.put_rows(*id, *first, rows)?;
        }
        let logits = kept.map_or(&[][..], |c| &c.logits);
        let logits = if current { other.logits() } else { logits };
        let mut checkpoints = other.checkpoints.clone();
        checkpoints.retain(|c| c.len <= len);
        let tokens = other.timeline[..len].to_vec();
        self.restored(tokens, logits.to_vec(), checkpoints);
        Ok(len)
    }

    fn put_rows(&self, id: StateId, first: usize, rows: &[f32]) -> Result<(), Error> {
        let mut executor = self.engine.shared().executor();
        Ok(executor.copy_state(self.set(), id, first, CopyDir::In(rows))?)
    }

    /// Whether the rings still hold every row that a timeline of `len` tokens needs.
    fn holds(&self, len: usize) -> bool {
        let step = self.engine.options().prefill_rows;
        self.rings().all(|(_, keep)| {
            let overwritten = self.written.saturating_sub(keep.most() as usize + step);
            let oldest = overwritten.max(keep.first(self.base as u32) as usize);
            let first = keep.first(len as u32) as usize;
            first == len || first >= oldest
        })
    }

    /// The rings and what they keep.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (StateId, Keep)> {
        self.engine
            .graph()
            .states()
            .specs
            .iter()
            .enumerate()
            .filter_map(|(i, spec)| match spec.kind {
                StateKind::Ring { keep } => Some((StateId(i as u32), keep)),
                StateKind::Windows { .. } => None,
            })
    }

    /// Keep aside what a cut to the present length would need.
    pub(crate) fn remember(&mut self) -> Result<(), Error> {
        let len = self.timeline.len();
        if let Some(last) = self.checkpoints.last_mut().filter(|c| c.len == len) {
            if last.logits.is_empty() && !self.logits.is_empty() {
                Arc::make_mut(last).logits.clone_from(&self.logits);
            }
            return Ok(());
        }
        let layout = self.engine.graph().states();
        let mut executor = self.engine.shared().executor();
        let mut rings = Vec::new();
        for (id, keep) in self.rings() {
            let first = keep.first(len as u32) as usize;
            let mut rows = vec![0.0; (len - first) * layout.spec(id).cols as usize];
            executor.copy_state(self.set(), id, first, CopyDir::Out(&mut rows))?;
            rings.push((id, first, rows));
        }
        drop(executor);
        if self.checkpoints.len() == CHECKPOINTS {
            let lens: Vec<usize> = self.checkpoints.iter().map(|c| c.len).collect();
            self.checkpoints.remove(least_missed(&lens, len));
        }
        self.checkpoints.push(Arc::new(Checkpoint {
            len,
            logits: self.logits.clone(),
            rings,
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::least_missed;

    #[test]
    fn the_checkpoint_that_goes_is_the_one_whose_loss_costs_least() {
        assert_eq!(least_missed(&[50, 1000, 1010, 2000], 2100), 1);
        assert_eq!(least_missed(&[50, 1000, 1990, 2000], 2001), 3);
        assert_eq!(least_missed(&[50, 60, 4096, 8192], 12288), 1);
        assert_eq!(least_missed(&[50], 60), 0);
    }
}
