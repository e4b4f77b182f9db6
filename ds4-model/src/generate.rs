//! Token by token from a session: sampling, stops, text.

use crate::error::Error;
use crate::sample::Sampler;
use crate::session::Session;
use crate::stop::{Cut, Stop, StopMatcher};
use crate::tokenizer::{StreamDecoder, Token};

/// Why a generation ended. For [`chat::StreamParser::finish`](crate::chat::StreamParser::finish) the first two are
/// [`chat::Finish::Stop`](crate::chat::Finish::Stop), the last is [`chat::Finish::Length`](crate::chat::Finish::Length).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A stop token.
    Token(Token),
    /// A stop string.
    String(String),
    /// The limit of tokens, or the end of the context.
    Length,
}

/// One step of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Text that is certain now; often empty, since characters and stop strings may span tokens.
    pub text: String,
    /// The token drawn; `None` for text released at the end.
    pub token: Option<Token>,
    /// Set on the last piece.
    pub finish: Option<Finish>,
}

/// Draws tokens until a stop or a limit. An iterator that ends after the piece with [`Piece::finish`], or after an error.
pub struct Generation<'s> {
    session: &'s mut Session,
    sampler: &'s mut Sampler,
    stop: &'s Stop,
    decoder: StreamDecoder,
    matcher: StopMatcher,
    /// A token drawn and shown, not yet part of the timeline.
    pending: Option<Token>,
    left: usize,
    over: bool,
}

impl Session {
    /// Continue the timeline, token by token, as long as the context lasts. Strings and tokens of `stop` end it.
    ///
    /// The session needs logits ([`Session::sync`]); without them the first item is [`Error::NoLogits`]. A token drawn enters
    /// the timeline when its successor is computed, so the last one never does: not a stop token, nor the last token before
    /// a stop string or a limit. [`Session::sync`] with the next prompt makes up for it.
    pub fn generate<'s>(&'s mut self, sampler: &'s mut Sampler, stop: &'s Stop) -> Generation<'s> {
        let decoder = self.engine().tokenizer().decoder();
        let matcher = stop.matcher();
        Generation {
            session: self,
            sampler,
            stop,
            decoder,
            matcher,
            pending: None,
            left: usize::MAX,
            over: false,
        }
    }
}

impl Generation<'_> {
    /// Draw at most `tokens`.
    #[must_use]
    pub fn limit(mut self, tokens: usize) -> Self {
        self.left = tokens;
        self
    }

    fn step(&mut self) -> Result<Piece, Error> {
        if self.left == 0 {
            return Ok(self.end(Finish::Length));
        }
        // The previous token enters the timeline only now, when its logits are needed.
        if let Some(token) = self.pending.take() {
            if self.session.tokens().len() >= self.session.engine().context() {
                return Ok(self.end(Finish::Length));
            }
            self.session.push(token)?;
        }
        if self.session.logits().is_empty() {
            return Err(Error::NoLogits);
        }
        let token = self.sampler.sample(self.session.logits());
        self.left -= 1;
        if self.stop.is_stop(token) {
            return Ok(self.end(Finish::Token(token)));
        }
        self.pending = Some(token);
        let text = self.decoder.push(token).unwrap_or_default();
        Ok(match self.matcher.push(&text) {
            Cut::Text(text) => Piece {
                text,
                token: Some(token),
                finish: None,
            },
            Cut::Stopped { text, by } => {
                self.over = true;
                Piece {
                    text,
                    token: Some(token),
                    finish: Some(Finish::String(by)),
                }
            }
        })
    }

    /// Release what was held back.
    fn end(&mut self, finish: Finish) -> Piece {
        self.over = true;
        let tail = self.decoder.finish().unwrap_or_default();
        let (mut text, mut stopped) = match self.matcher.push(&tail) {
            Cut::Text(text) => (text, None),
            Cut::Stopped { text, by } => (text, Some(by)),
        };
        if stopped.is_none() {
            let (rest, by) = match self.matcher.finish() {
                Cut::Text(rest) => (rest, None),
                Cut::Stopped { text, by } => (text, Some(by)),
            };
            text += &rest;
            stopped = by;
        }
        Piece {
            text,
            token: None,
            finish: Some(stopped.map_or(finish, Finish::String)),
        }
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let step = self.step();
        self.over |= step.is_err();
        Some(step)
    }
}
