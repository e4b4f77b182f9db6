//! One answer in progress, owned apart from its session: it takes a turn whenever somebody gives it one.

use std::ops::ControlFlow;

use crate::chat::{Delta, Finish, Parsed, StreamParser};
use crate::engine::Engine;
use crate::error::Error;
#[cfg(feature = "grammar")]
use crate::grammar::Grammar;
use crate::sample::{Sampled, Sampler};
use crate::session::Session;
use crate::stop::{Cut, Stop, StopMatcher};
use crate::tokenizer::{StreamDecoder, Token};

/// How the text of an answer is read.
#[derive(Clone, Debug)]
pub enum Reading {
    /// As an answer of a chat: reasoning, content, calls. Control tokens are not shown.
    Chat(Box<StreamParser>),
    /// As text, all of it content.
    Text,
}

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// The prompt; at least one token.
    pub prompt: Vec<Token>,
    /// How tokens are drawn. Inside the markup of calls the likeliest is taken, whatever the temperature.
    pub sampler: Sampler,
    /// What ends the answer. Strings are looked for in content, not in reasoning nor in arguments of calls.
    pub stop: Stop,
    /// Most tokens of the answer.
    pub limit: usize,
    /// How the text is read.
    pub reading: Reading,
    /// Report the log-probability of every token of content, and of so many alternatives.
    pub logprobs: Option<usize>,
    /// What content must follow.
    #[cfg(feature = "grammar")]
    pub grammar: Option<Grammar>,
}

impl Request {
    /// Nothing in particular: an empty prompt, the likeliest token every time, no end but that of the context.
    #[must_use]
    pub fn new(reading: Reading) -> Self {
        Self {
            prompt: Vec::new(),
            sampler: Sampler::default(),
            stop: Stop::default(),
            limit: usize::MAX,
            reading,
            logprobs: None,
            #[cfg(feature = "grammar")]
            grammar: None,
        }
    }
}

/// A token of content with its log-probability and alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprob {
    /// Bytes of the token; not always whole characters.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The likeliest tokens, best first.
    pub top: Vec<(Vec<u8>, f32)>,
}

/// What a turn brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Tokens of the prompt that are known now.
    pub read: usize,
    /// New parts of the answer.
    pub deltas: Vec<Delta>,
    /// Log-probabilities, if asked for.
    pub logprobs: Vec<Logprob>,
    /// Set in the last update.
    pub end: Option<End>,
}

/// Why an answer is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model ended its turn.
    Stop,
    /// A stop string.
    StopString(String),
    /// The limit of tokens, the end of the context, or [`Answer::cut_short`].
    Length,
    /// It failed; the message says how.
    Failed(String),
}

/// Tokens, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Those of them whose state was there already.
    pub cached: usize,
    /// Tokens drawn, the one that ended the turn included.
    pub completion: usize,
    /// Those of them that were reasoning.
    pub reasoning: usize,
}

/// The end of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Why.
    pub ended: Ended,
    /// The whole answer. Content is cut before a stop string.
    pub parsed: Parsed,
    /// What the model wrote, markers included: for [`Message::replay`](crate::Message).
    pub text: String,
    /// Tokens.
    pub usage: Usage,
}

/// An answer in progress.
#[derive(Debug)]
pub struct Answer {
    request: Request,
    decoder: StreamDecoder,
    matcher: StopMatcher,
    /// Content as it came out of the stop matcher.
    content: String,
    text: String,
    pending: Option<Token>,
    usage: Usage,
    /// Whether the prompt is read.
    begun: bool,
    first: bool,
    over: bool,
}

impl Answer {
    /// Nothing is computed yet.
    ///
    /// # Errors
    /// [`Error::Context`] when the prompt fills the context and leaves no room for an answer.
    pub fn new(engine: &Engine, request: Request) -> Result<Self, Error> {
        let (wanted, limit) = (request.prompt.len() + 1, engine.context());
        if wanted > limit {
            return Err(Error::Context { wanted, limit });
        }
        Ok(Self {
            decoder: engine.tokenizer().decoder(),
            matcher: request.stop.matcher(),
            content: String::new(),
            text: String::new(),
            pending: None,
            usage: Usage {
                prompt: request.prompt.len(),
                ..Usage::default()
            },
            begun: false,
            first: true,
            over: false,
            request,
        })
    }

    /// The prompt.
    #[must_use]
    pub fn prompt(&self) -> &[Token] {
        &self.request.prompt
    }

    /// Whether the prompt is read and tokens are drawn.
    #[must_use]
    pub fn is_decoding(&self) -> bool {
        self.begun
    }

