//! Text that has arrived and is not decided yet.

use std::collections::VecDeque;

/// Undecided text, and where its control tokens are.
#[derive(Clone, Debug, Default)]
pub(super) struct Input {
    /// Text that arrived; the first `from` bytes are decided.
    text: String,
    from: usize,
    /// Bytes dropped before `text`.
    dropped: usize,
    /// Where control tokens begin, in bytes of the whole; only kept when they are evidence.
    markers: VecDeque<usize>,
    evidence: bool,
}

impl Input {
    pub(super) fn new(evidence: bool) -> Self {
        Self {
            evidence,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, text: &str, is_marker: bool) {
        if self.evidence && is_marker {
            self.markers.push_back(self.dropped + self.text.len());
        }
        self.text.push_str(text);
    }

    /// The undecided text.
    pub(super) fn text(&self) -> &str {
        &self.text[self.from..]
    }

    /// Bytes of the whole before the undecided text.
    pub(super) fn offset(&self) -> usize {
        self.dropped + self.from
    }

    /// Whether what stands at byte `at` of the undecided text may count as a control token.
    pub(super) fn is_real(&self, at: usize) -> bool {
        !self.evidence || self.markers.contains(&(self.offset() + at))
    }

    /// Take the first `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> String {
        let taken = self.text()[..len].to_owned();
        self.from += len;
        let offset = self.offset();
        while self.markers.front().is_some_and(|&at| at < offset) {
            self.markers.pop_front();
        }
        // Dropped only by halves, so that every byte moves a constant number of times.
        if 2 * self.from > self.text.len() {
            self.text.drain(..self.from);
            self.dropped = offset;
            self.from = 0;
        }
        taken
    }

    /// Take blanks.
    pub(super) fn skip_blanks(&mut self) {
        let blanks = self.text().len() - self.text().trim_start().len();
        self.take(blanks);
    }
}

/// Bytes of `text` before a suffix that is a proper beginning of one of `needles`.
pub(super) fn before_beginning(text: &str, needles: &[&str]) -> usize {
    let longest = needles.iter().map(|n| n.len()).max().unwrap_or(0);
    let from = text.len().saturating_sub(longest.saturating_sub(1));
    (from..text.len())
        .filter(|&at| text.is_char_boundary(at))
        .find(|&at| {
            needles
                .iter()
                .any(|n| n.len() > text.len() - at && n.starts_with(&text[at..]))
        })
        .unwrap_or(text.len())
}
