//! The renderings of one conversation that are in use, as a table of what differs.
//!
//! Messages → prompt is not a standard: DeepSeek's encoder, the template that llama.cpp ships and antirez/ds4's server
//! disagree in the corners. Reproducing another's layout matters when its KV cache or its evaluation is to be reused.

use serde::{Deserialize, Serialize};

/// Whose layout a DeepSeek-V4 prompt follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// DeepSeek's, with two deviations: `developer` means `system`, and several system messages are joined by blank
    /// lines at the front.
    #[default]
    Standard,
    /// DeepSeek's encoder, byte for byte.
    Reference,
    /// llama.cpp's template.
    Template,
    /// antirez/ds4's server.
    Ds4,
}

/// What a dialect does in the corners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// System messages: joined by blank lines at the front, rather than each in its place.
    pub(super) join_systems: bool,
    /// `developer` is a system message, rather than a turn of the user.
    pub(super) developer_is_system: bool,
    /// Tools come before the system text, rather than after it.
    pub(super) tools_first: bool,
    /// Tools without a system text are still set off by a blank line.
    pub(super) blank_before_tools: bool,
    /// Neighbouring user messages and results share one turn and are set off by blank lines; results follow the order of
    /// the calls.
    pub(super) merge_turns: bool,
    /// Closing tags inside values are escaped, rather than written as they are.
    pub(super) escape: bool,
    /// A call without arguments has a blank line between its tags.
    pub(super) blank_arguments: bool,
    /// Schemas and arguments are the client's own JSON, rather than re-written with Python's separators.
    pub(super) raw_json: bool,
    /// Calls in the history keep the reasoning, even when no tools are declared.
    pub(super) calls_keep_reasoning: bool,
    /// ds4's wording of the tools block.
    pub(super) own_wording: bool,
}

impl Dialect {
    pub(super) const fn rules(self) -> Rules {
        let reference = Rules {
            join_systems: false,
            developer_is_system: false,
            tools_first: false,
            blank_before_tools: true,
            merge_turns: true,
            escape: false,
            blank_arguments: true,
            raw_json: false,
            calls_keep_reasoning: false,
            own_wording: false,
        };
        match self {
            Self::Reference => reference,
            Self::Standard => Rules {
                join_systems: true,
                developer_is_system: true,
                ..reference
            },
            Self::Template => Rules {
                join_systems: true,
                blank_before_tools: false,
                calls_keep_reasoning: true,
                ..reference
            },
            Self::Ds4 => Rules {
                join_systems: true,
                developer_is_system: true,
                tools_first: true,
                blank_before_tools: false,
                merge_turns: false,
                escape: true,
                blank_arguments: false,
                raw_json: true,
                calls_keep_reasoning: true,
                own_wording: true,
            },
        }
    }
}