    /// Whether the last update is out.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Read at most `rows` tokens of the prompt, or draw one token. An error ends the answer and is its last update.
    pub fn turn(&mut self, session: &mut Session, rows: usize) -> Update {
        self.try_turn(session, rows)
            .unwrap_or_else(|error| self.end(Ended::Failed(describe(&error))))
    }

    /// As [`Self::turn`], with the error as it is. It is the caller's then, and no last update follows.
    ///
    /// # Errors
    /// As for [`Session::sync_some`] and [`Session::push`].
    pub fn try_turn(&mut self, session: &mut Session, rows: usize) -> Result<Update, Error> {
        if self.begun {
            self.draw(session)
        } else {
            self.read(session, rows)
        }
    }

    /// End it here, as if this were its limit; the result is its last update.
    pub fn cut_short(&mut self) -> Update {
        self.end(Ended::Length)
    }

    /// Carry it to its end on one session. `on` sees every update and may cut the answer short; its end is then among
    /// the updates too. With it comes the sampler, for the next answer.
    ///
    /// # Errors
    /// As for [`Self::try_turn`], and [`Error::Stopped`] when `on` breaks off before a token is drawn.
    pub fn run(
        mut self,
        session: &mut Session,
        on: &mut dyn FnMut(&Update) -> ControlFlow<()>,
    ) -> Result<(End, Sampler), Error> {
        let rows = session.engine().options().prefill_rows;
        loop {
            let mut update = self.try_turn(session, rows)?;
            if on(&update).is_break() && update.end.is_none() {
                if self.usage.completion == 0 {
                    return Err(Error::Stopped {
                        done: update.read,
                        total: self.request.prompt.len(),
                    });
                }
                update = self.cut_short();
                // What was held back is part of the answer; that it ends here is what `on` asked for.
                let _ = on(&update);
            }
            if let Some(end) = update.end {
                return Ok((end, self.request.sampler));
            }
        }
    }

    /// End it here: what was drawn so far is the answer, as at its limit.
    pub fn stop(&mut self) -> End {
        let update = self.end(Ended::Length);
        update.end.expect("the last update has it")
    }

    fn read(&mut self, session: &mut Session, rows: usize) -> Result<Update, Error> {
        let progress = session.sync_some(&self.request.prompt, rows)?;
        if std::mem::take(&mut self.first) {
            self.usage.cached = progress.reused;
        }
        self.begun = progress.left == 0;
        Ok(Update {
            read: self.request.prompt.len() - progress.left,
            ..Update::default()
        })
    }

    fn draw(&mut self, session: &mut Session) -> Result<Update, Error> {
        if self.usage.completion >= self.request.limit {
            return Ok(self.end(Ended::Length));
        }
        if let Some(token) = self.pending.take() {
            if session.tokens().len() >= session.engine().context() {
                return Ok(self.end(Ended::Length));
            }
            session.push(token)?;
        }
        if session.logits().is_empty() {
            return Err(Error::NoLogits);
        }
        let sampled = self.sample(session.logits())?;
        let token = sampled.token;
        self.usage.completion += 1;
        if self.request.stop.is_stop(token) {
            return Ok(self.end(Ended::Stop));
        }
        #[cfg(feature = "grammar")]
        if self.constrained()
            && let Some(grammar) = &mut self.request.grammar
        {
            grammar.accept(token)?;
        }
        self.pending = Some(token);
        Ok(self.take(session.engine(), &sampled))
    }

    /// Whether content is being written: that is what a grammar is about.
    #[cfg(feature = "grammar")]
    fn constrained(&self) -> bool {
        match &self.request.reading {
            Reading::Chat(parser) => !parser.in_reasoning(),
            Reading::Text => true,
        }
    }

    fn sample(&mut self, logits: &[f32]) -> Result<Sampled, Error> {
        #[cfg(feature = "grammar")]
        if self.constrained()
            && let Some(grammar) = &mut self.request.grammar
        {
            let mut masked = logits.to_vec();
            grammar.mask(&mut masked)?;
            return Ok(self.sample_from(&masked));
        }
        Ok(self.sample_from(logits))
    }

    fn sample_from(&mut self, logits: &[f32]) -> Sampled {
        let structure =
            matches!(&self.request.reading, Reading::Chat(parser) if parser.in_structure());
        let sampler = &mut self.request.sampler;
        let temperature = sampler.temperature;
        if structure {
            sampler.temperature = 0.0;
        }
        let sampled = match self.request.logprobs {
            Some(top) => sampler.sample_with_logprobs(logits, top),
            None => Sampled {
                token: sampler.sample(logits),
                logprob: 0.0,
                top: Vec::new(),
            },
        };
        sampler.temperature = temperature;
        sampled
    }

