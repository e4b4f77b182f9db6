//! Questions written for this project. Each has one right answer that can be looked up or worked out.

use super::Case;

const CORE: &str = include_str!("suites/core.jsonl");
const HARD: &str = include_str!("suites/hard.jsonl");
/// Of the hard ones, every so many make the short suite.
const SMOKE: usize = 4;

/// A built-in suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// What any useful model should know: sums, capitals, words, choices, dates, JSON.
    Core,
    /// What takes steps: sums in words, sequences, logic, nested JSON.
    Hard,
    /// A few of the hard ones.
    HardSmoke,
    /// Core and hard.
    All,
}

impl Suite {
    /// By its name on command lines: `core`, `hard`, `hard-smoke`, `all`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "core" => Some(Self::Core),
            "hard" => Some(Self::Hard),
            "hard-smoke" => Some(Self::HardSmoke),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// Its cases.
    #[must_use]
    pub fn cases(self) -> Vec<Case> {
        let parse = |text| Case::parse_lines(text).expect("a test parses the built-in suites");
        match self {
            Self::Core => parse(CORE),
            Self::Hard => parse(HARD),
            Self::HardSmoke => parse(HARD).into_iter().step_by(SMOKE).collect(),
            Self::All => [parse(CORE), parse(HARD)].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Expected;
    use std::collections::HashSet;

    #[test]
    fn the_suites_parse_and_their_ids_are_unique() {
        let all = Suite::All.cases();
        let ids: HashSet<_> = all.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        assert!(all.len() >= 90, "{}", all.len());
        let smoke = Suite::HardSmoke.cases();
        assert_eq!(smoke.len(), Suite::Hard.cases().len().div_ceil(SMOKE));
        for name in ["core", "hard", "hard-smoke", "all"] {
            assert!(!Suite::by_name(name).unwrap().cases().is_empty());
        }
        assert_eq!(Suite::by_name("easy"), None);
    }

    /// An answer to be found must not stand in the question already, or an echo would be right.
    #[test]
    fn repeating_the_question_is_never_right() {
        for case in Suite::All.cases() {
            if !matches!(case.expected, Expected::Choice(_)) {
                assert!(!case.expected.grade(case.question()).correct, "{}", case.id);
            }
        }
    }
}
