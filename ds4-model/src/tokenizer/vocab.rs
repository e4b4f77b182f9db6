//! What a tokenizer is made from, wherever it came from.

use super::special::Added;
use super::{Error, Pre, Token, bytes};
use std::collections::HashSet;
use tokenizers::models::bpe::{BPE, Vocab as Ids};

/// What a token is for, as `tokenizer.ggml.token_type` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Made by merges (1), or of a kind that plays no part here (2 unknown, 5 unused, 6 byte).
    Normal,
    /// A marker that is not shown (3).
    Control,
    /// An added token that is text to the reader (4).
    UserDefined,
}

impl Kind {
    pub(super) fn from_id(id: i64) -> Self {
        match id {
            3 => Self::Control,
            4 => Self::UserDefined,
            _ => Self::Normal,
        }
    }

    /// What an added token is when nobody says: markers look like `<｜…｜>` or `<|…|>`.
    pub(super) fn of_added(text: &str) -> Self {
        let framed =
            |open, close| text.len() > 4 && text.starts_with(open) && text.ends_with(close);
        if framed("<｜", "｜>") || framed("<|", "|>") {
            Self::Control
        } else {
            Self::UserDefined
        }
    }
}

/// A vocabulary, borrowed from the file that holds it.
#[derive(Clone, Debug)]
pub struct Vocab<'a> {
    /// The entries, by id: characters of the byte alphabet, or plain text for added tokens. Need not be UTF-8.
    pub tokens: Vec<&'a [u8]>,
    /// One kind a token. `None`: an entry that no merge produces and that is no single byte is an added token.
    pub kinds: Option<Vec<Kind>>,
    /// Pairs of entries, best first. Pairs that name an entry which does not exist are ignored.
    pub merges: Vec<(&'a str, &'a str)>,
    /// The splitting rule.
    pub pre: Pre,
    /// Start of text; looked up by its usual spellings when `None`.
    pub bos: Option<Token>,
    /// End of text; looked up by its usual spellings when `None`.
    pub eos: Option<Token>,
    /// Further tokens that end a turn.
    pub stops: Vec<Token>,
    /// Whether raw text starts with `bos`.
    pub add_bos: bool,
}

const BOS_TEXTS: [&str; 2] = ["<｜begin▁of▁sentence｜>", "[gMASK]"];
const EOS_TEXTS: [&str; 2] = ["<｜end▁of▁sentence｜>", "<|endoftext|>"];
const EOS_LIST: &str = "`<｜end▁of▁sentence｜>`, `<|endoftext|>`";

/// The pieces of a tokenizer.
pub(super) struct Parts {
    pub(super) bpe: BPE,
    pub(super) added: Added,
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<u32>,
    pub(super) control: Vec<bool>,
    pub(super) bos: Option<Token>,
    pub(super) eos: Token,
    pub(super) stop: Vec<Token>,
}

impl<'a> Vocab<'a> {
    /// A vocabulary without merges and named tokens, to be filled in.
    #[must_use]
    pub fn new(tokens: Vec<&'a [u8]>, pre: Pre) -> Self {
        Self {
            tokens,
            kinds: None,
            merges: Vec::new(),
            pre,
            bos: None,
            eos: None,
            stops: Vec::new(),
            add_bos: false,
        }
    }

    /// How `byte` is written in an entry.
    #[must_use]
    pub fn symbol(byte: u8) -> char {
        bytes::to_char(byte)
    }

