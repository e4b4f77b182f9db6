//! A question with its answer, as a line of JSON.
//!
//! ```json
//! {"id": "fr", "category": "capitals", "question": "What is the capital of France?", "kind": "contains", "answer": "Paris"}
//! {"messages": [{"role": "user", "content": "2 + 2?"}], "kind": "integer", "answer": 4}
//! {"question": "Which is a fruit?", "choices": ["stone", "pear"], "kind": "choice", "answer": "B"}
//! ```
//! `kind` is one of `exact`, `contains` (a text or several to choose from), `integer`, `choice` (a letter), `regex`, `json`.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::{Message, Role};

/// Memory that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;
/// The category of cases that name none.
const CATEGORY: &str = "general";

/// Why a line is no case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// It is no JSON of the form.
    #[error("line {line}: not a case")]
    Json {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A member has a value that nothing can be done with.
    #[error("line {line}: `{field}` is {found}, expected {expected}")]
    Field {
        /// The line, from 1.
        line: usize,
        /// The member.
        field: &'static str,
        /// Its value.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// Two cases have the same id.
    #[error("line {line}: the id `{id}` is that of line {first} too")]
    Twice {
        /// The line, from 1.
        line: usize,
        /// The earlier line.
        first: usize,
        /// The id.
        id: String,
    },
    /// There is no case at all.
    #[error("no case: expected at least one line of JSON")]
    Empty,
}

/// What the answer should be.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Expected {
    /// One of these texts, whole.
    Exact(Vec<String>),
    /// One of these texts, somewhere.
    Contains(Vec<String>),
    /// This number.
    Integer(i64),
    /// This letter, in upper case.
    Choice(char),
    /// Something that the pattern finds.
    Regex(Regex),
    /// This value.
    Json(Value),
}

impl Expected {
    /// The name of its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Contains(_) => "contains",
            Self::Integer(_) => "integer",
            Self::Choice(_) => "choice",
            Self::Regex(_) => "regex",
            Self::Json(_) => "json",
        }
    }

    fn answer(&self) -> Value {
        match self {
            Self::Exact(texts) | Self::Contains(texts) => json!(texts),
            Self::Integer(number) => json!(number),
            Self::Choice(letter) => json!(letter),
            Self::Regex(pattern) => json!(pattern.as_str()),
            Self::Json(value) => value.clone(),
        }
    }
}

/// A question with its answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, unique among its neighbours: by default the number of its line.
    pub id: String,
    /// What it is about.
    pub category: String,
    /// The conversation to answer.
    pub messages: Vec<Message>,
    /// The right answer.
    pub expected: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    id: Option<String>,
    category: Option<String>,
    question: Option<String>,
    messages: Option<Vec<Message>>,
    choices: Option<Vec<String>>,
    kind: String,
    answer: Value,
}

impl Case {
    /// The cases of a text, one a line; empty lines are skipped.
    ///
    /// # Errors
    /// [`CaseError`] names the first line that is none.
    pub fn parse_lines(text: &str) -> Result<Vec<Self>, CaseError> {
        let mut cases = Vec::new();
        let mut lines = std::collections::HashMap::new();
        for (at, words) in text.lines().enumerate() {
            if words.trim().is_empty() {
                continue;
            }
            let line = at + 1;
            let wire =
                serde_json::from_str(words).map_err(|source| CaseError::Json { line, source })?;
            let case = Self::from_wire(wire, line)?;
            if let Some(first) = lines.insert(case.id.clone(), line) {
                let id = case.id;
                return Err(CaseError::Twice { line, first, id });
            }
            cases.push(case);
        }
        if cases.is_empty() {
            return Err(CaseError::Empty);
        }
        Ok(cases)
    }

    /// The case that [`Case::to_json`] wrote, or any other; `line` is for errors.
    ///
    /// # Errors
    /// [`CaseError`].
    pub fn from_json(value: Value, line: usize) -> Result<Self, CaseError> {
        let wire =
            serde_json::from_value(value).map_err(|source| CaseError::Json { line, source })?;
        Self::from_wire(wire, line)
    }

    fn from_wire(wire: Wire, line: usize) -> Result<Self, CaseError> {
        let wrong = |field, found: String, expected| CaseError::Field {
            line,
            field,
            found,
            expected,
        };
        let choices = wire.choices.unwrap_or_default();
        if choices.len() > 26 {
            let found = format!("{} texts", choices.len());
            return Err(wrong("choices", found, "at most 26"));
        }
        let messages = match (wire.question, wire.messages) {
            (Some(question), None) => vec![Message::user(with_choices(question, &choices))],
            (None, Some(messages)) if choices.is_empty() => messages,
            (None, Some(_)) => {
                return Err(wrong(
                    "choices",
                    "set".into(),
                    "`choices` with `question` alone",
                ));
            }
            (question, _) => {
                let found = if question.is_some() { "set" } else { "missing" };
                return Err(wrong("question", found.into(), "either it or `messages`"));
            }
        };
        if !messages.last().is_some_and(|m| m.role == Role::User) {
            let found = "without a last message of the user".to_owned();
            return Err(wrong("messages", found, "a conversation to answer"));
        }
        let expected = expected(&wire.kind, wire.answer, &choices, line)?;
        Ok(Self {
            id: wire.id.unwrap_or_else(|| line.to_string()),
            category: wire.category.unwrap_or_else(|| CATEGORY.to_owned()),
            messages,
            expected,
        })
    }

