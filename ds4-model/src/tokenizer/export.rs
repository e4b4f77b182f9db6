//! `GgufKeys`: a `tokenizer.json` as the lists that a GGUF carries.

use super::hf::Definition;
use super::{Error, Kind, Pre};

/// The lists behind `tokenizer.ggml.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GgufKeys {
    /// `tokens`, by id.
    pub(crate) tokens: Vec<String>,
    /// `token_type`.
    pub(crate) types: Vec<i32>,
    /// `merges`: `left right`, best first.
    pub(crate) merges: Vec<String>,
    /// `pre`.
    pub(crate) pre: &'static str,
}

impl GgufKeys {
    /// The lists of a `tokenizer.json` that this crate can use.
    pub(crate) fn from_hf_json(json: &str) -> Result<Self, Error> {
        let definition = Definition::parse(json)?;
        definition.tokenizer()?;
        let (tokens, kinds) = definition.table()?;
        let entries = tokens.iter().zip(&kinds).enumerate();
        let (tokens, types) = entries
            .map(|(id, (token, kind))| match (token.is_empty(), kind) {
                (true, _) => unused(id),
                (false, Kind::Normal) => ((*token).to_owned(), 1),
                (false, Kind::Control) => ((*token).to_owned(), 3),
                (false, Kind::UserDefined) => ((*token).to_owned(), 4),
            })
            .unzip();
        let merges = definition.merges();
        Ok(Self {
            tokens,
            types,
            merges: merges
                .map(|(left, right)| format!("{left} {right}"))
                .collect(),
            pre: match definition.pre()? {
                Pre::DeepSeek => "joyai-llm",
                Pre::Glm => "glm4",
            },
        })
    }

    /// Entries that stand for nothing, until there are `count`.
    pub(crate) fn pad(&mut self, count: usize) {
        for id in self.tokens.len()..count {
            let (token, ty) = unused(id);
            self.tokens.push(token);
            self.types.push(ty);
        }
    }
}

/// Name and `token_type` of an id that stands for nothing.
fn unused(id: usize) -> (String, i32) {
    (format!("[PAD{id}]"), 5)
}
