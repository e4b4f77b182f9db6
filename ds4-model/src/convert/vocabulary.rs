//! `tokenizer.json` and what lies beside it as the `tokenizer.*` keys of a GGUF.

use std::path::Path;

use ds4_gguf::Metadata;
use serde_json::{Map, Value as Json};

use super::error::ConvertError;
use super::shards::{read_json, read_text};
use crate::tokenizer::GgufKeys;

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
    let text = read_text(&path)?.ok_or_else(|| ConvertError::Io {
        path: path.clone(),
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    let mut keys = GgufKeys::from_hf_json(&text).map_err(fail)?;
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

    let generation: Map<String, Json> =
        read_json(&folder.join("generation_config.json"))?.unwrap_or_default();
    let of_tokenizer: Map<String, Json> =
        read_json(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
    for (key, field, further) in [
        ("bos_token_id", "bos_token_id", None),
        ("eos_token_id", "eos_token_id", Some("eot_token_id")),
        ("padding_token_id", "pad_token_id", None),
    ] {
        let ids = [&generation, config]
            .into_iter()
            .filter_map(|source| source.get(field))
            .map(ids)
            .find(|ids| !ids.is_empty())
            .unwrap_or_default();
        for (key, id) in std::iter::once(key).chain(further).zip(ids) {
            metadata.set(&format!("tokenizer.ggml.{key}"), id);
        }
    }
    let flag = |field: &str, usual| {
        of_tokenizer
            .get(field)
            .and_then(Json::as_bool)
            .unwrap_or(usual)
    };
    metadata.set("tokenizer.ggml.add_bos_token", flag("add_bos_token", true));
    metadata.set("tokenizer.ggml.add_eos_token", flag("add_eos_token", false));
    let beside = read_text(&folder.join("chat_template.jinja"))?;
    let inside = || {
        of_tokenizer
            .get("chat_template")?
            .as_str()
            .map(str::to_owned)
    };
    if let Some(template) = beside.or_else(inside) {
        metadata.set("tokenizer.chat_template", template);
    }
    Ok(())
}

/// One id, or a list of them; ids that are none are left out.
fn ids(json: &Json) -> Vec<u32> {
    let one = std::slice::from_ref(json);
    let list = json.as_array().map_or(one, Vec::as_slice);
    list.iter()
        .filter_map(|id| u32::try_from(id.as_u64()?).ok())
        .collect()
}
