//! The parser: reasoning, content, and where blocks of calls begin.

use super::input::{Input, before_beginning};
use super::tag::Scan;
use super::{
    Delta, Finish, Markup, Outcome, ParseOptions, Parsed, Repair, Sink, Start, Step, UnclosedThink,
    dsml, glm,
};
use crate::chat::{ThinkMode, marker};

/// Reads an answer while it arrives. Made by [`ChatFormat::stream_parser`](crate::chat::ChatFormat::stream_parser).
///
/// ```
/// use ds4_model::chat::{
///     ChatFormat, Conversation, Delta, Finish, Message, ParseOptions, RenderOptions, Tool,
/// };
///
/// let schema = r#"{"name": "time", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}"#;
/// let conversation = Conversation {
///     messages: vec![Message::user("What time is it in Rome?")],
///     tools: vec![Tool::new(schema)?],
/// };
/// let prompt = ChatFormat::V4.render(&conversation, &RenderOptions::default())?;
/// assert!(prompt.as_str().ends_with("<think>"));
///
/// let options = ParseOptions { tools: conversation.tools.clone(), ..ParseOptions::default() };
/// let mut parser = ChatFormat::V4.stream_parser(&options);
/// let mut deltas = parser.push("A tool knows.</think>One moment.<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"time\">\n");
/// deltas.extend(parser.push(
///     "<｜DSML｜parameter name=\"zone\" string=\"true\">Rome</｜DSML｜parameter>\n\
///      </｜DSML｜invoke>\n</｜DSML｜tool_calls>",
/// ));
/// assert_eq!(deltas[0], Delta::Reasoning("A tool knows.".into()));
/// let (_, answer) = parser.finish(Finish::Stop);
/// assert_eq!((&*answer.calls[0].name, &*answer.calls[0].arguments), ("time", r#"{"zone": "Rome"}"#));
/// # Ok::<(), ds4_model::chat::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamParser {
    /// `None`: calls are not told from text.
    markup: Option<Markup>,
    options: ParseOptions,
    input: Input,
    state: State,
    /// The last character of content that is out.
    last: Option<char>,
    sink: Sink,
}

#[derive(Clone, Debug)]
enum State {
    Reasoning,
    Content,
    Dsml(Box<dsml::Block>),
    Glm(Box<glm::Call>),
    /// After a block: nothing counts but another block.
    After,
    /// After an error: nothing counts.
    Broken,
}

impl StreamParser {
    pub(in crate::chat) fn new(markup: Option<Markup>, options: ParseOptions) -> Self {
        let thinking = options.think.is_on();
        let mut sink = Sink::default();
        sink.parsed.reasoning = thinking.then(String::new);
        let state = if thinking {
            State::Reasoning
        } else {
            State::Content
        };
        Self {
            markup,
            input: Input::new(options.evidence),
            state,
            last: None,
            sink,
            options,
        }
    }

    /// The next text, cut anywhere between characters.
    pub fn push(&mut self, text: &str) -> Vec<Delta> {
        self.feed(text, false)
    }

    /// The text of one control token.
    pub fn push_marker(&mut self, text: &str) -> Vec<Delta> {
        self.feed(text, true)
    }

    fn feed(&mut self, text: &str, is_marker: bool) -> Vec<Delta> {
        self.input.push(text, is_marker);
        while self.step() {}
        std::mem::take(&mut self.sink.deltas)
    }

    /// Whether the next token is markup or JSON rather than prose: it should be the likeliest one, whatever the
    /// temperature, because a tag has only one right spelling.
    #[must_use]
    pub fn in_structure(&self) -> bool {
        match &self.state {
            State::Dsml(block) => block.in_structure(&self.input),
            State::Glm(call) => call.in_structure(),
            State::Content | State::After => {
                let text = self.input.text().trim_start();
                self.markup
                    .is_some_and(|markup| text.starts_with(markup.opening()))
            }
            State::Reasoning | State::Broken => false,
        }
    }

    /// Whether what arrives now is reasoning.
    #[must_use]
    pub fn in_reasoning(&self) -> bool {
        matches!(self.state, State::Reasoning)
    }

    /// Whether what arrives now is content, as far as is known.
    #[must_use]
    pub fn in_content(&self) -> bool {
        matches!(self.state, State::Content)
    }

