//! When to stop: tokens that end a turn, and strings that end it wherever their characters fall among the tokens.
//!
//! ```
//! use ds4_model::stop::{Cut, Stop};
//! let stop = Stop::new([1]).with_strings(["END"]);
//! let mut matcher = stop.matcher();
//! assert_eq!(matcher.push("one E"), Cut::Text("one ".into()));   // "E" may be the start of "END"
//! assert_eq!(matcher.push("ND two"), Cut::Stopped { text: String::new(), by: "END".into() });
//! ```

use crate::tokenizer::Token;

/// What ends a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    tokens: Vec<Token>,
    strings: Vec<String>,
}

impl Stop {
    /// Stop at any of `tokens`; they are not part of the text.
    #[must_use]
    pub fn new(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self {
            tokens: tokens.into_iter().collect(),
            strings: Vec::new(),
        }
    }

    /// Stop also where one of `strings` appears; neither it nor what follows is part of the text. Empty strings are
    /// ignored.
    #[must_use]
    pub fn with_strings<S: Into<String>>(mut self, strings: impl IntoIterator<Item = S>) -> Self {
        self.strings.extend(
            strings
                .into_iter()
                .map(Into::into)
                .filter(|s: &String| !s.is_empty()),
        );
        self
    }

    /// Whether `token` ends the turn.
    #[must_use]
    pub fn is_stop(&self, token: Token) -> bool {
        self.tokens.contains(&token)
    }

    /// The tokens.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The strings.
    #[must_use]
    pub fn strings(&self) -> &[String] {
        &self.strings
    }

    /// Watch one text for the strings.
    #[must_use]
    pub fn matcher(&self) -> StopMatcher {
        StopMatcher {
            strings: self.strings.clone(),
            held: String::new(),
            stopped: false,
        }
    }
}

/// Text that came out of a [`StopMatcher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Text that is certainly before any stop string; may be empty.
    Text(String),
    /// The last text, and the string that ended it.
    Stopped {
        /// What came before the string.
        text: String,
        /// The string.
        by: String,
    },
}

/// Watches a text that arrives in pieces. A suffix that may be the start of a stop string is held back, so the text that
/// comes out never depends on how it was cut.
#[derive(Clone, Debug)]
pub struct StopMatcher {
    strings: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopMatcher {
    /// The next piece. Of several stop strings the one that begins first counts, of those the longest; after a stop
    /// everything is dropped.
    pub fn push(&mut self, piece: &str) -> Cut {
        if self.stopped {
            return Cut::Text(String::new());
        }
        self.held.push_str(piece);
        let keep = self.undecided();
        match self.find() {
            Some((at, by)) if at < keep => self.stop(at, by),
            _ => Cut::Text(self.held.drain(..keep).collect()),
        }
    }

    /// The end of the text: what was held back comes out, up to a stop string in it.
    pub fn finish(&mut self) -> Cut {
        match self.find() {
            Some((at, by)) => self.stop(at, by),
            None => Cut::Text(std::mem::take(&mut self.held)),
        }
    }

    fn stop(&mut self, at: usize, by: String) -> Cut {
        self.stopped = true;
        self.held.truncate(at);
        Cut::Stopped {
            text: std::mem::take(&mut self.held),
            by,
        }
    }

    /// The first stop string in the held text, the longest that begins there.
    fn find(&self) -> Option<(usize, String)> {
        self.strings
            .iter()
            .filter_map(|s| self.held.find(s.as_str()).map(|at| (at, s)))
            .min_by_key(|(at, s)| (*at, usize::MAX - s.len()))
            .map(|(at, s)| (at, s.clone()))
    }

    /// Where the held text may begin a stop string that more text could complete; its length when nowhere.
    fn undecided(&self) -> usize {
        let longest = self.strings.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest.saturating_sub(1));
        (from..self.held.len())
            .filter(|&at| self.held.is_char_boundary(at))
            .find(|&at| {
                self.strings
                    .iter()
                    .any(|s| s.len() > self.held.len() - at && s.starts_with(&self.held[at..]))
            })
            .unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The whole text at once, by search.
    fn expected(text: &str, strings: &[String]) -> (String, Option<String>) {
        let first = strings
            .iter()
            .filter_map(|s| {
                text.find(s.as_str())
                    .map(|at| (at, usize::MAX - s.len(), s))
            })
            .min();
        match first {
            Some((at, _, by)) => (text[..at].to_owned(), Some(by.clone())),
            None => (text.to_owned(), None),
        }
    }

    proptest! {
        #[test]
        fn the_text_does_not_depend_on_how_it_is_cut(
            text in "[abé]{0,24}",
            strings in prop::collection::vec("[abé]{1,4}", 0..4),
            cuts in prop::collection::vec(1usize..5, 24),
        ) {
            let mut matcher = Stop::default().with_strings(strings.clone()).matcher();
            let (mut got, mut by) = (String::new(), None);
            let mut chars = text.chars();
            let pieces = cuts.into_iter().map(|n| chars.by_ref().take(n).collect::<String>()).collect::<Vec<_>>();
            for cut in pieces.iter().map(|p| Some(p.as_str())).chain([None]) {
                let cut = match cut {
                    Some(piece) => matcher.push(piece),
                    None => matcher.finish(),
                };
                match cut {
                    Cut::Text(text) => got += &text,
                    Cut::Stopped { text, by: string } => {
                        got += &text;
                        by = Some(string);
                        break;
                    }
                }
            }
            prop_assert_eq!((got, by), expected(&text, &strings));
        }
    }

    #[test]
    fn only_what_may_become_a_stop_string_is_held_back() {
        let mut matcher = Stop::default().with_strings(["</tool>"]).matcher();
        assert_eq!(matcher.push("a < b </to"), Cut::Text("a < b ".into()));
        assert_eq!(matcher.push("y>"), Cut::Text("</toy>".into()));
        assert_eq!(matcher.finish(), Cut::Text(String::new()));
    }
}
