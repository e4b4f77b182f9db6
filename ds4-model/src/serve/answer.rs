//! One answer in progress, owned apart from its session: it takes a turn whenever somebody gives it one.

use std::ops::ControlFlow;

use crate::chat::{Delta, Finish, Parsed, Replay, StreamParser};
use crate::engine::Engine;
use crate::error::{Error, with_causes};
#[cfg(feature = "grammar")]
use crate::grammar::Grammar;
use crate::sample::{Sampled, Sampler};
use crate::serve::listed::Listed;
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
    /// Report the log-probability of every token of content, and of so many alternatives: by the model alone, whatever
    /// a grammar allows.
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
    /// Bytes of the token that are content; not always whole characters. Joined, those of an answer are its content.
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
    /// The grammar that was asked for could not be followed, or not within its limits; the message says how.
    Grammar(String),
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
    /// What the model wrote, markers included.
    pub text: String,
    /// The same, for [`Message::replay`](crate::Message).
    pub replay: Replay,
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
    replay: Replay,
    listed: Listed,
    /// Lengths at which other prompts may part from this one.
    marks: Vec<usize>,
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
            replay: Replay {
                thinking: matches!(&request.reading, Reading::Chat(p) if p.in_reasoning()),
                ..Replay::default()
            },
            listed: Listed::default(),
            marks: marks(engine, &request),
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

    /// Lengths of the prompt at which others may part from it ([`ChatFormat::marks`](crate::chat::ChatFormat::marks)), but
    /// for those so short that they are not worth a step of their own.
    #[must_use]
    pub fn marks(&self) -> &[usize] {
        &self.marks
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
        self.try_turn(session, rows).unwrap_or_else(|error| {
            let how = with_causes(&error);
            self.end(match error {
                #[cfg(feature = "grammar")]
                Error::Grammar(_) => Ended::Grammar(how),
                _ => Ended::Failed(how),
            })
        })
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

    fn read(&mut self, session: &mut Session, rows: usize) -> Result<Update, Error> {
        // Not across a mark: the state there is kept, so that it need not be computed again.
        let known = session.cut(&self.request.prompt)?;
        if self.marks.contains(&known) {
            session.remember()?;
        }
        let ahead = self.marks.iter().find(|&&mark| mark > known);
        let rows = ahead.map_or(rows, |mark| rows.min(mark - known));
        let progress = session.sync_some(&self.request.prompt, rows)?;
        if self.marks.contains(&session.tokens().len()) {
            session.remember()?;
        }
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
        {
            let constrained = self.constrained();
            if let Some(grammar) = &mut self.request.grammar {
                let mut masked = logits.to_vec();
                if constrained {
                    grammar.mask(&mut masked)?;
                } else {
                    // The answer is still to come: a turn that ends in reasoning would leave it empty.
                    for &token in self.request.stop.tokens() {
                        if let Some(logit) = masked.get_mut(token as usize) {
                            *logit = f32::NEG_INFINITY;
                        }
                    }
                }
                return Ok(self.sample_from(&masked, logits));
            }
        }
        Ok(self.sample_from(logits, logits))
    }

    /// Draw from `allowed`; how likely the token was is by `logits`.
    fn sample_from(&mut self, allowed: &[f32], logits: &[f32]) -> Sampled {
        let structure =
            matches!(&self.request.reading, Reading::Chat(parser) if parser.in_structure());
        let sampler = &mut self.request.sampler;
        let temperature = sampler.temperature;
        if structure {
            sampler.temperature = 0.0;
        }
        let token = sampler.sample(allowed);
        sampler.temperature = temperature;
        match self.request.logprobs {
            Some(top) => sampler.logprobs(logits, token, top),
            None => Sampled {
                token,
                logprob: 0.0,
                top: Vec::new(),
            },
        }
    }

    /// What a drawn token adds to the answer.
    fn take(&mut self, engine: &Engine, sampled: &Sampled) -> Update {
        let token = sampled.token;
        let tokenizer = engine.tokenizer();
        let in_content = match &self.request.reading {
            Reading::Text => true,
            Reading::Chat(parser) => parser.in_content(),
        };
        let text = &mut self.replay.text;
        let mut shown = String::new();
        let deltas = match &mut self.request.reading {
            Reading::Text => {
                shown = self.decoder.push(token).unwrap_or_default();
                text.text(&shown);
                vec![Delta::Content(shown.clone())]
            }
            Reading::Chat(parser) if tokenizer.is_marker(token) => {
                self.usage.reasoning += usize::from(parser.in_reasoning());
                let torn = self.decoder.finish().unwrap_or_default();
                let mut deltas = parser.push(&torn);
                let marker = String::from_utf8_lossy(tokenizer.token_bytes(token));
                text.text(&torn);
                text.marker(&marker);
                self.listed.decoded(&torn);
                if !tokenizer.is_control(token) {
                    deltas.extend(parser.push_marker(&marker));
                    shown = marker.into_owned();
                }
                deltas
            }
            Reading::Chat(parser) => {
                self.usage.reasoning += usize::from(parser.in_reasoning());
                shown = self.decoder.push(token).unwrap_or_default();
                text.text(&shown);
                parser.push(&shown)
            }
        };
        let is_hidden =
            matches!(self.request.reading, Reading::Chat(_)) && tokenizer.is_control(token);
        if self.request.logprobs.is_some() && in_content && !is_hidden {
            let bytes = |token| tokenizer.token_bytes(token).to_vec();
            self.listed.push(Logprob {
                bytes: bytes(token),
                logprob: sampled.logprob,
                top: sampled.top.iter().map(|&(t, p)| (bytes(t), p)).collect(),
            });
            self.listed.decoded(&shown);
        }
        let mut update = self.cut(deltas);
        if update.end.is_none() {
            update.logprobs = self.listed.release(self.content.len());
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
        self.replay.text.text(&torn);
        self.listed.decoded(&torn);
        let stopped = matches!(ended, Ended::StopString(_));
        let finish = match ended {
            Ended::Length | Ended::Failed(_) | Ended::Grammar(_) => Finish::Length,
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
            logprobs: self.listed.finish(self.content.len()),
            end: Some(End {
                ended,
                parsed,
                text: self.replay.text.as_str().to_owned(),
                replay: std::mem::take(&mut self.replay),
                usage: self.usage,
            }),
        }
    }
}

/// A shorter beginning is computed again in less time than a step of its own takes.
const LEAST_MARK: usize = 32;

/// See [`Answer::marks`]; none where the prompt is no chat.
fn marks(engine: &Engine, request: &Request) -> Vec<usize> {
    let Reading::Chat(_) = request.reading else {
        return Vec::new();
    };
    let mut marks = engine.chat().marks(engine.tokenizer(), &request.prompt);
    marks.retain(|&mark| mark >= LEAST_MARK);
    marks
}
