//! Checkpoints that are wrong: each is one typed error that names file, tensor and field.

use std::error::Error;
use std::fs;
use std::path::Path;

use ds4_model::convert::{Checkpoint, ConvertError, ConvertOptions, Problem};
use ds4_quant::quantize::QuantizeError;
use serde_json::json;

use crate::hf::{self, Names, Tensor};
use crate::{checkpoint, convert, keep, tiny};

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
fn what_is_no_regular_file_is_not_read() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 1);
    for file in [
        "config.json",
        "tokenizer.json",
        "generation_config.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "model.safetensors",
        "model.safetensors.index.json",
    ] {
        let path = folder.path().join(file);
        let kept = fs::read(&path).ok();
        let refuses = |what: &str| {
            let error = refused(folder.path());
            assert!(
                matches!(&error, ConvertError::NotAFile { path: named } if *named == path),
                "{file} that is {what}: {error}"
            );
        };
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).unwrap();
        refuses("a folder");
        fs::remove_dir(&path).unwrap();
        // A device that says it has no bytes and never ends.
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            refuses("a device");
            fs::remove_file(&path).unwrap();
        }
        if let Some(bytes) = kept {
            fs::write(&path, bytes).unwrap();
        }
    }
    open(folder.path()).unwrap();
}

/// The vocabulary is made as long as the embedding: what has no such embedding makes none.
#[test]
fn weights_are_looked_at_before_the_vocabulary() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 1);
    let mut config = hf::config(&source);
    config["vocab_size"] = json!(1 << 24);
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let error = refused(folder.path());
    let text = "`embed.weight` has shape [320, 64]; expected [16777216, 64]";
    assert!(
        matches!(error, ConvertError::Tensors { .. }) && error.to_string().contains(text),
        "{error}"
    );
}

#[test]
fn a_table_sends_tokens_to_experts_that_there_are() {
    let source = tiny("tiny-f16");
    let experts = 8;
    for (dtype, found) in [
        ("I64", 8),
        ("I64", -1),
        ("I64", 1 << 32),
        ("I64", i64::MIN),
        ("I32", 8),
        ("I32", -1),
    ] {
        let mut tensors = hf::tensors(&source, Names::Published);
        let name = "layers.0.ffn.gate.tid2eid";
        let table = tensors.iter_mut().find(|t| t.name == name).unwrap();
        let numbers = table.bytes.as_chunks().0.iter();
        let mut numbers: Vec<i64> = numbers.map(|b| i64::from_le_bytes(*b)).collect();
        numbers[41] = found;
        table.dtype = dtype;
        table.bytes = numbers
            .iter()
            .flat_map(|n| match dtype {
                "I32" => (*n as i32).to_le_bytes().to_vec(),
                _ => n.to_le_bytes().to_vec(),
            })
            .collect();
        let folder = checkpoint(&source, &tensors, 1);
        let error = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap_err();
        let QuantizeError::Source { tensor, source } = &error else {
            panic!("{error}")
        };
        assert_eq!(&**tensor, "blk.0.ffn_gate_tid2eid.weight");
        assert_eq!(causes(&error), 1);
        let cause = source.downcast_ref().unwrap();
        assert!(
            matches!(cause, ConvertError::Expert { tensor, index: 41, found: f, experts: e, .. }
                if &**tensor == name && *f == found && *e == experts),
            "{cause}"
        );
    }
}

/// How many causes an error has; programs print all of them, so none may be said twice.
fn causes(error: &dyn Error) -> usize {
    let mut said = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        assert!(
            !said.iter().any(|m| m.contains(&message)),
            "{message}: {said:?}"
        );
        said.push(message);
        cause = error.source();
    }
    said.len() - 1
}

#[test]
fn no_message_repeats_its_cause() {
    let source = tiny("tiny-f16");
    let tensors = hf::tensors(&source, Names::Published);
    let write = |file: &'static str, text: &'static str| {
        move |folder: &Path| fs::write(folder.join(file), text).unwrap()
    };
    type Spoil = Box<dyn Fn(&Path)>;
    let cases: [(&str, Spoil); 5] = [
        (
            "Io",
            Box::new(|f| fs::remove_file(f.join("config.json")).unwrap()),
        ),
        ("Json", Box::new(write("config.json", "{"))),
        (
            "Json",
            Box::new(write("model.safetensors.index.json", "[]")),
        ),
        ("Tokenizer", Box::new(write("tokenizer.json", "{}"))),
        (
            "Config",
            Box::new(|f| {
                let mut config = hf::config(&tiny("tiny-f16"));
                config["num_hidden_layers"] = json!(9000);
                fs::write(f.join("config.json"), config.to_string()).unwrap();
            }),
        ),
    ];
    for (variant, spoil) in cases {
        let folder = checkpoint(&source, &tensors, 1);
        spoil(folder.path());
        let error = refused(folder.path());
        assert!(format!("{error:?}").starts_with(variant), "{error:?}");
        assert!(causes(&error) > 0, "{error:?}");
    }
}
