//! `config.json`: either spelling, and what neither the engine nor any model can have.

use std::fs;

use ds4_model::config::{Config, Yarn};
use ds4_model::convert::{Checkpoint, ConvertError, ConvertOptions};
use ds4_quant::quantize::Source;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hf::{self, Names};
use crate::{checkpoint, convert, keep, tiny};

/// A good folder whose config.json can be changed: three layers of ratio 4, 128 and 0, the first routed by a table.
struct Folder {
    folder: TempDir,
    config: Value,
}

impl Folder {
    fn new() -> Self {
        let source = tiny("tiny-f16");
        Self {
            folder: checkpoint(&source, &hf::tensors(&source, Names::Published), 1),
            config: hf::config(&source),
        }
    }

    fn open(&self, change: impl FnOnce(&mut Value)) -> Result<Checkpoint, ConvertError> {
        let mut config = self.config.clone();
        change(&mut config);
        let path = self.folder.path().join("config.json");
        fs::write(path, config.to_string()).unwrap();
        Checkpoint::open(self.folder.path(), &ConvertOptions::default())
    }

    /// The problems that are named.
    fn problems(&self, change: impl FnOnce(&mut Value)) -> Vec<String> {
        match self.open(change).map(|_| ()).unwrap_err() {
            ConvertError::Settings { fields, .. } => fields,
            other => panic!("{other}"),
        }
    }

    /// YaRN of the result, as the engine reads it.
    fn yarn(&self, change: impl FnOnce(&mut Value)) -> Option<Yarn> {
        self.open(change).unwrap();
        let result = convert(self.folder.path(), &ConvertOptions::default(), &keep()).unwrap();
        Config::from_gguf(&result).unwrap().rope_compress.yarn
    }
}

fn remove(config: &mut Value, field: &str) -> Value {
    config.as_object_mut().unwrap().remove(field).unwrap()
}

/// The settings of the tiny model as newer transformers spells them.
fn respell(config: &mut Value) {
    for field in ["compress_ratios", "num_hash_layers", "qk_rope_head_dim"] {
        remove(config, field);
    }
    let [main, compress] = ["rope_theta", "compress_rope_theta"].map(|f| remove(config, f));
    let mut scaling = remove(config, "rope_scaling");
    let kind = remove(&mut scaling, "type");
    scaling["rope_type"] = kind;
    scaling["rope_theta"] = compress;
    scaling["attention_factor"] = json!(1.0);
    config["rope_parameters"] = json!({
        "main": { "rope_type": "default", "rope_theta": main },
        "compress": scaling,
    });
    config["layer_types"] = json!([
        "compressed_sparse_attention",
        "heavily_compressed_attention",
        "sliding_attention",
    ]);
    config["mlp_layer_types"] = json!(["hash_moe", "moe", "moe"]);
    config["partial_rotary_factor"] = json!(64.0 / 192.0);
}

#[test]
fn both_spellings_give_the_same_model() {
    let folder = Folder::new();
    let keys = |checkpoint: Checkpoint| -> Vec<(String, String)> {
        let model = |(key, value): (&str, &ds4_gguf::Value)| {
            key.starts_with("deepseek4.")
                .then(|| (key.to_owned(), value.to_string()))
        };
        checkpoint.metadata().iter().filter_map(model).collect()
    };
    let published = keys(folder.open(|_| {}).unwrap());
    assert!(published.len() > 35, "{published:?}");
    assert_eq!(keys(folder.open(respell).unwrap()), published);
    let flat = |c: &mut Value| {
        let theta = c["compress_rope_theta"].clone();
        respell(c);
        c["rope_parameters"] = remove(&mut c["rope_parameters"], "compress");
        c["compress_rope_theta"] = theta;
        remove(&mut c["rope_parameters"], "rope_theta");
        let share = remove(c, "partial_rotary_factor");
        c["rope_parameters"]["partial_rotary_factor"] = share;
    };
    assert_eq!(keys(folder.open(flat).unwrap()), published);
    // Both at once, where they agree.
    let both = |c: &mut Value| {
        let first = c.clone();
        respell(c);
        for (field, value) in first.as_object().unwrap() {
            c[field] = value.clone();
        }
    };
    assert_eq!(keys(folder.open(both).unwrap()), published);
}

