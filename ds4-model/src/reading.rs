//! `Reading`: how a text is read in pieces, by whatever measures a model on one.

use crate::error::Error;
use crate::exec::Token;
use crate::tokenizer::Special;

/// How a text is read. Every piece is read from an empty timeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reading {
    /// Tokens of a piece, at least [`Reading::LEAST`]; 512 by default. The last piece may be shorter.
    pub chunk: usize,
    /// Most pieces, at least 1; `None` (the default) reads the whole text.
    pub chunks: Option<usize>,
    /// Whether control tokens that the text spells out are control tokens; by default none is.
    pub special: Special,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            chunk: 512,
            chunks: None,
            special: Special::None,
        }
    }
}

impl Reading {
    /// Fewest tokens of a piece, and of a text: a token alone has nothing before it and foretells nothing.
    pub const LEAST: usize = 2;

    /// The pieces of a text.
    ///
    /// # Errors
    /// [`Error::Option`] for pieces below [`Self::LEAST`] and for no pieces, [`Error::Text`] for a text below it.
    pub(crate) fn pieces<'a>(&self, tokens: &'a [Token]) -> Result<Vec<&'a [Token]>, Error> {
        let most = self.chunks.unwrap_or(usize::MAX);
        for (option, found, least, expected) in [
            ("chunk", self.chunk, Self::LEAST, "at least 2 tokens"),
            ("chunks", most, 1, "at least 1 piece"),
        ] {
            if found < least {
                return Err(Error::Option {
                    option,
                    found,
                    expected,
                });
            }
        }
        if tokens.len() < Self::LEAST {
            return Err(Error::Text {
                found: tokens.len(),
                expected: Self::LEAST,
            });
        }
        Ok(tokens.chunks(self.chunk).take(most).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_of_the_length_asked_for_and_never_of_nothing() {
        let tokens: Vec<Token> = (0..7).collect();
        let ok = |lens: &'static [usize]| Ok(lens);
        for (chunk, chunks, text, want) in [
            (512, None, 7, ok(&[7])),
            (3, None, 7, ok(&[3, 3, 1])),
            (2, Some(2), 7, ok(&[2, 2])),
            (2, Some(9), 2, ok(&[2])),
            (1, None, 7, Err("option `chunk` is 1, expected at least 2")),
            (0, None, 7, Err("option `chunk` is 0, expected at least 2")),
            (
                3,
                Some(0),
                7,
                Err("option `chunks` is 0, expected at least 1"),
            ),
            (3, None, 1, Err("the text has 1 token, expected at least 2")),
            (
                3,
                None,
                0,
                Err("the text has 0 tokens, expected at least 2"),
            ),
        ] {
            let reading = Reading {
                chunk,
                chunks,
                ..Reading::default()
            };
            match (reading.pieces(&tokens[..text]), want) {
                (Ok(pieces), Ok(want)) => {
                    let lens: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
                    assert_eq!(lens, want);
                    assert_eq!(pieces.concat(), tokens[..want.iter().sum()]);
                }
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, want) => panic!("{chunk}, {chunks:?}, {text}: {found:?}, {want:?}"),
            }
        }
    }
}