    /// The end of the text.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> (Vec<Delta>, Parsed) {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Reasoning => {
                let rest = self.input.take(self.input.text().len());
                self.sink.reasoning(rest);
                if finish == Finish::Stop && self.options.unclosed_think == UnclosedThink::Execute {
                    self.execute_reasoning();
                }
            }
            State::Content => self.finish_content(finish),
            State::Dsml(block) => block.finish(&self.input, finish, &mut self.sink),
            State::Glm(call) => call.finish(&mut self.sink),
            State::After => {
                if !self.input.text().trim().is_empty() {
                    self.sink.repair(Repair::TextAfterCalls);
                }
            }
            State::Broken => {}
        }
        (self.sink.deltas, self.sink.parsed)
    }

    /// One decision; false when it needs more text.
    fn step(&mut self) -> bool {
        let step = match &mut self.state {
            State::Reasoning => return self.step_reasoning(),
            State::Content => return self.step_content(false),
            State::After => return self.step_content(true),
            State::Broken => {
                self.input.take(self.input.text().len());
                return false;
            }
            State::Dsml(block) => block.step(&mut self.input, &self.options.tools, &mut self.sink),
            State::Glm(call) => call.step(&mut self.input, &self.options.tools, &mut self.sink),
        };
        match step {
            Step::Again => {}
            Step::More => return false,
            Step::Done => {
                self.state = State::After;
                self.last = Some('\n');
            }
            Step::Malformed { at, expected } => {
                self.sink.fail(Outcome::Malformed {
                    offset: self.input.offset() + at,
                    expected,
                });
                self.state = State::Broken;
            }
        }
        true
    }

    fn step_reasoning(&mut self) -> bool {
        let text = self.input.text();
        let end = text
            .match_indices(marker::THINK_END)
            .map(|(at, _)| at)
            .find(|&at| self.input.is_real(at));
        match end {
            Some(at) => {
                let reasoning = self.input.take(at);
                self.sink.reasoning(reasoning);
                self.input.take(marker::THINK_END.len());
                self.state = State::Content;
                true
            }
            None => {
                let certain = before_beginning(text, &[marker::THINK_END]);
                let reasoning = self.input.take(certain);
                self.sink.reasoning(reasoning);
                false
            }
        }
    }

    /// Content up to the next opener. `drop`: it is text after the calls, which does not count.
    fn step_content(&mut self, drop: bool) -> bool {
        let text = self.input.text();
        let Some(at) = text.find('<') else {
            self.content(before_newlines(text), drop);
            return false;
        };
        let before = before_newlines(&text[..at]);
        match self.opener(at) {
            Scan::More => {
                self.content(before, drop);
                false
            }
            Scan::No => {
                self.content(at + 1, drop);
                true
            }
            Scan::Is(start, skip) => {
                self.content(before, drop);
                self.input.take(at - before);
                let begins = self.input.offset();
                self.input.take(skip);
                if start == Start::Bare {
                    self.sink.repair(Repair::MissingWrapper);
                }
                self.state = match self.markup {
                    Some(Markup::Glm) => State::Glm(Box::new(glm::Call::new(begins))),
                    _ => State::Dsml(Box::new(dsml::Block::new(begins, start))),
                };
                true
            }
        }
    }

    fn opener(&self, at: usize) -> Scan<Start> {
        match self.markup {
            Some(Markup::Dsml) => {
                let lookalikes = !self.options.tools.is_empty();
                dsml::opener(&self.input, at, lookalikes, self.at_line_start(at))
            }
            Some(Markup::Glm) => glm::opener(&self.input, at),
            None => Scan::No,
        }
    }

    fn at_line_start(&self, at: usize) -> bool {
        self.input.text()[..at]
            .chars()
            .next_back()
            .or(self.last)
            .is_none_or(|c| c == '\n')
    }

    fn content(&mut self, len: usize, drop: bool) {
        let text = self.input.take(len);
        self.last = text.chars().next_back().or(self.last);
        if !drop {
            self.sink.content(text);
        } else if !text.trim().is_empty() {
            self.sink.repair(Repair::TextAfterCalls);
        }
    }

    /// Held-back text is content, unless it is the torn beginning of a block.
    fn finish_content(&mut self, finish: Finish) {
        let text = self.input.text();
        let opening = self.markup.map(Markup::opening);
        let torn = text.find('<').zip(opening).filter(|&(at, opening)| {
            let rest = &text[at..];
            let begun = rest.starts_with(opening) || (rest.len() > 1 && opening.starts_with(rest));
            let token = at + opening.find(marker::DSML).unwrap_or(0);
            match finish {
                Finish::Length => begun && self.input.is_real(token),
                Finish::Stop => {
                    rest.starts_with(opening) && self.input.is_real(token) && self.at_line_start(at)
                }
            }
        });
        match torn {
            Some((at, _)) => {
                let offset = self.input.offset() + at;
                self.content(before_newlines(&text[..at]), false);
                self.sink.fail(Outcome::Incomplete { offset });
            }
            None => self.content(text.len(), false),
        }
    }

    /// Take calls out of reasoning that never ended, when there is a complete block of them.
    fn execute_reasoning(&mut self) {
        let reasoning = self.sink.parsed.reasoning.clone().unwrap_or_default();
        let options = ParseOptions {
            think: ThinkMode::Off,
            evidence: false,
            ..self.options.clone()
        };
        let mut parser = Self::new(self.markup, options);
        let mut deltas = parser.push(&reasoning);
        let (last, parsed) = parser.finish(Finish::Stop);
        deltas.extend(last);
        if parsed.outcome == Outcome::Complete && !parsed.calls.is_empty() {
            self.sink.deltas.extend(
                deltas
                    .into_iter()
                    .filter(|d| !matches!(d, Delta::Content(_))),
            );
            self.sink.parsed.reasoning = Some(parsed.content);
            self.sink.parsed.calls = parsed.calls;
            self.sink.parsed.repairs = parsed.repairs;
            self.sink.repair(Repair::UnclosedThink);
        }
    }
}

/// Bytes of `text` before its last line breaks, at most two: those belong to a block that may follow.
fn before_newlines(text: &str) -> usize {
    let one = text.strip_suffix('\n').unwrap_or(text);
    one.strip_suffix('\n').unwrap_or(one).len()
}
