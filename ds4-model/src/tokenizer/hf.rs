//! A Hugging Face `tokenizer.json` as a [`Vocab`].
//!
//! Only what the supported models use is accepted: byte-level BPE, no normalizer, one of the known splitting rules. Anything
//! else is an error rather than a tokenizer that is almost right.

use super::{Error, Kind, Pre, Token, Tokenizer, Vocab};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
pub(super) struct Definition {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    #[serde(default)]
    normalizer: Option<serde_json::Value>,
    pre_tokenizer: serde_json::Value,
    model: Model,
}

#[derive(Deserialize)]
struct AddedToken {
    id: Token,
    content: String,
    #[serde(default)]
    special: bool,
}

impl AddedToken {
    fn kind(&self) -> Kind {
        if self.special {
            Kind::Control
        } else {
            Kind::of_added(&self.content)
        }
    }
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(default)]
    byte_fallback: bool,
    vocab: HashMap<String, Token>,
    merges: Vec<Merge>,
}

/// `"left right"`, or `["left", "right"]` in newer files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Line(String),
    Pair(String, String),
}

impl Merge {
    fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Self::Line(line) => line
                .split_once(' ')
                .filter(|(_, right)| !right.contains(' ')),
            Self::Pair(left, right) => Some((left, right)),
        }
    }
}

impl Definition {
    pub(super) fn parse(json: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(json)?)
    }

    pub(super) fn tokenizer(&self) -> Result<Tokenizer, Error> {
        let pre = self.pre()?;
        let expect = |holds: bool, field, found: String, expected| {
            if holds {
                Ok(())
            } else {
                Err(Error::Definition {
                    field,
                    found,
                    expected,
                })
            }
        };
        expect(
            self.model.kind == "BPE",
            "model.type",
            self.model.kind.clone(),
            "`BPE`",
        )?;
        expect(
            !self.model.ignore_merges,
            "model.ignore_merges",
            "true".into(),
            "false",
        )?;
        expect(
            !self.model.byte_fallback,
            "model.byte_fallback",
            "true".into(),
            "false",
        )?;
        if let Some(normalizer) = &self.normalizer {
            let empty = normalizer.is_null()
                || normalizer["normalizers"]
                    .as_array()
                    .is_some_and(Vec::is_empty);
            expect(empty, "normalizer", normalizer.to_string(), "none")?;
        }

        let (tokens, kinds) = self.table()?;
        let mut vocab = Vocab::new(tokens.iter().map(|t| t.as_bytes()).collect(), pre);
        vocab.kinds = Some(kinds);
        vocab.merges = self.merges().collect();
        Tokenizer::new(&vocab)
    }

    /// Pairs of entries, best first.
    pub(super) fn merges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.model.merges.iter().filter_map(Merge::pair)
    }

    /// Entries and kinds by id; ids that nobody claims are empty.
    pub(super) fn table(&self) -> Result<(Vec<&str>, Vec<Kind>), Error> {
        let claims = || {
            let added = self
                .added_tokens
                .iter()
                .map(|t| (t.id, t.content.as_str(), t.kind()));
            self.model
                .vocab
                .iter()
                .map(|(text, &id)| (id, text.as_str(), Kind::Normal))
                .chain(added)
        };
        let len = claims().map(|(id, ..)| id as usize + 1).max().unwrap_or(0);
        // Ids are dense in every real file; a gap larger than the table itself is not worth its memory.
        let claimed = self.model.vocab.len() + self.added_tokens.len();
        if len > 2 * claimed {
            return Err(Error::TooLarge {
                len,
                max: 2 * claimed,
            });
        }
        let mut tokens = vec![""; len];
        let mut kinds = vec![Kind::Normal; len];
        for (id, text, kind) in claims() {
            let at = id as usize;
            if !tokens[at].is_empty() && tokens[at] != text {
                let first = tokens[at].to_owned();
                return Err(Error::DuplicateId {
                    id,
                    first,
                    second: text.to_owned(),
                });
            }
            (tokens[at], kinds[at]) = (text, kind);
        }
        Ok((tokens, kinds))
    }

    pub(super) fn pre(&self) -> Result<Pre, Error> {
        let steps = match self.pre_tokenizer["pretokenizers"].as_array() {
            Some(steps) => steps.as_slice(),
            None => std::slice::from_ref(&self.pre_tokenizer),
        };
        let patterns: Vec<&str> = steps
            .iter()
            .filter_map(|step| step["pattern"]["Regex"].as_str())
            .collect();
        let splits = steps
            .iter()
            .filter(|step| step["type"] == "Split")
            .all(|step| {
                step["behavior"] == "Isolated"
                    && step["invert"] == false
                    && step["pattern"]["Regex"].is_string()
            });
        let bytes = steps.iter().any(|step| {
            step["type"] == "ByteLevel"
                && step["use_regex"] == false
                && step["add_prefix_space"] == false
        });
        Pre::by_patterns(&patterns)
            .filter(|_| splits && bytes && steps.len() == patterns.len() + 1)
            .ok_or_else(|| Error::Definition {
                field: "pre_tokenizer",
                found: self.pre_tokenizer.to_string(),
                expected: "isolated splits by the patterns of DeepSeek V3/V4 or GLM, then bytes",
            })
    }
}
