//! Log-probabilities on their way out: a token is listed when its bytes are content, and not before.

use std::collections::VecDeque;

use crate::serve::answer::Logprob;

/// Tokens that may be content, until it is known: until then a stop string or a call may yet begin with them.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Where each ends, in bytes from the start of the content.
    tokens: VecDeque<(usize, Logprob)>,
    end: usize,
    /// Bytes of text that the tokens have become so far.
    text: usize,
}

impl Listed {
    pub(super) fn push(&mut self, token: Logprob) {
        self.end += token.bytes.len();
        self.tokens.push_back((self.end, token));
    }

    /// Tokens became text: longer than they were, where bytes that are no character were replaced.
    pub(super) fn decoded(&mut self, text: &str) {
        if self.end > 0 {
            self.text += text.len();
        }
        if self.text > self.end {
            self.end = self.text;
            if let Some((end, _)) = self.tokens.back_mut() {
                *end = self.text;
            }
        }
    }

    /// The tokens of the first `content` bytes.
    pub(super) fn release(&mut self, content: usize) -> Vec<Logprob> {
        let known = self.tokens.iter().take_while(|(end, _)| *end <= content);
        let count = known.count();
        self.tokens.drain(..count).map(|(_, token)| token).collect()
    }

    /// As [`Listed::release`]; there will be no more content. Of a token that was cut its first part counts.
    pub(super) fn finish(&mut self, content: usize) -> Vec<Logprob> {
        let mut known = self.release(content);
        if let Some((end, mut token)) = self.tokens.pop_front() {
            let begin = end.saturating_sub(token.bytes.len());
            token.bytes.truncate(content.saturating_sub(begin));
            known.extend(Some(token).filter(|token| !token.bytes.is_empty()));
        }
        self.tokens.clear();
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(listed: &mut Listed, bytes: &[u8], text: &str) {
        listed.push(Logprob {
            bytes: bytes.to_vec(),
            logprob: -1.0,
            top: Vec::new(),
        });
        listed.decoded(text);
    }

    fn joined(tokens: Vec<Logprob>) -> Vec<u8> {
        tokens.into_iter().flat_map(|token| token.bytes).collect()
    }

    #[test]
    fn a_character_over_two_tokens_comes_with_the_second() {
        let mut listed = Listed::default();
        push(&mut listed, b"a\xC3", "a");
        assert!(listed.release(1).is_empty());
        push(&mut listed, b"\xA9b", "\u{e9}b");
        assert_eq!(joined(listed.release(4)), "a\u{e9}b".as_bytes());
    }

    #[test]
    fn what_is_cut_is_not_listed_and_the_token_that_is_cut_in_part() {
        let mut listed = Listed::default();
        push(&mut listed, b"one", "one");
        push(&mut listed, b" two", " two");
        push(&mut listed, b" three", " three");
        assert_eq!(joined(listed.release(3)), b"one");
        assert_eq!(joined(listed.finish(5)), b" t");
        assert!(listed.finish(99).is_empty());
    }

    #[test]
    fn bytes_that_are_no_character_count_as_what_they_became() {
        let mut listed = Listed::default();
        push(&mut listed, b"\xFF", "\u{FFFD}");
        push(&mut listed, b"ab", "ab");
        assert_eq!(joined(listed.release(4)), b"\xFF");
        assert_eq!(joined(listed.release(5)), b"ab");
    }
}
