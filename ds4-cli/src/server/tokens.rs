//! `/tokenize` and `/detokenize`: from text to ids and back. There may be millions of ids, so they are written without being
//! made JSON values first.

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use ds4_model::tokenizer::Special;
use ds4_model::{Token, Tokenizer};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::body::with_body;
use super::error::{ApiError, Shape};
use super::http::document;
use super::params::{self, Body, typed};
use super::state::Shared;

/// Most ids to be made text: those of the longest context.
const MOST_IDS: usize = 1 << 20;

/// Refuse members of `body` that are not in `names`.
fn only(body: &Body, names: &[&str]) -> Result<(), ApiError> {
    match body.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(ApiError::Unsupported {
            param: name.clone(),
            why: String::new(),
        }),
    }
}

#[derive(Serialize)]
struct Tokens {
    tokens: Vec<Token>,
}

/// The same with what each id stands for.
#[derive(Serialize)]
struct Pieces<'a> {
    tokens: PieceList<'a>,
}

struct PieceList<'a> {
    tokens: &'a [Token],
    tokenizer: &'a Tokenizer,
}

impl Serialize for PieceList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let piece = |&id: &Token| {
            let bytes = self.tokenizer.token_bytes(id);
            let piece = match std::str::from_utf8(bytes) {
                Ok(text) => Piece::Text(text),
                Err(_) => Piece::Bytes(bytes),
            };
            IdAndPiece { id, piece }
        };
        serializer.collect_seq(self.tokens.iter().map(piece))
    }
}

#[derive(Serialize)]
struct IdAndPiece<'a> {
    id: Token,
    piece: Piece<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'a> {
    Text(&'a str),
    /// Part of a character.
    Bytes(&'a [u8]),
}

fn written(document: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(document).map_err(|e| ApiError::Failed(e.to_string()))
}

/// `POST /tokenize`
pub(crate) async fn tokenize(State(app): State<Shared>, request: Request) -> Response {
    let tokens = with_body(&app, request, |app, mut body| {
        only(
            &body,
            &["content", "add_special", "parse_special", "with_pieces"],
        )?;
        let text = match body.get_mut("content").map(Value::take) {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => {
                return Err(ApiError::invalid("content", "missing content"));
            }
            Some(_) => {
                return Err(ApiError::invalid("content", "`content`: expected a text"));
            }
        };
        let flag = |name, otherwise| Ok(typed(&body, name)?.unwrap_or(otherwise));
        let special = if flag("parse_special", true)? {
            Special::All
        } else {
            Special::None
        };
        let tokenizer = app.engine.tokenizer();
        let mut tokens = tokenizer.encode(&text, special);
        drop(text);
        if flag("add_special", false)?
            && let Some(bos) = tokenizer.bos()
        {
            tokens.insert(0, bos);
        }
        if flag("with_pieces", false)? {
            let tokens = PieceList {
                tokens: &tokens,
                tokenizer,
            };
            return written(&Pieces { tokens });
        }
        written(&Tokens { tokens })
    });
    match tokens.await {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => error.response(Shape::OpenAi),
    }
}

/// `POST /detokenize`
pub(crate) async fn detokenize(State(app): State<Shared>, request: Request) -> Response {
    let text = with_body(&app, request, |app, mut body| {
        only(&body, &["tokens"])?;
        let list = params::take_list(&mut body, "tokens")?
            .ok_or_else(|| ApiError::invalid("tokens", "missing tokens"))?;
        if list.len() > MOST_IDS {
            let what = format!(
                "`tokens` has {} ids, expected at most {MOST_IDS}",
                list.len()
            );
            return Err(ApiError::invalid("tokens", what));
        }
        let tokenizer = app.engine.tokenizer();
        let tokens = params::tokens(&list, tokenizer.vocab_len(), "tokens")?;
        drop(list);
        Ok(json!({ "content": tokenizer.decode(&tokens) }))
    });
    document(text.await, Shape::OpenAi)
}