#[test]
fn angles_are_scaled_where_the_checkpoint_says_so() {
    let folder = Folder::new();
    let yarn = folder.yarn(|_| {}).unwrap();
    assert_eq!((yarn.factor, yarn.original_context), (16.0, 65_536));
    let usual = json!({ "type": "yarn", "factor": 4, "original_max_position_embeddings": 32 });
    let yarn = folder.yarn(|c| c["rope_scaling"] = usual).unwrap();
    let found = (yarn.factor, yarn.original_context);
    assert_eq!(
        (found, yarn.beta_fast, yarn.beta_slow),
        ((4.0, 32), 32.0, 1.0)
    );

    for none in [
        json!(null),
        json!({}),
        json!({ "type": "default" }),
        json!({ "rope_type": "default", "type": "default" }),
        json!({ "rope_type": null }),
    ] {
        let found = folder.yarn(|c| c["rope_scaling"] = none.clone());
        assert_eq!(found, None, "{none}");
    }
    assert_eq!(folder.yarn(|c| drop(remove(c, "rope_scaling"))), None);
    let plain = |c: &mut Value| {
        respell(c);
        c["rope_parameters"]["compress"] = json!({ "rope_type": "default", "rope_theta": 160_000 });
    };
    assert_eq!(folder.yarn(plain), None);
}

#[test]
fn a_scaling_that_cannot_be_computed_is_named() {
    let folder = Folder::new();
    let cases: [(Value, &[&str]); 9] = [
        (
            json!({ "type": "yarn" }),
            &[
                "rope_scaling.factor is missing",
                "rope_scaling.original_max_position_embeddings is missing",
            ],
        ),
        (
            json!({ "type": "linear", "factor": 2 }),
            &["rope_scaling.rope_type is \"linear\"; expected default or yarn"],
        ),
        (
            json!({ "type": 7 }),
            &["rope_scaling.rope_type is 7; expected default or yarn"],
        ),
        (
            json!({ "factor": 16 }),
            &["rope_scaling.rope_type is missing"],
        ),
        (
            json!("yarn"),
            &["rope_scaling is \"yarn\"; expected an object"],
        ),
        (
            json!({ "type": "yarn", "rope_type": "default" }),
            &["rope_scaling.type is \"yarn\"; expected \"default\", as rope_type is"],
        ),
        (
            json!({ "type": "yarn", "factor": 16, "original_max_position_embeddings": 65536,
                "attention_factor": 1.277, "truncate": false }),
            &[
                "rope_scaling.attention_factor is 1.277; expected 1.0",
                "rope_scaling.truncate is false; expected true",
            ],
        ),
        (
            json!({ "type": "yarn", "factor": "16", "original_max_position_embeddings": 65536.5 }),
            &[
                "rope_scaling.factor is \"16\"; expected a number",
                "rope_scaling.original_max_position_embeddings is 65536.5; expected a whole number below 2^32",
            ],
        ),
        (
            json!({ "type": "yarn", "factor": 16, "original_max_position_embeddings": 65536, "beta_fast": [] }),
            &["rope_scaling.beta_fast is []; expected a number"],
        ),
    ];
    for (scaling, problems) in cases {
        let found = folder.problems(|c| c["rope_scaling"] = scaling.clone());
        assert_eq!(found, problems, "{scaling}");
    }
}