    /// What a drawn token adds to the answer.
    fn take(&mut self, engine: &Engine, sampled: &Sampled) -> Update {
        let token = sampled.token;
        let tokenizer = engine.tokenizer();
        let deltas = match &mut self.request.reading {
            Reading::Text => {
                let text = self.decoder.push(token).unwrap_or_default();
                self.text += &text;
                vec![Delta::Content(text)]
            }
            Reading::Chat(parser) if tokenizer.is_marker(token) => {
                self.usage.reasoning += usize::from(parser.in_reasoning());
                let torn = self.decoder.finish().unwrap_or_default();
                let mut deltas = parser.push(&torn);
                let marker = String::from_utf8_lossy(tokenizer.token_bytes(token));
                self.text += &torn;
                self.text += &marker;
                if !tokenizer.is_control(token) {
                    deltas.extend(parser.push_marker(&marker));
                }
                deltas
            }
            Reading::Chat(parser) => {
                self.usage.reasoning += usize::from(parser.in_reasoning());
                let text = self.decoder.push(token).unwrap_or_default();
                self.text += &text;
                parser.push(&text)
            }
        };
        let is_content = match &self.request.reading {
            Reading::Text => true,
            Reading::Chat(parser) => parser.in_content() && !tokenizer.is_marker(token),
        };
        let mut update = self.cut(deltas);
        if self.request.logprobs.is_some() && is_content {
            let bytes = |token| tokenizer.token_bytes(token).to_vec();
            update.logprobs.push(Logprob {
                bytes: bytes(token),
                logprob: sampled.logprob,
                top: sampled.top.iter().map(|&(t, p)| (bytes(t), p)).collect(),
            });
        }
        update
    }

    /// Let content through until a stop string, which ends the answer.
    fn cut(&mut self, deltas: Vec<Delta>) -> Update {
        let mut out = Vec::with_capacity(deltas.len());
        for delta in deltas {
            let Delta::Content(text) = delta else {
                // Content before something else is over: what is held back cannot become a stop string any more.
                match self.matcher.finish() {
                    Cut::Text(text) => self.content(text, &mut out),
                    Cut::Stopped { text, by } => {
                        self.content(text, &mut out);
                        return self.stopped(out, by);
                    }
                }
                out.push(delta);
                continue;
            };
            match self.matcher.push(&text) {
                Cut::Text(text) => self.content(text, &mut out),
                Cut::Stopped { text, by } => {
                    self.content(text, &mut out);
                    return self.stopped(out, by);
                }
            }
        }
        Update {
            read: self.usage.prompt,
            deltas: out,
            ..Update::default()
        }
    }

    fn content(&mut self, text: String, out: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.content += &text;
            out.push(Delta::Content(text));
        }
    }

    fn stopped(&mut self, deltas: Vec<Delta>, by: String) -> Update {
        let mut update = self.end(Ended::StopString(by));
        update.deltas = deltas;
        update
    }

    /// Release what is held back and sum up.
    fn end(&mut self, mut ended: Ended) -> Update {
        self.over = true;
        let torn = self.decoder.finish().unwrap_or_default();
        self.text += &torn;
        let stopped = matches!(ended, Ended::StopString(_));
        let finish = match ended {
            Ended::Length | Ended::Failed(_) => Finish::Length,
            Ended::Stop | Ended::StopString(_) => Finish::Stop,
        };
        let reading = std::mem::replace(&mut self.request.reading, Reading::Text);
        let (deltas, mut parsed) = match reading {
            Reading::Chat(mut parser) => {
                let mut deltas = parser.push(&torn);
                let (rest, parsed) = parser.finish(finish);
                deltas.extend(rest);
                (deltas, parsed)
            }
            Reading::Text => (vec![Delta::Content(torn)], Parsed::default()),
        };
        let mut out = Vec::new();
        if !stopped {
            for delta in deltas.into_iter().map(Some).chain([None]) {
                let cut = match delta {
                    Some(Delta::Content(text)) => self.matcher.push(&text),
                    Some(other) => {
                        let cut = self.matcher.finish();
                        if let Cut::Text(text) = cut {
                            self.content(text, &mut out);
                            out.push(other);
                            continue;
                        }
                        cut
                    }
                    None => self.matcher.finish(),
                };
                match cut {
                    Cut::Text(text) => self.content(text, &mut out),
                    Cut::Stopped { text, by } => {
                        self.content(text, &mut out);
                        ended = Ended::StopString(by);
                        break;
                    }
                }
            }
        }
        if matches!(ended, Ended::StopString(_)) {
            // Nothing that would have followed a stop string ever was.
            parsed.calls.clear();
        }
        parsed.content.clone_from(&self.content);
        Update {
            read: self.usage.prompt,
            deltas: out,
            logprobs: Vec::new(),
            end: Some(End {
                ended,
                parsed,
                text: std::mem::take(&mut self.text),
                usage: self.usage,
            }),
        }
    }
}

/// An error with its causes, on one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
