//! Persistent memory of a session: what each state holds and how long a row stays needed.

use super::op::StateId;

/// How rows of a state come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// One row a token, addressed by absolute position; only recent rows are read.
    Ring {
        /// What later tokens may still read.
        keep: Keep,
    },
    /// One row a closed window of `ratio` tokens; all rows are read for ever.
    Windows {
        /// Tokens a window.
        ratio: u32,
    },
}

/// Rows of a ring that a session at length `n` still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The last `tokens` positions (sliding window).
    Last {
        /// Tokens.
        tokens: u32,
    },
    /// The open window of `ratio` tokens, and with `overlap` the window before it.
    OpenWindow {
        /// Tokens a window.
        ratio: u32,
        /// Whether the window before is pooled again.
        overlap: bool,
    },
}

impl Keep {
    /// First position still needed when the next position to be written is `len`.
    pub fn first(self, len: u32) -> u32 {
        match self {
            Keep::Last { tokens } => len.saturating_sub(tokens),
            Keep::OpenWindow { ratio, overlap } => {
                let open = len / ratio * ratio;
                if overlap {
                    open.saturating_sub(ratio)
                } else {
                    open
                }
            }
        }
    }

    /// Most rows that are ever needed at once before a step writes its own.
    pub fn most(self) -> u32 {
        match self {
            Keep::Last { tokens } => tokens,
            Keep::OpenWindow { ratio, overlap } => ratio * (1 + u32::from(overlap)),
        }
    }
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSpec {
    /// `l02.raw`, `l02.index.keys`, …
    pub name: Box<str>,
    /// Row addressing.
    pub kind: StateKind,
    /// f32 values a row.
    pub cols: u32,
}

/// All states of a graph; a [`StateId`] is an index into `specs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateLayout {
    /// States in order of their ids.
    pub specs: Vec<StateSpec>,
}

impl StateLayout {
    /// Specification of one state.
    ///
    /// # Panics
    /// When the handle is of another graph.
    pub fn spec(&self, id: StateId) -> &StateSpec {
        &self.specs[id.0 as usize]
    }

    /// Bytes of a session that has seen `tokens` tokens, with rings for steps of up to `step` rows.
    pub fn bytes(&self, tokens: u64, step: u64) -> u64 {
        let rows = |spec: &StateSpec| match spec.kind {
            StateKind::Ring { keep } => u64::from(keep.most()) + step,
            StateKind::Windows { ratio } => tokens / u64::from(ratio),
        };
        self.specs
            .iter()
            .map(|spec| rows(spec) * u64::from(spec.cols) * 4)
            .sum()
    }
}
