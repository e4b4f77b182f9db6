//! Every question with its answer and grade, one JSON object a line: the members of a case, and `content`, `reasoning`,
//! `complete`, `tokens`, `seconds`, `correct` and `found`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::NewFile;
use ds4_model::eval::{Answered, Case, Grade};
use serde_json::{Value, json};

/// Members that a line has beside those of its case.
const ANSWER: [&str; 7] = [
    "content",
    "reasoning",
    "complete",
    "tokens",
    "seconds",
    "correct",
    "found",
];

/// A question that was answered.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) case: Case,
    pub(super) answered: Answered,
    pub(super) seconds: f64,
    pub(super) grade: Grade,
}

impl Entry {
    /// Grade an answer.
    pub(super) fn new(case: Case, answered: Answered, seconds: f64) -> Self {
        let grade = case.expected.grade(&answered.content);
        Self {
            case,
            answered,
            seconds,
            grade,
        }
    }

    fn to_json(&self) -> Value {
        let mut line = self.case.to_json();
        let (answered, grade) = (&self.answered, &self.grade);
        for (name, value) in ANSWER.into_iter().zip([
            json!(answered.content),
            json!(answered.reasoning),
            json!(answered.complete),
            json!(answered.tokens),
            json!(self.seconds),
            json!(grade.correct),
            json!(grade.found),
        ]) {
            line[name] = value;
        }
        line
    }

    fn from_json(mut value: Value, line: usize) -> Result<Self> {
        let mut members = [const { Value::Null }; ANSWER.len()];
        let object = value
            .as_object_mut()
            .with_context(|| format!("line {line}: expected a JSON object"))?;
        for (name, member) in ANSWER.into_iter().zip(&mut members) {
            *member = object.remove(name).unwrap_or_default();
        }
        let [content, reasoning, complete, tokens, seconds, ..] = members;
        let content = content
            .as_str()
            .with_context(|| format!("line {line}: `content` is {content}, expected a text"))?;
        let answered = Answered {
            content: content.to_owned(),
            reasoning: reasoning.as_str().map(str::to_owned),
            complete: complete.as_bool().unwrap_or(true),
            tokens: tokens.as_u64().unwrap_or(0) as usize,
        };
        let case = Case::from_json(value, line)?;
        Ok(Self::new(case, answered, seconds.as_f64().unwrap_or(0.0)))
    }
}

/// The entries of a file, graded anew. A last line without its end is what a killed program left, and is not counted.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>> {
    let name = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(name)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .filter(|(_, words)| !words.trim().is_empty())
        .map(|(at, words)| {
            let value =
                serde_json::from_str(words).with_context(|| format!("line {}: no JSON", at + 1))?;
            Entry::from_json(value, at + 1)
        })
        .collect::<Result<_>>()
        .with_context(name)
}

/// A trace being written: what is kept appears at once, every later line as soon as it is known.
pub(super) struct Trace {
    file: File,
}

impl Trace {
    /// Replace the file by one with the entries `kept`.
    pub(super) fn create<'e>(path: &Path, kept: impl Iterator<Item = &'e Entry>) -> Result<Self> {
        let mut new = NewFile::create(path, true)?;
        for entry in kept {
            writeln!(new, "{}", entry.to_json())?;
        }
        new.publish()?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .with_context(|| path.display().to_string())?;
        Ok(Self { file })
    }

    /// Add a line.
    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        self.file
            .write_all(format!("{}\n", entry.to_json()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(content: &str) -> Entry {
        let line = r#"{"id": "a", "question": "2 + 2?", "kind": "integer", "answer": 4}"#;
        let case = Case::parse_lines(line).unwrap().remove(0);
        let answered = Answered {
            content: content.to_owned(),
            reasoning: Some("hm".into()),
            complete: true,
            tokens: 3,
        };
        Entry::new(case, answered, 0.5)
    }

    #[test]
    fn what_is_written_reads_back_and_is_graded_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let mut trace = Trace::create(&path, [entry("4")].iter()).unwrap();
        trace.add(&entry("5")).unwrap();
        let mut text = fs::read_to_string(&path).unwrap();
        text = text.replacen("\"correct\":true", "\"correct\":false", 1);
        // What a killed program leaves.
        text.push_str("{\"id\": \"b");
        fs::write(&path, text).unwrap();
        let entries = read(&path).unwrap();
        let grades: Vec<bool> = entries.iter().map(|e| e.grade.correct).collect();
        assert_eq!(grades, [true, false]);
        assert_eq!(entries[0].answered, entry("4").answered);
    }

    #[test]
    fn lines_that_are_no_entries_say_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        for (text, words) in [
            ("[]\n", "line 1: expected a JSON object"),
            ("\n{\n", "line 2: no JSON"),
            (
                "{\"question\": \"q\", \"kind\": \"integer\", \"answer\": 4}\n",
                "`content` is null",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(
                error.contains(words) && error.contains("t.jsonl"),
                "{error}"
            );
        }
    }
}
