//! Checkpoints that are wrong: each is one typed error that names file, tensor and field.

use std::fs;
use std::path::Path;

use ds4_model::convert::{Checkpoint, ConvertError, ConvertOptions, Problem};
use serde_json::json;

use crate::hf::{self, Names, Tensor};
use crate::{checkpoint, tiny};

fn open(folder: &Path) -> Result<Checkpoint, ConvertError> {
    Checkpoint::open(folder, &ConvertOptions::default())
}

fn refused(folder: &Path) -> ConvertError {
    open(folder).map(|_| ()).unwrap_err()
}

/// A good folder with its weights changed.
fn changed(change: impl FnOnce(&mut Vec<Tensor>)) -> (tempfile::TempDir, ConvertError) {
    let source = tiny("tiny-f16");
    let mut tensors = hf::tensors(&source, Names::Published);
    change(&mut tensors);
    let folder = checkpoint(&source, &tensors, 1);
    let error = refused(folder.path());
    (folder, error)
}

#[test]
fn all_wrong_tensors_are_named_in_one_error() {
    let (_folder, error) = changed(|tensors| {
        tensors.retain(|t| t.name != "norm.weight" && t.name != "layers.1.ffn.experts.5.w2.weight");
        for t in tensors {
            match &*t.name {
                "layers.0.attn.wq_a.weight" => t.shape.swap(0, 1),
                "layers.2.attn_norm.weight" => (t.dtype, t.shape) = ("I32", vec![64]),
                "layers.2.attn.wkv.weight" => {
                    t.dtype = "F8_E4M3";
                    t.bytes.truncate(t.bytes.len() / 2);
                }
                "layers.1.attn.wo_b.weight" => t.dtype = "C32",
                _ => {}
            }
        }
    });
    let ConvertError::Tensors { problems, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(problems.len(), 6, "{error}");
    let text = error.to_string();
    for words in [
        "`output_norm.weight` is missing; looked for model.norm.weight",
        "`blk.1.ffn_down_exps.weight` is missing; looked for model.layers.1.mlp.experts.5.down_proj.weight",
        "`layers.0.attn.wq_a.weight` has shape",
        "`layers.2.attn_norm.weight` is I32; expected F32, F16 or BF16",
        "`layers.2.attn.wkv.weight` is F8_E4M3 and has no scales; looked for layers.2.attn.wkv.scale",
        "`layers.1.attn.wo_b.weight` is C32",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        problems
            .iter()
            .any(|p| matches!(p, Problem::NoScales { .. }))
    );
}

#[test]
fn directories_that_lie_are_refused() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &[], 1);
    let path = folder.path().join("model.safetensors");
    let with = |file: &[u8]| {
        fs::write(&path, file).unwrap();
        refused(folder.path())
    };
    let header = |header: serde_json::Value| hf::with_header(&header.to_string(), &[0; 64]);
    let entry = |dtype: &str, shape: &[u64], start: u64, end: u64| json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });

    let error = with(&header(
        json!({ "a": entry("F32", &[4], 0, 16), "b": entry("F32", &[4], 12, 28) }),
    ));
    assert!(
        matches!(&error, ConvertError::Overlap { first, .. } if &**first == "a"),
        "{error}"
    );
    for (start, end) in [(56, 72), (32, 16), (u64::MAX - 8, u64::MAX)] {
        let error = with(&header(json!({ "a": entry("F32", &[4], start, end) })));
        assert!(matches!(error, ConvertError::OutOfFile { .. }), "{error}");
    }
    for shape in [vec![5u64], vec![u64::MAX, u64::MAX], vec![1 << 62, 16]] {
        let error = with(&header(json!({ "a": entry("F32", &shape, 0, 16) })));
        assert!(matches!(error, ConvertError::Bytes { .. }), "{error}");
    }
    let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
    let error = with(&hf::with_header(twice, &[0; 8]));
    assert!(matches!(error, ConvertError::Twice { .. }), "{error}");
    let mut long = header(json!({}));
    long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(with(&long), ConvertError::HeaderSize { .. }));
    assert!(matches!(with(&[1, 2, 3]), ConvertError::Io { .. }));
    for text in ["[]", "{\"a\":3}", "{\"a\":{}}", "{", "\u{1}"] {
        let error = with(&hf::with_header(text, &[]));
        assert!(
            matches!(error, ConvertError::Json { .. }),
            "{text}: {error}"
        );
    }
}

#[test]
fn shards_that_are_cut_short_missing_or_elsewhere_are_named() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 3);
    let path = |file: &str| folder.path().join(file);
    open(folder.path()).unwrap();

    let second = path("model-00002-of-00003.safetensors");
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    let error = refused(folder.path());
    assert!(
        matches!(&error, ConvertError::OutOfFile { path, .. } if *path == second),
        "{error}"
    );

    fs::remove_file(&second).unwrap();
    fs::remove_file(path("model-00003-of-00003.safetensors")).unwrap();
    let error = refused(folder.path());
    assert!(
        matches!(&error, ConvertError::MissingShards { shards, .. } if shards.len() == 2),
        "{error}"
    );

    let index = json!({ "weight_map": { "a": "../model.safetensors" } });
    fs::write(path("model.safetensors.index.json"), index.to_string()).unwrap();
    let error = refused(folder.path());
    assert!(matches!(error, ConvertError::ShardName { .. }), "{error}");

    fs::remove_file(path("model.safetensors.index.json")).unwrap();
    assert!(matches!(
        refused(folder.path()),
        ConvertError::NoWeights { .. }
    ));
}

#[test]
fn settings_that_cannot_be_are_named() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 1);
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut config = hf::config(&source);
        change(&mut config);
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        refused(folder.path())
    };
    let error = with(&|c| {
        c.as_object_mut().unwrap().remove("hc_mult");
        c["head_dim"] = json!("wide");
        c["scoring_func"] = json!("softmax");
    });
    let text = error.to_string();
    assert!(matches!(error, ConvertError::Settings { .. }), "{text}");
    for words in [
        "hc_mult is missing",
        "head_dim is \"wide\"",
        "scoring_func is \"softmax\"",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let error = with(&|c| c["model_type"] = json!("llama"));
    assert!(error.to_string().contains("llama"), "{error}");
    for (field, value) in [
        ("num_hidden_layers", json!(4_000_000_000u32)),
        ("n_routed_experts", json!(0)),
        ("compress_ratios", json!([0, 7, 0])),
    ] {
        let error = with(&|c| c[field] = value.clone());
        assert!(
            matches!(error, ConvertError::Config { .. }),
            "{field}: {error}"
        );
    }
    let error = with(&|c| c["vocab_size"] = json!(100));
    assert!(matches!(error, ConvertError::Vocabulary { .. }), "{error}");
    fs::remove_file(folder.path().join("config.json")).unwrap();
    let error = refused(folder.path());
    assert!(error.to_string().contains("config.json"), "{error}");
}