    pub(super) fn parts(&self) -> Result<Parts, Error> {
        let count = self.tokens.len();
        let total: usize = self.tokens.iter().map(|t| t.len()).sum();
        if count > MAX_TOKENS || u32::try_from(total).is_err() {
            return Err(Error::TooLarge {
                len: count,
                max: MAX_TOKENS,
            });
        }
        let kinds = self.kinds_or_guess()?;

        let mut ids = Ids::default();
        let mut all_bytes = Vec::with_capacity(total);
        let mut ends = Vec::with_capacity(count);
        let mut duplicates = 0usize;
        for (id, (&entry, kind)) in (0u32..).zip(self.tokens.iter().zip(&kinds)) {
            match (std::str::from_utf8(entry), kind) {
                (Ok(text), Kind::Normal) => {
                    all_bytes.extend(bytes::entry_bytes(text));
                    if ids.contains_key(text) {
                        duplicates += 1;
                    } else {
                        ids.insert(text.to_owned(), id);
                    }
                }
                _ => all_bytes.extend_from_slice(entry),
            }
            ends.push(
                u32::try_from(all_bytes.len())
                    .expect("entries shrink when they become bytes; the sum was checked"),
            );
        }
        let missing: Vec<u8> = (0..=255u8)
            .filter(|&b| !ids.contains_key(bytes::to_char(b).to_string().as_str()))
            .collect();
        if let Some(&first) = missing.first() {
            return Err(Error::MissingBytes {
                missing: missing.len(),
                first,
            });
        }

        let usable: Vec<(String, String)> = self
            .merges
            .iter()
            .filter(|(a, b)| {
                ids.contains_key(*a)
                    && ids.contains_key(*b)
                    && ids.contains_key(format!("{a}{b}").as_str())
            })
            .map(|&(a, b)| (a.to_owned(), b.to_owned()))
            .collect();
        let ignored = self.merges.len() - usable.len();
        if duplicates + ignored > 0 {
            tracing::warn!(
                duplicates,
                ignored,
                "tokenizer: duplicate entries or merges of unknown entries"
            );
        }
        let bpe = BPE::builder()
            .vocab_and_merges(ids, usable)
            .build()
            .map_err(|error| Error::Merges {
                reason: error.to_string(),
            })?;

        let added = Added::new((0u32..).zip(self.tokens.iter().zip(&kinds)).filter_map(
            |(id, (entry, kind))| {
                let text = std::str::from_utf8(entry)
                    .ok()
                    .filter(|_| *kind != Kind::Normal)?;
                Some((text.into(), id))
            },
        ));
        let in_range = |key, id: Option<Token>| match id {
            Some(id) if id as usize >= count => Err(Error::SpecialId {
                key,
                id: u64::from(id),
                len: count,
            }),
            id => Ok(id),
        };
        let by_text = |texts: &[&str]| texts.iter().find_map(|text| added.id(text));
        let bos =
            in_range("tokenizer.ggml.bos_token_id", self.bos)?.or_else(|| by_text(&BOS_TEXTS));
        let eos = in_range("tokenizer.ggml.eos_token_id", self.eos)?
            .or_else(|| by_text(&EOS_TEXTS))
            .ok_or(Error::NoEos {
                looked_for: EOS_LIST,
            })?;
        let mut stop = vec![eos];
        for &id in &self.stops {
            in_range("tokenizer.ggml.eot_token_id", Some(id))?;
            if !stop.contains(&id) {
                stop.push(id);
            }
        }
        let control = kinds.iter().map(|kind| *kind == Kind::Control).collect();
        Ok(Parts {
            bpe,
            added,
            bytes: all_bytes,
            ends,
            control,
            bos,
            eos,
            stop,
        })
    }

    fn kinds_or_guess(&self) -> Result<Vec<Kind>, Error> {
        let count = self.tokens.len();
        match &self.kinds {
            Some(kinds) if kinds.len() == count => Ok(kinds.clone()),
            Some(kinds) => Err(Error::Length {
                key: "tokenizer.ggml.token_type",
                got: kinds.len(),
                want: count,
            }),
            None => {
                let merged: HashSet<String> =
                    self.merges.iter().map(|(a, b)| format!("{a}{b}")).collect();
                Ok(self
                    .tokens
                    .iter()
                    .map(|entry| guess(entry, &merged))
                    .collect())
            }
        }
    }
}

/// More would be no vocabulary but a broken file.
const MAX_TOKENS: usize = 1 << 24;

fn guess(entry: &[u8], merged: &HashSet<String>) -> Kind {
    match std::str::from_utf8(entry) {
        Ok(text) if merged.contains(text) => Kind::Normal,
        Ok(text)
            if text.chars().count() == 1 && text.chars().all(|c| bytes::to_byte(c).is_some()) =>
        {
            Kind::Normal
        }
        Ok(text) => Kind::of_added(text),
        Err(_) => Kind::Normal,
    }
}
