//! Text ↔ tokens.
//!
//! ```text
//! text ─ added tokens (only where asked) ─ pieces (pattern.rs) ─ byte alphabet (bytes.rs) ─ byte-pair merges ─ ids
//! ```
//! The merges are Hugging Face's `tokenizers`; the splitting in front of them is ours, because it decides which text may
//! become a control token and must be linear in the text.
//!
//! ```
//! use ds4_model::tokenizer::{Special, Tokenizer, Vocab, Pre};
//! # let bytes: Vec<String> = (0..=255u8).map(|b| Vocab::symbol(b).to_string()).collect();
//! let mut tokens: Vec<&[u8]> = bytes.iter().map(|t| t.as_bytes()).collect();
//! tokens.extend([b"he".as_slice(), b"<end>"]);
//! let vocab = Vocab { merges: vec![("h", "e")], eos: Some(257), ..Vocab::new(tokens, Pre::DeepSeek) };
//! let tokenizer = Tokenizer::new(&vocab)?;
//! assert_eq!(tokenizer.encode("he<end>", Special::All), [256, 257]);
//! assert_eq!(tokenizer.encode("he<end>", Special::None).len(), 6);
//! assert_eq!(tokenizer.decode(&[256, 257]), "he<end>");
//! # Ok::<(), ds4_model::tokenizer::Error>(())
//! ```

mod bytes;
mod decode;
mod error;
mod export;
mod gguf;
mod hf;
mod pattern;
mod segments;
mod special;
mod vocab;

pub use decode::StreamDecoder;
pub use error::Error;
pub(crate) use export::GgufKeys;
pub use pattern::Pre;
pub use segments::{Segment, Segments};
pub use vocab::{Kind, Vocab};

use ds4_gguf::Gguf;
use pattern::Splitter;
use special::Added;
use std::sync::Arc;
use tokenizers::Model as _;
use tokenizers::models::bpe::BPE;

/// A token id: the row of the embedding table.
pub type Token = u32;

/// Which added tokens (turn markers, `<think>`, …) are recognised in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// None: everything is text. The right choice for anything a user wrote.
    None,
    /// All of them: for raw prompts by request, and for text that this program rendered.
    All,
}

/// A tokenizer. Cheap to clone; shared freely between threads.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bpe: BPE,
    splitter: Splitter,
    added: Added,
    /// Bytes of all tokens, one after the other; token `t` is `bytes[ends[t - 1]..ends[t]]`.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    control: Vec<bool>,
    bos: Option<Token>,
    eos: Token,
    stop: Vec<Token>,
    add_bos: bool,
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Tokenizer>();
};

