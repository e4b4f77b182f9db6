//! One model in the metadata and tensor types of each producer: all give the same bits, and what is wrong is said at once.
//!
//! The tiny files carry the union of all keys; here each dialect gets only its own.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failed test"
)]

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_model::arch::deepseek4::CacheRounding;
use ds4_model::weights::Problem;
use ds4_model::{Engine, Error, Options, Precision};

use crate::golden::*;

/// A tensor to be written.
struct Tensor {
    name: String,
    dims: Vec<u64>,
    ty: TensorType,
    bytes: Vec<u8>,
}

/// A file taken apart.
struct Parts {
    metadata: Metadata,
    tensors: Vec<Tensor>,
}

impl Parts {
    fn of(name: &str) -> Self {
        let gguf = Gguf::open(path(&format!("{name}.gguf"))).unwrap();
        let tensors = (0..gguf.tensors().len()).map(|i| {
            let tensor = gguf.tensor_at(i);
            Tensor {
                name: tensor.info.name.to_string(),
                dims: tensor.info.dims.as_slice().to_vec(),
                ty: tensor.info.ty,
                bytes: tensor.bytes.to_vec(),
            }
        });
        Parts {
            metadata: gguf.metadata().clone(),
            tensors: tensors.collect(),
        }
    }

    fn without(mut self, keys: &[&str]) -> Self {
        for key in keys {
            self.metadata.remove(&format!("deepseek4.{key}"));
        }
        self
    }

    fn each(mut self, mut change: impl FnMut(&mut Tensor)) -> Self {
        self.tensors.iter_mut().for_each(&mut change);
        self
    }

    fn gguf(self) -> Gguf {
        let mut plan = Plan::new(self.metadata).unwrap();
        for tensor in &self.tensors {
            plan.add(&tensor.name, &tensor.dims, tensor.ty).unwrap();
        }
        let mut writer = Writer::new(Vec::new(), plan).unwrap();
        for tensor in &self.tensors {
            writer.tensor(&tensor.name, &tensor.bytes).unwrap();
        }
        Gguf::from_vec(writer.finish().unwrap()).unwrap()
    }
}

fn exact() -> Options {
    let mut options = Options::default();
    options.precision = Precision::Exact;
    options.rounding = CacheRounding::None;
    options.threads = 1;
    options
}

fn short_logits(gguf: Gguf, golden: &Golden) -> Vec<f32> {
    let engine = Engine::from_gguf(gguf, exact()).unwrap();
    all_logits(&mut engine.session().unwrap(), &golden.tokens("short.ids"))
}

/// F16 → F32 is exact, so even the bits stay.
fn widen(tensor: &mut Tensor) {
    let halves: Vec<f32> = tensor
        .bytes
        .chunks_exact(2)
        .map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32())
        .collect();
    tensor.bytes = halves.iter().flat_map(|v| v.to_le_bytes()).collect();
    tensor.ty = TensorType::F32;
}

#[test]
fn the_antirez_dialect_opens() {
    // Keys that ds4's loader neither needs nor writes.
    let parts = Parts::of("tiny-f16").without(&[
        "embedding_length_out",
        "expert_gating_func",
        "swiglu_clamp_shexp",
        "feed_forward_length",
        "nextn_predict_layers",
        "rope.scaling.type",
    ]);
    let golden = Golden::open("tiny-f16");
    let error = max_abs_difference(
        &short_logits(parts.gguf(), &golden),
        &golden.f32("short.logits"),
    );
    assert!(error <= golden.tolerance("short_f32_max_abs"), "{error}");
}

#[test]
fn the_llama_cpp_dialect_opens() {
    // llama.cpp leaves the vocabulary size out and keeps hyper-connections, position embeddings and routers in F32.
    let small = [
        "_fn.weight",
        "_ape.weight",
        "ffn_gate_inp.weight",
        "indexer.proj.weight",
    ];
    let parts = Parts::of("tiny-f16")
        .without(&["vocab_size"])
        .each(|tensor| {
            if small.iter().any(|s| tensor.name.ends_with(s)) {
                widen(tensor);
            }
            // Its loader also presents the output projection by group.
            if tensor.name.ends_with("attn_output_a.weight") {
                tensor.dims = vec![tensor.dims[0], tensor.dims[1] / 2, 2];
            }
        });
    let golden = Golden::open("tiny-f16");
    let error = max_abs_difference(
        &short_logits(parts.gguf(), &golden),
        &golden.f32("short.logits"),
    );
    assert!(error <= golden.tolerance("short_f32_max_abs"), "{error}");
}

