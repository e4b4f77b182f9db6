//! `tokenizer.json` and what lies beside it as the `tokenizer.*` keys of a GGUF.
//!
//! | from | key |
//! |---|---|
//! | `tokenizer.json` | `model`, `pre`, `tokens`, `token_type`, `merges` |
//! | `bos_token_id`, `pad_token_id` | `bos_token_id`, `padding_token_id` |
//! | `eos_token_id`: one id, or a list of up to three | `eos_token_id`, `eot_token_id`, `eom_token_id`: each ends a turn |
//! | `add_bos_token`, `add_eos_token` of `tokenizer_config.json` | the same |
//! | `chat_template.jinja`, or `chat_template` of `tokenizer_config.json` | `tokenizer.chat_template` |
//!
//! Ids are those of `generation_config.json` where it has them, else those of `config.json`. Of several ids that end a
//! turn readers take the union, so the order of the second and third is of no consequence (ggml-org/llama.cpp:
//! src/llama-vocab.cpp puts both in one set). Of several chat templates it is the one named `default`.

use std::path::Path;

use ds4_gguf::Metadata;
use serde_json::{Map, Value as Json};

use super::error::ConvertError;
use super::read::{json, text};
use crate::tokenizer::GgufKeys;

/// Fields with ids of tokens, and the keys that their ids get in turn.
const IDS: [(&str, &[&str]); 3] = [
    ("bos_token_id", &["bos_token_id"]),
    (
        "eos_token_id",
        &["eos_token_id", "eot_token_id", "eom_token_id"],
    ),
    ("pad_token_id", &["padding_token_id"]),
];

/// Add the keys of the tokenizer in `folder` to `metadata`.
///
/// * `config`: `config.json` · `rows`: of the embedding; entries that the tokenizer lacks are unused
pub(super) fn write(
    folder: &Path,
    config: &Map<String, Json>,
    rows: usize,
    metadata: &mut Metadata,
) -> Result<(), ConvertError> {
    let path = folder.join("tokenizer.json");
    let fail = |source| ConvertError::Tokenizer {
        path: path.clone(),
        source,
    };
    let definition = text(&path)?.ok_or_else(|| ConvertError::Io {
        path: path.clone(),
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    let mut keys = GgufKeys::from_hf_json(&definition).map_err(fail)?;
    if keys.tokens.len() > rows {
        return Err(ConvertError::Vocabulary {
            path,
            found: keys.tokens.len(),
            most: rows,
        });
    }
    keys.pad(rows);
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", keys.pre);
    metadata.set("tokenizer.ggml.tokens", keys.tokens);
    metadata.set("tokenizer.ggml.token_type", keys.types);
    metadata.set("tokenizer.ggml.merges", keys.merges);

    let path = folder.join("generation_config.json");
    let generation: Map<String, Json> = json(&path)?.unwrap_or_default();
    let sources = [(path, &generation), (folder.join("config.json"), config)];
    for (field, keys) in IDS {
        for (path, source) in &sources {
            let found = ids(path, source, field, keys.len(), rows)?;
            for (key, &id) in keys.iter().zip(&found) {
                metadata.set(&format!("tokenizer.ggml.{key}"), id);
            }
            if !found.is_empty() {
                break;
            }
        }
    }
    let of_tokenizer: Map<String, Json> =
        json(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
    let flag = |field: &str, usual| {
        of_tokenizer
            .get(field)
            .and_then(Json::as_bool)
            .unwrap_or(usual)
    };
    metadata.set("tokenizer.ggml.add_bos_token", flag("add_bos_token", true));
    metadata.set("tokenizer.ggml.add_eos_token", flag("add_eos_token", false));
    let beside = text(&folder.join("chat_template.jinja"))?;
    let inside = || of_tokenizer.get("chat_template").and_then(template);
    if let Some(template) = beside.or_else(|| inside().map(str::to_owned)) {
        metadata.set("tokenizer.chat_template", template);
    }
    Ok(())
}

/// The ids in `field`, one or a list of them, each once; none where it is absent, null or empty.
///
/// * `most`: how many there may be · `rows`: each is below
fn ids(
    path: &Path,
    source: &Map<String, Json>,
    field: &'static str,
    most: usize,
    rows: usize,
) -> Result<Vec<u32>, ConvertError> {
    let Some(found) = source.get(field).filter(|found| !found.is_null()) else {
        return Ok(Vec::new());
    };
    let list = found
        .as_array()
        .map_or(std::slice::from_ref(found), Vec::as_slice);
    let mut ids = Vec::new();
    for found in list {
        let id = found.as_u64().and_then(|id| u32::try_from(id).ok());
        let Some(id) = id.filter(|&id| (id as usize) < rows) else {
            return Err(ConvertError::TokenId {
                path: path.to_owned(),
                field,
                found: found.to_string().into(),
                rows,
            });
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() > most {
            return Err(ConvertError::TokenIds {
                path: path.to_owned(),
                field,
                found: list.len(),
                most,
            });
        }
    }
    Ok(ids)
}

/// The template, or of a list of named ones the default.
fn template(json: &Json) -> Option<&str> {
    match json.as_array() {
        Some(list) => list.iter().find(|one| one["name"] == "default")?["template"].as_str(),
        None => json.as_str(),
    }
}