    /// As JSON that reads back as the same case.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "category": self.category,
            "messages": self.messages,
            "kind": self.expected.kind(),
            "answer": self.expected.answer(),
        })
    }

    /// What is asked last.
    #[must_use]
    pub fn question(&self) -> &str {
        self.messages.last().map_or("", |m| &m.content)
    }
}

fn with_choices(mut question: String, choices: &[String]) -> String {
    for (letter, choice) in ('A'..='Z').zip(choices) {
        question += &format!("\n{letter}) {choice}");
    }
    if !choices.is_empty() {
        question += "\nAnswer with the letter alone.";
    }
    question
}

fn expected(
    kind: &str,
    answer: Value,
    choices: &[String],
    line: usize,
) -> Result<Expected, CaseError> {
    let wrong = |expected| CaseError::Field {
        line,
        field: "answer",
        found: answer.to_string(),
        expected,
    };
    let texts = || match &answer {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(_) => Vec::deserialize(&answer).ok().filter(|t| !t.is_empty()),
        _ => None,
    };
    match kind {
        "exact" => texts()
            .map(Expected::Exact)
            .ok_or_else(|| wrong("a text or a list of texts")),
        "contains" => texts()
            .filter(|texts| texts.iter().all(|t| !t.trim().is_empty()))
            .map(Expected::Contains)
            .ok_or_else(|| wrong("a text or a list of texts, none of them blank")),
        "integer" => answer
            .as_i64()
            .or_else(|| answer.as_str()?.parse().ok())
            .map(Expected::Integer)
            .ok_or_else(|| wrong("a whole number")),
        "choice" => {
            let last = match choices.len() {
                0 => b'Z',
                n => b'A' + (n - 1) as u8,
            };
            let mut letters = answer.as_str().unwrap_or_default().chars();
            letters
                .next()
                .map(|c| c.to_ascii_uppercase())
                .filter(|c| letters.next().is_none() && ('A'..=char::from(last)).contains(c))
                .map(Expected::Choice)
                .ok_or_else(|| wrong("the letter of a choice"))
        }
        "regex" => {
            let pattern = answer.as_str().ok_or_else(|| wrong("a pattern"))?;
            RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES)
                .build()
                .map(Expected::Regex)
                .map_err(|_| wrong("a regular expression of moderate size"))
        }
        "json" => Ok(Expected::Json(answer)),
        _ => Err(CaseError::Field {
            line,
            field: "kind",
            found: format!("`{kind}`"),
            expected: "exact, contains, integer, choice, regex or json",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_back_as_it_was_written() {
        let text = r#"{"question": "Which?", "choices": ["stone", "pear"], "kind": "choice", "answer": "b"}

            {"id": "x", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "kind": "regex", "answer": "^a"}
            {"question": "j", "kind": "json", "answer": {"b": 1, "a": [2]}, "category": "forms"}
            {"question": "e", "kind": "exact", "answer": ["a", "b"]}"#;
        let cases = Case::parse_lines(text).unwrap();
        assert_eq!(
            cases[0].question(),
            "Which?\nA) stone\nB) pear\nAnswer with the letter alone."
        );
        let ids: Vec<_> = cases.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["1", "x", "4", "5"]);
        for case in cases {
            let again = Case::from_json(case.to_json(), 1).unwrap();
            assert_eq!(again.to_json(), case.to_json());
            assert_eq!(again.messages, case.messages);
        }
    }

    #[test]
    fn lines_that_are_no_cases_say_where_and_why() {
        for (line, words) in [
            ("", "no case"),
            ("[]", "line 1: not a case"),
            (
                r#"{"kind": "exact", "answer": "a"}"#,
                "`question` is missing",
            ),
            (
                r#"{"question": "q", "kind": "exact", "answer": 1}"#,
                "a list of texts",
            ),
            (
                r#"{"question": "q", "kind": "contains", "answer": ""}"#,
                "none of them blank",
            ),
            (
                r#"{"question": "q", "kind": "integer", "answer": 1.5}"#,
                "a whole number",
            ),
            (
                r#"{"question": "q", "choices": ["a"], "kind": "choice", "answer": "B"}"#,
                "letter",
            ),
            (
                r#"{"question": "q", "kind": "regex", "answer": "("}"#,
                "regular expression",
            ),
            (
                r#"{"question": "q", "kind": "regex", "answer": "(a{999}){999}"}"#,
                "moderate size",
            ),
            (
                r#"{"question": "q", "kind": "guess", "answer": "a"}"#,
                "`kind` is `guess`",
            ),
            (
                r#"{"question": "q", "kind": "exact", "answer": "a", "hint": 1}"#,
                "not a case",
            ),
            (
                r#"{"messages": [], "kind": "exact", "answer": "a"}"#,
                "last message of the user",
            ),
        ] {
            let error = Case::parse_lines(line).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
        let twice = r#"{"id": "a", "question": "q", "kind": "integer", "answer": 1}"#;
        let error = Case::parse_lines(&format!("{twice}\n{twice}")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("line 2: the id `a` is that of line 1")
        );
    }
}
