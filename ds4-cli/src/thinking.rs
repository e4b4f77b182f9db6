//! Whether a model thinks before it answers: the flags of `ds4`, `ds4-agent` and `ds4-eval`.

use ds4_model::chat::{Effort, MAX_EFFORT_CONTEXT, RenderOptions, ThinkMode};

/// Whether to think first, and how hard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thinking {
    Off,
    #[default]
    On,
    Max,
}

impl Thinking {
    /// In a context of so many tokens: what is possible there.
    pub(crate) fn within(self, context: usize) -> Self {
        match self {
            Self::Max if context < MAX_EFFORT_CONTEXT => Self::On,
            other => other,
        }
    }

    /// A line that says so, when `context` tokens are too few for it.
    pub(crate) fn shortened(self, context: usize) -> Option<String> {
        (self.within(context) != self).then(|| {
            format!(
                "thinking plainly: the most thinking needs a context of {MAX_EFFORT_CONTEXT} tokens, this one has {context}"
            )
        })
    }

    pub(crate) fn render(self) -> RenderOptions {
        RenderOptions {
            think: match self {
                Self::Off => ThinkMode::Off,
                Self::On | Self::Max => ThinkMode::On,
            },
            effort: (self == Self::Max).then_some(Effort::Max),
            ..RenderOptions::default()
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Max => "max",
        }
    }
}

/// The flags; the last one counts.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ThinkingFlags {
    /// Think before answering; the default.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"])]
    think: bool,
    /// Think as hard as the model can; plain thinking when the context is below 393216 tokens.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"])]
    think_max: bool,
    /// Answer at once.
    #[arg(long, overrides_with_all = ["think", "think_max", "nothink"])]
    nothink: bool,
}

impl ThinkingFlags {
    /// What the command line says, if it says anything.
    pub(crate) fn asked(self) -> Option<Thinking> {
        match (self.nothink, self.think_max, self.think) {
            (true, ..) => Some(Thinking::Off),
            (_, true, _) => Some(Thinking::Max),
            (.., true) => Some(Thinking::On),
            _ => None,
        }
    }
}
