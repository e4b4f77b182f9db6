//! Structured answers: which tokens a JSON schema allows next.
//!
//! llguidance compiles a schema to a grammar and says, token by token, which ones keep the text inside it. What the model
//! would like to say is masked with that before a token is drawn, so the answer is valid by construction (unless a limit
//! cuts it short).

use std::fmt;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use crate::tokenizer::{Special, Token, Tokenizer};

/// Most blanks between two parts of JSON: enough for indentation, too few to fill an answer with.
const BLANKS: &str = r"[\x20\x0A]{0,24}";

/// Longest schema, in bytes of JSON: compiling one takes time and memory in proportion.
const MAX_SCHEMA: usize = 64 << 10;
/// Work for one mask, in the library's units, a third of its defaults: schemas come from anybody, and while a mask is computed
/// nobody gets a token.
const STEP_FUEL: u64 = 60_000;
/// Parser items for one mask.
const STEP_ITEMS: usize = 16_000;
/// States of a lexer, of 1 to 2 KB each, for the whole answer.
const LEXER_STATES: usize = 50_000;

/// What can go wrong with a grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// The schema cannot be compiled.
    #[error("the schema cannot be enforced: {reason}")]
    Schema {
        /// The compiler's words.
        reason: String,
    },
    /// The grammar came to a state in which nothing can be said, or its limits were reached.
    #[error("the grammar cannot go on: {reason}")]
    Stuck {
        /// The matcher's words.
        reason: String,
    },
    /// The vocabulary cannot be used.
    #[error("no grammar for this vocabulary: {reason}")]
    Vocabulary {
        /// The compiler's words.
        reason: String,
    },
}

/// Compiles grammars for one tokenizer. Making it sorts the vocabulary, which takes a moment; it is shared.
#[derive(Clone)]
pub struct Grammars {
    factory: Arc<ParserFactory>,
}

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grammars")
    }
}

impl Grammars {
    /// For the vocabulary of `tokenizer`.
    ///
    /// # Errors
    /// [`GrammarError::Vocabulary`].
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, GrammarError> {
        let words: Vec<Vec<u8>> = (0..tokenizer.vocab_len())
            .map(|id| word(tokenizer, id as Token))
            .collect();
        let info = TokRxInfo::new(words.len() as u32, tokenizer.eos());
        let trie = TokTrie::from(&info, &words).with_eos_tokens(tokenizer.stop_tokens());
        let tokenizer = tokenizer.clone();
        let env: TokEnv = Arc::new(Vocabulary { trie, tokenizer });
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &[]).map_err(|error| {
                GrammarError::Vocabulary {
                    reason: error.to_string(),
                }
            })?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        limits.step_lexer_fuel = STEP_FUEL;
        limits.step_max_items = STEP_ITEMS;
        limits.max_lexer_states = LEXER_STATES;
        Ok(Self {
            factory: Arc::new(factory),
        })
    }

    /// Text that follows a JSON schema.
    ///
    /// # Errors
    /// [`GrammarError::Schema`] when it is none, is longer than 64 KiB, or asks for something that cannot be enforced.
    pub fn json_schema(&self, schema: &Value) -> Result<Grammar, GrammarError> {
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA {
            return Err(GrammarError::Schema {
                reason: format!("it has {bytes} bytes, the limit is {MAX_SCHEMA}"),
            });
        }
        let mut schema = schema.clone();
        match &mut schema {
            Value::Object(members) => {
                members.insert(
                    "x-guidance".to_owned(),
                    json!({ "whitespace_flexible": true, "whitespace_pattern": BLANKS }),
                );
            }
            Value::Bool(true) => {}
            _ => {
                return Err(GrammarError::Schema {
                    reason: "expected a JSON object".to_owned(),
                });
            }
        }
        let parser = self
            .factory
            .create_parser(TopLevelGrammar::from_json_schema(schema));
        let matcher = Matcher::new(parser);
        match matcher.get_error() {
            Some(reason) => Err(GrammarError::Schema { reason }),
            None => Ok(Grammar { matcher }),
        }
    }

    /// Any JSON object.
    ///
    /// # Errors
    /// As for [`Grammars::json_schema`].
    pub fn json_object(&self) -> Result<Grammar, GrammarError> {
        self.json_schema(&json!({ "type": "object" }))
    }
}

/// A grammar and how much of a text it has seen.
pub struct Grammar {
    matcher: Matcher,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grammar")
    }
}

impl Grammar {
    /// Make every logit minus infinity whose token may not come next.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`].
    pub fn mask(&mut self, logits: &mut [f32]) -> Result<(), GrammarError> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(stuck)?;
        for (id, logit) in logits.iter_mut().enumerate() {
            if id >= allowed.len() || !allowed.is_allowed(id as Token) {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// `token` comes next.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`] when it may not.
    pub fn accept(&mut self, token: Token) -> Result<(), GrammarError> {
        self.matcher.consume_token(token).map_err(stuck)
    }
}

fn stuck(error: impl fmt::Display) -> GrammarError {
    GrammarError::Stuck {
        reason: error.to_string(),
    }
}

/// A token's bytes as the compiler wants them: added tokens are marked, so that text never becomes one.
fn word(tokenizer: &Tokenizer, token: Token) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(token);
    if tokenizer.is_marker(token) {
        let mut marked = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        marked.extend_from_slice(bytes);
        marked
    } else {
        bytes.to_vec()
    }
}

struct Vocabulary {
    trie: TokTrie,
    tokenizer: Tokenizer,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<Token> {
        self.tokenizer.encode_bytes(bytes, Special::None).0
    }
}
