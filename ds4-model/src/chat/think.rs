//! Whether, and how hard, the model thinks before it answers.

use serde::{Deserialize, Serialize};

/// Thinking on or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkMode {
    /// Answer at once.
    Off,
    /// Think first.
    #[default]
    On,
}

impl ThinkMode {
    /// Whether thinking is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// How hard. What a word means differs between checkpoints: see [`EffortTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No thinking.
    None,
    /// Least.
    Minimal,
    /// Little: DeepSeek's own default.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More; V4 takes it as `max`, and so does 0731.
    XHigh,
    /// All there is. Long answers: a context of at least 393,216 tokens is recommended.
    Max,
}

impl Effort {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Context below which [`Effort::Max`] deserves a warning, in tokens.
pub const MAX_EFFORT_CONTEXT: usize = 393_216;

/// Which text a DeepSeek-V4 checkpoint was trained to see for which effort.
///
/// | effort | before 0731 | 0731 |
/// |---|---|---|
/// | up to `medium`, or none given | nothing | nothing |
/// | `high` | nothing | "Absolute maximum…" |
/// | `xhigh`, `max` | "Absolute maximum…" | "Beyond maximum…" |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffortTable {
    /// The first V4 checkpoints.
    #[default]
    #[serde(rename = "v4")]
    V4,
    /// The checkpoint of 31 July and later ones.
    #[serde(rename = "v4-0731")]
    V4_0731,
}

const ABSOLUTE: &str = "Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.

";
const BEYOND: &str = "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.

";

impl EffortTable {
    /// The text that follows the start marker.
    #[must_use]
    pub fn text(self, effort: Option<Effort>) -> &'static str {
        match (self, effort) {
            (Self::V4, Some(Effort::Max | Effort::XHigh)) | (Self::V4_0731, Some(Effort::High)) => {
                ABSOLUTE
            }
            (Self::V4_0731, Some(Effort::Max | Effort::XHigh)) => BEYOND,
            _ => "",
        }
    }

    /// The table of a file: by the text in its chat template, else by a checkpoint date in one of its names.
    #[must_use]
    pub fn detect(template: Option<&str>, names: &[&str]) -> Self {
        let dated = |name: &&str| {
            name.split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| {
                    word.len() == 4
                        && word.bytes().all(|b| b.is_ascii_digit())
                        && ("0731"..="1231").contains(&word)
                })
        };
        let beyond = template.is_some_and(|t| t.contains("Reasoning Effort: Beyond maximum"));
        if beyond || names.iter().any(dated) {
            Self::V4_0731
        } else {
            Self::V4
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found_by_template_or_by_date() {
        use EffortTable::{V4, V4_0731};
        assert_eq!(EffortTable::detect(None, &["DeepSeek-V4-Flash"]), V4);
        assert_eq!(
            EffortTable::detect(None, &["DeepSeek-V4-Flash-0731"]),
            V4_0731
        );
        assert_eq!(EffortTable::detect(None, &["DeepSeek V4 0902"]), V4_0731);
        assert_eq!(EffortTable::detect(None, &["DeepSeek-V4-0424", "2048"]), V4);
        assert_eq!(
            EffortTable::detect(Some(&format!("{{{{ '{BEYOND}' }}}}")), &[]),
            V4_0731
        );
        assert_eq!(EffortTable::detect(Some(ABSOLUTE), &[]), V4);
    }
}
