//! Where turns begin in a prompt of tokens: there other prompts part from it.

use super::ChatFormat;
#[cfg(feature = "jinja")]
use crate::tokenizer::{Segment, Segments};
use crate::tokenizer::{Token, Tokenizer};

/// A marker, and the text of the format that tells it from the same marker elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opener {
    marker: Token,
    follows: Box<[u8]>,
}

/// What begins a turn of the user, and an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    user: Option<Opener>,
    /// With thinking, and without.
    answer: Vec<Opener>,
}

impl Opener {
    fn marker(text: &str, tokenizer: &Tokenizer) -> Option<Self> {
        Some(Self {
            marker: tokenizer.id_of(text)?,
            follows: Box::default(),
        })
    }

    /// The last marker that two prompts have in common, and the text both have behind it.
    #[cfg(feature = "jinja")]
    fn shared(one: &Segments, other: &Segments, tokenizer: &Tokenizer) -> Option<Self> {
        let pairs = one.as_str().bytes().zip(other.as_str().bytes());
        let common = pairs.take_while(|(a, b)| a == b).count();
        let mut last = None;
        let (mut at, mut until) = (0, common);
        for segment in one.iter() {
            match segment {
                Segment::Marker(marker) if at + marker.len() <= common => {
                    last = Some((marker, at + marker.len()));
                    at += marker.len();
                }
                // Two markers may begin the same: that is no text.
                Segment::Marker(_) => {
                    until = until.min(at);
                    break;
                }
                Segment::Text(text) => at += text.len(),
            }
        }
        let (marker, end) = last?;
        // The other may have a marker there where this one ends in text.
        let mut at = 0;
        for segment in other.iter() {
            if let Segment::Marker(_) = segment
                && at >= end
            {
                until = until.min(at);
            }
            at += match segment {
                Segment::Marker(text) | Segment::Text(text) => text.len(),
            };
        }
        Some(Self {
            marker: tokenizer.id_of(marker)?,
            follows: one.as_str().as_bytes()[end..until.max(end)].into(),
        })
    }

    /// Whether it is at `prompt[at]`.
    fn is_at(&self, at: usize, prompt: &[Token], tokenizer: &Tokenizer) -> bool {
        if prompt[at] != self.marker {
            return false;
        }
        let tokens = prompt[at + 1..].iter();
        let mut bytes = tokens.flat_map(|&token| tokenizer.token_bytes(token));
        self.follows.iter().all(|byte| bytes.next() == Some(byte))
    }
}

impl Turns {
    fn of(markers: [&str; 2], tokenizer: &Tokenizer) -> Self {
        let [user, answer] = markers.map(|text| Opener::marker(text, tokenizer));
        Self {
            user,
            answer: answer.into_iter().collect(),
        }
    }

    /// What a format does with prompts that differ in one place. `render` gives the prompt for these contents, of the user
    /// and the assistant in turn, with thinking on or off.
    #[cfg(feature = "jinja")]
    pub(super) fn observed(
        tokenizer: &Tokenizer,
        render: &dyn Fn(&[&str], bool) -> Option<Segments>,
    ) -> Self {
        let shared = |one: &[&str], other: &[&str], thinks| {
            Opener::shared(&render(one, thinks)?, &render(other, thinks)?, tokenizer)
        };
        // Of contents, not even the first letters are the same.
        let user = shared(&["a", "b", "c"], &["a", "b", "d"], true);
        // The next turn has the answer where this one ends, or has markers of reasoning.
        let answer = [true, false].map(|thinks| shared(&["a"], &["a", "b", "c"], thinks));
        Self {
            user,
            answer: answer.into_iter().flatten().collect(),
        }
    }

    /// See [`ChatFormat::marks`].
    fn marks(&self, tokenizer: &Tokenizer, prompt: &[Token]) -> Vec<usize> {
        let is = |opener: &Opener, at| opener.is_at(at, prompt, tokenizer);
        let mut all = 0..prompt.len();
        let users = |at: &usize| self.user.iter().any(|user| is(user, *at));
        let marks = [
            all.clone().find(users),
            all.clone().rfind(users),
            all.rfind(|&at| self.answer.iter().any(|answer| is(answer, at))),
        ];
        let mut marks: Vec<usize> = marks.into_iter().flatten().map(|at| at + 1).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }
}

impl ChatFormat {
    /// Lengths at which other prompts are likely to part from this one, ascending: after the marker of the first user, which
    /// follows what the system says; after that of the last user, whose words may be edited; after that of the answer to
    /// come, whose `<think>` the next turn does not have.
    ///
    /// Of a template it is observed what prompts that differ there have in common: the last marker, with the text behind it
    /// (`<|im_start|>`, `user\n`). A template that writes no markers has no marks, because text may become other tokens by
    /// what follows it.
    #[must_use]
    pub fn marks(&self, tokenizer: &Tokenizer, prompt: &[Token]) -> Vec<usize> {
        match self {
            Self::V4 | Self::V4_0731 => {
                let markers = [super::marker::USER, super::marker::ASSISTANT];
                Turns::of(markers, tokenizer).marks(tokenizer, prompt)
            }
            Self::Glm52 => Turns::of(super::glm::TURNS, tokenizer).marks(tokenizer, prompt),
            #[cfg(feature = "jinja")]
            Self::Jinja(template) => template.turns().marks(tokenizer, prompt),
        }
    }
}
