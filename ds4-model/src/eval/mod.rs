//! Questions with known answers: cases in JSON lines, graders, built-in suites, and accuracy with its uncertainty.
//!
//! ```
//! use ds4_model::eval::{Case, Tally};
//!
//! let cases = Case::parse_lines(r#"{"question": "2 + 2?", "kind": "integer", "answer": 4, "category": "sums"}"#)?;
//! let grade = cases[0].expected.grade("2 + 2 = 4.");
//! assert!(grade.correct);
//! let mut tally = Tally::default();
//! tally.add(grade.correct);
//! let (low, high) = tally.interval();
//! assert!(low > 0.2 && high == 1.0); // one right answer says little
//! # Ok::<(), ds4_model::eval::CaseError>(())
//! ```

mod answer;
mod case;
mod grade;
mod sample;
mod suite;
mod tally;

pub use answer::{Answered, Budget, answer};
pub use case::{Case, CaseError, Expected};
pub use grade::Grade;
pub use sample::{Misgraded, Sample, samples};
pub use suite::Suite;
pub use tally::Tally;