#[test]
fn what_the_engine_does_not_compute_is_named() {
    let folder = Folder::new();
    for (field, value, expected) in [
        ("hidden_act", json!("gelu"), "\"silu\""),
        ("scoring_func", json!("softmax"), "\"sqrtsoftplus\""),
        ("topk_method", json!("greedy"), "\"noaux_tc\""),
        ("norm_topk_prob", json!(false), "true"),
        ("num_key_value_heads", json!(4), "1"),
        ("attention_bias", json!(true), "false"),
        ("mlp_bias", json!(true), "false"),
        ("n_group", json!(8), "0 or 1"),
        ("topk_group", json!(4), "0 or 1"),
        ("compress_rate_csa", json!(8), "4"),
        ("compress_rate_hca", json!(64), "128"),
        ("tie_word_embeddings", json!("no"), "true or false"),
        (
            "mlp_layer_types",
            json!(["moe", "hash_moe", "moe"]),
            "a list of hash_moe, then of moe",
        ),
        ("layer_types", json!("all"), "a list of kinds of attention"),
        ("partial_rotary_factor", json!(0.5), "64 of 192 channels"),
    ] {
        let found = folder.problems(|c| c[field] = value.clone());
        let problem = format!("{field} is {value}; expected {expected}");
        assert!(found.contains(&problem), "{problem}: {found:?}");
    }
    for (outer, inner, value, expected) in [
        (
            "quantization_config",
            "weight_block_size",
            json!([64, 64]),
            "[128,128]",
        ),
        ("quantization_config", "fmt", json!("e5m2"), "\"e4m3\""),
        (
            "compress_rates",
            "compressed_sparse_attention",
            json!(8),
            "4",
        ),
    ] {
        let found = folder.problems(|c| c[outer] = json!({ inner: value }));
        assert_eq!(
            found,
            [format!("{outer}.{inner} is {value}; expected {expected}")]
        );
    }
    let found =
        folder.problems(|c| c["rope_parameters"] = json!({ "main": { "rope_type": "yarn" } }));
    assert_eq!(
        found,
        ["rope_parameters.main.rope_type is \"yarn\"; expected default"]
    );
    // Absent, null and the value that is computed are the same.
    let usual = |c: &mut Value| {
        for (field, value) in [
            ("hidden_act", json!("silu")),
            ("attention_bias", json!(null)),
            ("n_group", json!(1)),
            ("topk_group", json!(null)),
            (
                "quantization_config",
                json!({ "weight_block_size": [128, 128], "fmt": "e4m3" }),
            ),
        ] {
            c[field] = value;
        }
    };
    folder.open(usual).unwrap();
}

#[test]
fn lists_and_numbers_that_contradict_each_other_are_named() {
    let folder = Folder::new();
    let kinds = |kinds: [&str; 3]| json!(kinds.map(|kind| format!("{kind}_attention")));
    let found = folder.problems(|c| {
        c["layer_types"] = kinds(["compressed_sparse", "sliding", "sliding"]);
        c["mlp_layer_types"] = json!(["hash_moe", "hash_moe", "moe"]);
        c["rope_parameters"] = json!({ "compress": { "rope_theta": 7 } });
    });
    assert_eq!(
        found,
        [
            "rope_parameters.compress.rope_theta is 7; expected 160000, as compress_rope_theta is",
            "mlp_layer_types has 2 layers of hash_moe; num_hash_layers is 1",
            "layer_types and compress_ratios differ at layer 1, of ratio 128",
        ]
    );
}

#[test]
fn settings_that_cannot_be_are_named() {
    let folder = Folder::new();
    let long = "x".repeat(1000);
    let found = folder.problems(|c| {
        remove(c, "hc_mult");
        c["head_dim"] = json!("wide");
        c["hidden_size"] = json!(long);
    });
    assert!(
        found.iter().any(|problem| problem == "hc_mult is missing"),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|problem| problem.starts_with("head_dim is \"wide\"")),
        "{found:?}"
    );
    assert!(found.iter().all(|problem| problem.len() < 200), "{found:?}");

    let found = folder.problems(|c| c["model_type"] = json!("llama"));
    assert_eq!(found, ["model_type is llama; expected deepseek_v4"]);
    for (field, value) in [
        ("num_hidden_layers", json!(4_000_000_000u32)),
        ("n_routed_experts", json!(0)),
        ("compress_ratios", json!([0, 7, 0])),
    ] {
        let error = folder
            .open(|c| c[field] = value.clone())
            .map(|_| ())
            .unwrap_err();
        assert!(
            matches!(error, ConvertError::Config { .. }),
            "{field}: {error}"
        );
    }
    let error = folder
        .open(|c| c["vocab_size"] = json!(100))
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, ConvertError::Tensors { .. }), "{error}");
    fs::remove_file(folder.folder.path().join("config.json")).unwrap();
    let opened = Checkpoint::open(folder.folder.path(), &ConvertOptions::default());
    let error = opened.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("config.json"), "{error}");
}