impl Tokenizer {
    /// The tokenizer that a GGUF file carries (`tokenizer.ggml.*`).
    ///
    /// # Errors
    /// [`Error`]: a key is missing or malformed, the rule is unknown, or a byte has no token.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, Error> {
        Self::new(&Vocab::from_gguf(gguf, None)?)
    }

    /// As [`from_gguf`](Self::from_gguf), with the splitting rule named by the caller instead of the file.
    ///
    /// # Errors
    /// As [`from_gguf`](Self::from_gguf).
    pub fn from_gguf_with(gguf: &Gguf, pre: Pre) -> Result<Self, Error> {
        Self::new(&Vocab::from_gguf(gguf, Some(pre))?)
    }

    /// The tokenizer of a Hugging Face `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error`]: not JSON of that shape, or anything else than byte-level BPE with a known splitting rule.
    pub fn from_hf_json(json: &str) -> Result<Self, Error> {
        hf::Definition::parse(json)?.tokenizer()
    }

    /// The tokenizer of a vocabulary.
    ///
    /// # Errors
    /// [`Error`]: a byte has no token, a special id is out of range, an array has the wrong length.
    pub fn new(vocab: &Vocab<'_>) -> Result<Self, Error> {
        let parts = vocab.parts()?;
        Ok(Self {
            inner: Arc::new(Inner {
                splitter: Splitter::new(vocab.pre),
                bpe: parts.bpe,
                added: parts.added,
                bytes: parts.bytes,
                ends: parts.ends,
                control: parts.control,
                bos: parts.bos,
                eos: parts.eos,
                stop: parts.stop,
                add_bos: vocab.add_bos,
            }),
        })
    }

    /// The tokens of `text`. Nothing is added in front or behind.
    #[must_use]
    pub fn encode(&self, text: &str, special: Special) -> Vec<Token> {
        let mut out = Vec::with_capacity(text.len() / 3);
        match special {
            Special::None => self.encode_text(text, &mut out),
            Special::All => {
                let mut from = 0;
                while let Some((start, end, id)) = self.inner.added.find(text, from) {
                    self.encode_text(&text[from..start], &mut out);
                    out.push(id);
                    from = end;
                }
                self.encode_text(&text[from..], &mut out);
            }
        }
        out
    }

    /// The tokens of bytes that should be UTF-8: each invalid sequence becomes one U+FFFD, as in
    /// `String::from_utf8_lossy`. Returns the tokens and the number of replacements.
    #[must_use]
    pub fn encode_bytes(&self, bytes: &[u8], special: Special) -> (Vec<Token>, usize) {
        let replaced = bytes
            .utf8_chunks()
            .filter(|chunk| !chunk.invalid().is_empty())
            .count();
        (
            self.encode(&String::from_utf8_lossy(bytes), special),
            replaced,
        )
    }

    /// The tokens of a rendered prompt: its markers become control tokens, its text never does.
    ///
    /// A marker that the vocabulary does not have is encoded as text; [`ChatFormat`](crate::chat::ChatFormat) refuses such
    /// a prompt before it gets here.
    #[must_use]
    pub fn encode_segments(&self, prompt: &Segments) -> Vec<Token> {
        let mut out = Vec::with_capacity(prompt.as_str().len() / 3);
        let mut run = String::new();
        for segment in prompt.iter() {
            match segment {
                Segment::Marker(marker) => match self.inner.added.id(marker) {
                    Some(id) => {
                        self.encode_text(&run, &mut out);
                        run.clear();
                        out.push(id);
                    }
                    None => run.push_str(marker),
                },
                Segment::Text(text) => run.push_str(text),
            }
        }
        self.encode_text(&run, &mut out);
        out
    }

    fn encode_text(&self, text: &str, out: &mut Vec<Token>) {
        let mut symbols = String::new();
        self.inner.splitter.split(text, &mut |piece| {
            symbols.clear();
            symbols.extend(piece.bytes().map(bytes::to_char));
            let merged = self
                .inner
                .bpe
                .tokenize(&symbols)
                .expect("without dropout and unknown token nothing can fail");
            out.extend(merged.iter().map(|token| token.id));
        });
    }

    /// The pieces that `text` is split into before merging; no token crosses their borders. Joined they are `text`.
    #[must_use]
    pub fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut pieces = Vec::new();
        self.inner
            .splitter
            .split(text, &mut |piece| pieces.push(piece));
        pieces
    }

    /// The text of `tokens`, control tokens included; invalid UTF-8 becomes U+FFFD. Ids past the vocabulary are skipped.
    #[must_use]
    pub fn decode(&self, tokens: &[Token]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .flat_map(|&token| self.token_bytes(token))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A decoder for tokens that arrive one at a time.
    #[must_use]
    pub fn decoder(&self) -> StreamDecoder {
        StreamDecoder::new(self.clone())
    }

    /// The bytes of one token: part of a character for some; empty for an id past the vocabulary.
    #[must_use]
    pub fn token_bytes(&self, token: Token) -> &[u8] {
        let Ok(at) = usize::try_from(token) else {
            return &[];
        };
        let Some(&end) = self.inner.ends.get(at) else {
            return &[];
        };
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.inner.ends[before]);
        &self.inner.bytes[start as usize..end as usize]
    }

    /// Number of tokens. A model may have more logits; those past this are never valid.
    #[must_use]
    pub fn vocab_len(&self) -> usize {
        self.inner.ends.len()
    }

    /// The token that starts a text, where the vocabulary has one.
    #[must_use]
    pub fn bos(&self) -> Option<Token> {
        self.inner.bos
    }

    /// The token that ends a text.
    #[must_use]
    pub fn eos(&self) -> Token {
        self.inner.eos
    }

    /// All tokens that end a turn, `eos` first.
    #[must_use]
    pub fn stop_tokens(&self) -> &[Token] {
        &self.inner.stop
    }

    /// Whether the file asks for `bos` before raw text. Rendered chats bring their own.
    #[must_use]
    pub fn add_bos(&self) -> bool {
        self.inner.add_bos
    }

    /// The token whose text is exactly `text`: an added token, or one of the vocabulary.
    #[must_use]
    pub fn id_of(&self, text: &str) -> Option<Token> {
        self.inner.added.id(text).or_else(|| {
            let symbols: String = text.bytes().map(bytes::to_char).collect();
            self.inner.bpe.token_to_id(&symbols)
        })
    }

    /// Whether `text` is an added token.
    #[must_use]
    pub fn has_marker(&self, text: &str) -> bool {
        self.inner.added.id(text).is_some()
    }

    /// The texts of all added tokens, in no particular order.
    pub fn markers(&self) -> impl Iterator<Item = &str> {
        self.inner.added.texts()
    }

    /// The first added token in `text` at or after byte `from`: where it starts and ends.
    #[cfg(feature = "jinja")]
    pub(crate) fn find_marker(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        self.inner
            .added
            .find(text, from)
            .map(|(start, end, _)| (start, end))
    }

    /// Whether `token` is an added token: one that text alone never becomes, so that it is evidence of a marker
    /// ([`StreamParser::push_marker`](crate::chat::StreamParser::push_marker)).
    #[must_use]
    pub fn is_marker(&self, token: Token) -> bool {
        std::str::from_utf8(self.token_bytes(token))
            .is_ok_and(|text| self.inner.added.id(text) == Some(token))
    }

    /// Whether `token` is a control token, not to be shown to a reader (`<think>` and `｜DSML｜` are not: they structure
    /// the answer and are taken out by its parser).
    #[must_use]
    pub fn is_control(&self, token: Token) -> bool {
        usize::try_from(token)
            .ok()
            .and_then(|at| self.inner.control.get(at))
            .copied()
            .unwrap_or(false)
    }
}
