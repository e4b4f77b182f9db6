//! The tokenizer of a checkpoint and what lies beside it.

use std::fs;

use ds4_model::convert::{Checkpoint, ConvertError, ConvertOptions};
use ds4_quant::quantize::Source;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hf::{self, Names};
use crate::{checkpoint, tiny};

/// A good folder of a model with 320 tokens whose `config.json` names no ids.
fn folder() -> TempDir {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 1);
    let mut config = hf::config(&source);
    for field in ["bos_token_id", "eos_token_id", "pad_token_id"] {
        config[field] = json!(null);
    }
    write(&folder, "config.json", &config);
    folder
}

fn write(folder: &TempDir, file: &str, json: &Value) {
    fs::write(folder.path().join(file), json.to_string()).unwrap();
}

fn open(folder: &TempDir) -> Result<Checkpoint, ConvertError> {
    Checkpoint::open(folder.path(), &ConvertOptions::default())
}

/// An id of the result.
fn id(checkpoint: &Checkpoint, key: &str) -> Option<u32> {
    checkpoint
        .metadata()
        .find(&format!("tokenizer.ggml.{key}_token_id"))
}

#[test]
fn ids_that_end_a_turn_have_a_key_each() {
    let folder = folder();
    let ids = |generation: Value| {
        write(&folder, "generation_config.json", &generation);
        let checkpoint = open(&folder).unwrap();
        ["bos", "eos", "eot", "eom", "padding"].map(|key| id(&checkpoint, key))
    };
    for (generation, want) in [
        (json!({}), [None; 5]),
        (
            json!({ "eos_token_id": 1 }),
            [None, Some(1), None, None, None],
        ),
        (
            json!({ "bos_token_id": 0, "eos_token_id": [1, 5], "pad_token_id": 319 }),
            [Some(0), Some(1), Some(5), None, Some(319)],
        ),
        (
            json!({ "bos_token_id": [0], "eos_token_id": [9, 9, 8, 7], "pad_token_id": null }),
            [Some(0), Some(9), Some(8), Some(7), None],
        ),
        (json!({ "eos_token_id": [] }), [None; 5]),
    ] {
        assert_eq!(ids(generation.clone()), want, "{generation}");
    }
    // What generation_config.json lacks comes from config.json; what it has counts.
    let mut config = hf::config(&tiny("tiny-f16"));
    (config["bos_token_id"], config["eos_token_id"]) = (json!(3), json!([4, 5]));
    write(&folder, "config.json", &config);
    let want = [Some(3), Some(6), None, None, Some(2)];
    assert_eq!(ids(json!({ "eos_token_id": 6 })), want);
}

#[test]
fn ids_of_no_token_are_refused() {
    let folder = folder();
    for (file, field) in [
        ("generation_config.json", "bos_token_id"),
        ("generation_config.json", "eos_token_id"),
        ("config.json", "pad_token_id"),
    ] {
        let path = folder.path().join(file);
        let good = fs::read(&path).unwrap_or_else(|_| b"{}".to_vec());
        let config: Value = serde_json::from_slice(&good).unwrap();
        let refused = |value: &Value| {
            let mut config = config.clone();
            config[field] = value.clone();
            write(&folder, file, &config);
            open(&folder).map(|_| ()).unwrap_err()
        };
        for wrong in [
            json!(320),
            json!(-1),
            json!(1u64 << 32),
            json!(1.5),
            json!("1"),
            json!({}),
        ] {
            let text = wrong.to_string();
            for value in [wrong.clone(), json!([wrong])] {
                let error = refused(&value);
                assert!(
                    matches!(&error, ConvertError::TokenId { path: p, field: f, found, rows: 320 }
                        if *p == path && *f == field && **found == *text),
                    "{value}: {error}"
                );
            }
        }
        let most = if field == "eos_token_id" { 3 } else { 1 };
        let error = refused(&json!([10, 11, 12, 13]));
        assert!(
            matches!(error, ConvertError::TokenIds { found: 4, most: m, .. } if m == most),
            "{error}"
        );
        fs::write(path, good).unwrap();
    }
    open(&folder).unwrap();
}

#[test]
fn a_vocabulary_has_at_most_the_rows_of_the_embedding() {
    let folder = folder();
    let path = folder.path().join("tokenizer.json");
    let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let added = json["added_tokens"].as_array_mut().unwrap();
    added.push(json!({ "id": 320, "content": "<more>", "special": true }));
    write(&folder, "tokenizer.json", &json);
    let error = open(&folder).map(|_| ()).unwrap_err();
    assert!(
        matches!(
            error,
            ConvertError::Vocabulary {
                found: 321,
                most: 320,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn of_several_chat_templates_the_default_counts() {
    let folder = folder();
    let template = |field: Value| {
        write(
            &folder,
            "tokenizer_config.json",
            &json!({ "chat_template": field }),
        );
        let checkpoint = open(&folder).unwrap();
        let found = checkpoint.metadata().find("tokenizer.chat_template");
        found.map(|text: &str| text.to_owned())
    };
    let one = |name: &str, text: &str| json!({ "name": name, "template": text });
    let two = json!([one("tool_use", "tools"), one("default", "plain")]);
    assert_eq!(template(two.clone()).as_deref(), Some("plain"));
    assert_eq!(template(json!("only")).as_deref(), Some("only"));
    assert_eq!(template(json!([one("tool_use", "tools")])), None);
    assert_eq!(template(json!(null)), None);
    // A file of its own comes before either.
    fs::write(folder.path().join("chat_template.jinja"), "beside").unwrap();
    assert_eq!(template(two).as_deref(), Some("beside"));
}
