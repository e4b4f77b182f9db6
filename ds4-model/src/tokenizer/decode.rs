//! Token bytes → text, one token at a time, without ever splitting a character.

use super::{Token, Tokenizer};

/// Decodes a stream of tokens. Bytes of an unfinished character (at most three) wait for the next token.
///
/// All pieces joined are what [`Tokenizer::decode`] makes of all tokens at once.
#[derive(Clone, Debug)]
pub struct StreamDecoder {
    tokenizer: Tokenizer,
    tail: Utf8Tail,
}

impl StreamDecoder {
    pub(super) fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            tail: Utf8Tail::default(),
        }
    }

    /// The text that `token` completes; `None` when it completes no character.
    pub fn push(&mut self, token: Token) -> Option<String> {
        some(self.tail.push(self.tokenizer.token_bytes(token)))
    }

    /// The end of the stream: an unfinished character becomes U+FFFD.
    pub fn finish(&mut self) -> Option<String> {
        some(self.tail.finish())
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Bytes in, valid text out: invalid sequences become U+FFFD as `String::from_utf8_lossy` does, an unfinished
/// character at the end is kept back.
#[derive(Clone, Debug, Default)]
struct Utf8Tail {
    pending: Vec<u8>,
}

impl Utf8Tail {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let unfinished =
                done + chunk.invalid().len() == self.pending.len() && is_prefix(chunk.invalid());
            if !chunk.invalid().is_empty() && !unfinished {
                text.push(char::REPLACEMENT_CHARACTER);
                done += chunk.invalid().len();
            }
        }
        self.pending.drain(..done);
        text
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// Whether `bytes` is the beginning of a character rather than garbage.
fn is_prefix(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_cut_of_any_bytes_decodes_like_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..40), cut in 1usize..6) {
            let mut tail = Utf8Tail::default();
            let mut text = String::new();
            for chunk in bytes.chunks(cut) {
                text += &tail.push(chunk);
                prop_assert!(tail.pending.len() <= 3);
            }
            text += &tail.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
        }

        #[test]
        fn characters_come_out_whole(text in "\\PC{0,12}", cut in 1usize..4) {
            let mut tail = Utf8Tail::default();
            let mut got = String::new();
            for chunk in text.as_bytes().chunks(cut) {
                got += &tail.push(chunk);
                prop_assert!(text.starts_with(&got));
            }
            prop_assert_eq!(got, text);
        }
    }
}
