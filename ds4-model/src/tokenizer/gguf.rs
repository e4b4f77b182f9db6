//! The `tokenizer.ggml.*` keys of a GGUF file as a [`Vocab`]: nothing is copied but the table of slices.
//!
//! | key | |
//! |---|---|
//! | `model` | `gpt2`, required |
//! | `pre` | the splitting rule, required unless the caller names one |
//! | `tokens`, `merges` | required |
//! | `token_type` | optional |
//! | `bos_token_id`, `eos_token_id` | optional, looked up by text otherwise |
//! | `eot_token_id`, `eom_token_id` | optional, end a turn too |
//! | `add_bos_token` | optional |
//!
//! `padding_token_id` is ignored: files disagree about it.

use super::vocab::Kind;
use super::{Error, Pre, Token, Vocab};
use ds4_gguf::{Array, Gguf, Strings};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const TURN_ENDS: [&str; 2] = ["tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";

impl<'a> Vocab<'a> {
    /// The vocabulary of a GGUF file; `pre` overrides the file's splitting rule.
    ///
    /// # Errors
    /// [`Error`]: a key is missing or malformed, the model is not byte-level BPE, the rule is unknown.
    pub fn from_gguf(gguf: &'a Gguf, pre: Option<Pre>) -> Result<Self, Error> {
        let metadata = gguf.metadata();
        let model: &str = metadata.get(MODEL)?;
        if model != "gpt2" {
            return Err(Error::Model {
                found: model.to_owned(),
            });
        }
        let pre = match pre {
            Some(pre) => pre,
            None => Pre::by_name(metadata.get(PRE)?)?,
        };
        let mut vocab = Self::new(metadata.get::<Strings<'a>>(TOKENS)?.collect(), pre);
        if let Some(types) = metadata.try_find::<Array<'a>>(TYPES)? {
            if types.len() != vocab.tokens.len() {
                return Err(Error::Length {
                    key: TYPES,
                    got: types.len(),
                    want: vocab.tokens.len(),
                });
            }
            let types: Vec<i64> = metadata.get(TYPES)?;
            vocab.kinds = Some(types.into_iter().map(Kind::from_id).collect());
        }
        vocab.merges = metadata.get::<Strings<'a>>(MERGES)?.map(pair).collect();
        vocab.bos = metadata.try_find::<Token>(BOS)?;
        vocab.eos = metadata.try_find::<Token>(EOS)?;
        for key in TURN_ENDS {
            vocab.stops.extend(metadata.try_find::<Token>(key)?);
        }
        vocab.add_bos = metadata.try_find::<bool>(ADD_BOS)?.unwrap_or(false);
        Ok(vocab)
    }
}

/// `left right`; a line of another form becomes a pair that names no entry, to be ignored and counted with those.
fn pair(line: &[u8]) -> (&str, &str) {
    let text = std::str::from_utf8(line).unwrap_or("");
    text.split_once(' ')
        .filter(|(_, right)| !right.contains(' '))
        .unwrap_or(("", ""))
}
