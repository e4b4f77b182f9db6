//! Finding added tokens (turn markers, `<think>`, …) in text, where that is asked for.

use super::Token;
use std::collections::HashMap;

/// The added tokens of a vocabulary: leftmost match first, the longest of those that start there.
#[derive(Debug, Default)]
pub(super) struct Added {
    ids: HashMap<Box<str>, Token>,
    /// By first byte: the lengths in bytes that occur, longest first.
    lengths: HashMap<u8, Vec<usize>>,
}

impl Added {
    pub(super) fn new(entries: impl Iterator<Item = (Box<str>, Token)>) -> Self {
        let mut added = Self::default();
        for (text, id) in entries {
            let Some(&first) = text.as_bytes().first() else {
                continue;
            };
            added.lengths.entry(first).or_default().push(text.len());
            added
                .ids
                .entry(text)
                .and_modify(|known| *known = id.min(*known))
                .or_insert(id);
        }
        for lengths in added.lengths.values_mut() {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
        added
    }

    pub(super) fn id(&self, text: &str) -> Option<Token> {
        self.ids.get(text).copied()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.ids.keys().map(AsRef::as_ref)
    }

    /// The added token that `text[at..]` starts with, and its end.
    fn match_at(&self, text: &str, at: usize) -> Option<(usize, Token)> {
        self.lengths
            .get(text.as_bytes().get(at)?)?
            .iter()
            .find_map(|&len| {
                let end = at.checked_add(len)?;
                Some((end, self.id(text.get(at..end)?)?))
            })
    }

    /// The first added token at or after `from`: its start, end and id.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<(usize, usize, Token)> {
        (from..text.len()).find_map(|at| self.match_at(text, at).map(|(end, id)| (at, end, id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leftmost_and_longest_added_token_wins() {
        let added = Added::new(
            [("<a>", 1), ("<a>b", 2), ("｜", 3)]
                .map(|(t, i)| (t.into(), i))
                .into_iter(),
        );
        assert_eq!(added.find("x<a>bc", 0), Some((1, 5, 2)));
        assert_eq!(added.find("x<a>｜", 0), Some((1, 4, 1)));
        assert_eq!(added.find("x<a>｜", 2), Some((4, 7, 3)));
        assert_eq!(added.find("<a", 0), None);
    }
}
