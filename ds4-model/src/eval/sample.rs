//! Answers whose grades are known: what shows that the graders of a build read answers as they should.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Case, Expected, Grade};

const SAMPLES: &str = include_str!("suites/extractors.jsonl");

/// An answer, what is taken from it, and whether that is right.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the answer should be.
    pub expected: Expected,
    /// The answer.
    pub content: String,
    /// The grade that it should get.
    pub grade: Grade,
}

/// A sample that got another grade.
#[derive(Clone, Debug)]
pub struct Misgraded {
    /// The sample.
    pub sample: Sample,
    /// The grade that it got.
    pub found: Grade,
}

impl fmt::Display for Misgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample {
            expected,
            content,
            grade,
        } = &self.sample;
        write!(
            f,
            "{}: {content:?} should be {} by {:?}, is {} by {:?}",
            expected.kind(),
            word(grade),
            grade.found,
            word(&self.found),
            self.found.found
        )
    }
}

fn word(grade: &Grade) -> &'static str {
    if grade.correct { "right" } else { "wrong" }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    kind: String,
    answer: Value,
    content: String,
    found: Option<String>,
    correct: bool,
}

impl Sample {
    fn of(wire: Wire, line: usize) -> Self {
        let case = json!({"question": "?", "kind": wire.kind, "answer": wire.answer});
        let case = Case::from_json(case, line).expect("a test reads all samples");
        Self {
            expected: case.expected,
            content: wire.content,
            grade: Grade {
                correct: wire.correct,
                found: wire.found,
            },
        }
    }

    /// Grade it: `None` when the grade is the one that it should get.
    #[must_use]
    pub fn check(&self) -> Option<Misgraded> {
        let found = self.expected.grade(&self.content);
        (found != self.grade).then(|| Misgraded {
            sample: self.clone(),
            found,
        })
    }
}

/// Samples of every kind of answer, in the forms that models write.
#[must_use]
pub fn samples() -> Vec<Sample> {
    let lines = SAMPLES.lines().enumerate();
    lines
        .map(|(at, line)| {
            let wire = serde_json::from_str(line).expect("a test reads all samples");
            Sample::of(wire, at + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_kind_has_samples_of_both_grades_and_all_are_graded_so() {
        let samples = samples();
        let mut grades: HashMap<&str, [usize; 2]> = HashMap::new();
        for sample in &samples {
            if let Some(wrong) = sample.check() {
                panic!("{wrong}");
            }
            grades.entry(sample.expected.kind()).or_default()[usize::from(sample.grade.correct)] +=
                1;
        }
        for kind in ["exact", "contains", "integer", "choice", "regex", "json"] {
            assert!(grades[kind].iter().all(|n| *n > 0), "{kind}: {grades:?}");
        }
    }

    /// Both what is found and whether it is right are looked at.
    #[test]
    fn a_grade_that_is_another_is_told() {
        for (found, correct) in [(Some("4"), true), (Some("5"), false), (None, false)] {
            let sample = Sample {
                expected: Expected::Integer(4),
                content: "it is 5".to_owned(),
                grade: Grade {
                    correct,
                    found: found.map(str::to_owned),
                },
            };
            let told = sample.check().map(|wrong| wrong.to_string());
            assert_eq!(told.is_none(), found == Some("5"), "{told:?}");
            assert!(told.is_none_or(|t| t.contains("is wrong by Some(\"5\")")));
        }
    }
}