#[test]
fn older_names_open_and_missing_sizes_come_from_shapes() {
    let older = [
        ("attn_compressor_kv.weight", "attn_compress_kv.weight"),
        ("attn_compressor_norm.weight", "attn_compress_norm.weight"),
        (
            "indexer_compressor_gate.weight",
            "indexer.compress_gate.weight",
        ),
        ("attn_kv.weight", "attn_kv_latent.weight"),
        ("output_hc_fn.weight", "hc_head_fn.weight"),
        ("exp_probs_b.bias", "exp_probs_b.weight"),
    ];
    let parts = Parts::of("tiny-f32").each(|tensor| {
        for (new, old) in older {
            if tensor.name.ends_with(new) {
                tensor.name = tensor.name.replace(new, old);
            }
        }
    });
    let derived = [
        "vocab_size",
        "context_length",
        "attention.q_lora_rank",
        "attention.output_lora_rank",
        "attention.output_group_count",
        "attention.compress_ratios",
        "attention.compress_rope_freq_base",
        "expert_count",
        "expert_shared_count",
        "expert_feed_forward_length",
        "hash_layer_count",
        "hyper_connection.count",
        "hyper_connection.sinkhorn_iterations",
        "rope.scaling.factor",
    ];
    let golden = Golden::open("tiny-f32");
    let whole = short_logits(Gguf::open(golden.gguf()).unwrap(), &golden);
    let engine = Engine::from_gguf(parts.without(&derived).gguf(), exact()).unwrap();
    let got = all_logits(&mut engine.session().unwrap(), &golden.tokens("short.ids"));
    let error = max_abs_difference(&got, &whole);
    assert!(bits(&got) == bits(&whole), "off by {error}");
}

#[test]
fn all_wrong_tensors_are_named_in_one_error() {
    let mut parts = Parts::of("tiny-f32");
    parts
        .tensors
        .retain(|t| t.name != "blk.1.attn_sinks.weight" && t.name != "output_norm.weight");
    let parts = parts.each(|tensor| {
        if tensor.name == "blk.2.attn_q_a.weight" {
            tensor.dims = vec![tensor.dims[0] / 2, tensor.dims[1] * 2];
        }
        if tensor.name == "blk.0.ffn_gate_tid2eid.weight" {
            tensor.bytes[..4].copy_from_slice(&99i32.to_le_bytes());
        }
        if tensor.name == "blk.0.attn_norm.weight" {
            tensor.bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
        }
    });
    let Err(Error::Weights(error)) = Engine::from_gguf(parts.gguf(), exact()) else {
        panic!("a broken file opened");
    };
    let text = error.to_string();
    for name in [
        "blk.1.attn_sinks",
        "output_norm",
        "blk.2.attn_q_a",
        "blk.0.ffn_gate_tid2eid",
        "blk.0.attn_norm",
    ] {
        assert!(text.contains(name), "{name} is not named in: {text}");
    }
    assert_eq!(error.problems.len(), 5);
    let content = |p: &&Problem| matches!(p, Problem::Content { .. });
    assert_eq!(error.problems.iter().filter(content).count(), 2);
}

#[test]
fn metadata_that_cannot_be_run_is_refused_by_key() {
    let refuse = |key: &str, value: ds4_gguf::Value| {
        let mut parts = Parts::of("tiny-f32");
        let key = if key == "general.architecture" {
            key.to_owned()
        } else {
            format!("deepseek4.{key}")
        };
        parts.metadata.set(&key, value);
        let error = Engine::from_gguf(parts.gguf(), exact())
            .err()
            .unwrap_or_else(|| panic!("{key} was accepted"));
        assert!(error.to_string().contains(&key), "{key}: {error}");
    };
    refuse("general.architecture", "deepseek41".into());
    for key in [
        "block_count",
        "attention.head_count",
        "attention.sliding_window",
        "expert_used_count",
        "hyper_connection.count",
        "rope.dimension_count",
        "attention.output_group_count",
    ] {
        refuse(key, 0u32.into());
        refuse(key, u32::MAX.into());
    }
    refuse("attention.head_count_kv", 2u32.into());
    refuse("expert_gating_func", 1u32.into());
    refuse("expert_weights_norm", false.into());
    refuse("rope.scaling.type", "linear".into());
    refuse(
        "attention.compress_ratios",
        ds4_gguf::Value::from(vec![0u32, 4, 64, 4]),
    );
    refuse(
        "attention.compress_ratios",
        ds4_gguf::Value::from(vec![0u32]),
    );
    refuse("attention.layer_norm_rms_epsilon", f32::NAN.into());
    refuse("expert_weights_scale", "much".into());
}
