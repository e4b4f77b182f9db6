//! A checkpoint folder made from a GGUF: the mapping the other way round, written down a second time.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use ds4_gguf::{Gguf, Strings, TensorType};
use serde_json::{Map, Value, json};

/// A tensor of a checkpoint.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

/// Whose names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Transformers,
    Published,
}

pub(crate) fn f32s(gguf: &Gguf, name: &str) -> Vec<f32> {
    let tensor = gguf.tensor(name).unwrap();
    let codec = ds4_quant::codec(tensor.info.ty).unwrap();
    let mut out = vec![0.0; tensor.info.dims.elements() as usize];
    codec.decode(tensor.bytes, &mut out).unwrap();
    out
}

/// A tensor in its own float type, or in F16 where it is packed.
fn float(gguf: &Gguf, from: &str, name: String) -> Tensor {
    let tensor = gguf.tensor(from).unwrap();
    let shape = tensor
        .info
        .dims
        .as_slice()
        .iter()
        .rev()
        .map(|&n| n as usize);
    let (dtype, bytes) = match tensor.info.ty {
        TensorType::F32 => ("F32", tensor.bytes.to_vec()),
        TensorType::F16 => ("F16", tensor.bytes.to_vec()),
        TensorType::I32 => ("I32", tensor.bytes.to_vec()),
        _ => {
            let halves = f32s(gguf, from).into_iter().map(half::f16::from_f32);
            ("F16", halves.flat_map(half::f16::to_le_bytes).collect())
        }
    };
    Tensor {
        name,
        dtype,
        shape: shape.collect(),
        bytes,
    }
}

/// Every tensor of `gguf` under the names of a checkpoint.
pub(crate) fn tensors(gguf: &Gguf, names: Names) -> Vec<Tensor> {
    let mut out = Vec::new();
    let theirs = names == Names::Transformers;
    for info in gguf.tensors() {
        let name = &*info.name;
        let Some((layer, part)) = name
            .strip_prefix("blk.")
            .and_then(|rest| rest.split_once('.'))
        else {
            let to = match (name, theirs) {
                ("token_embd.weight", true) => "model.embed_tokens.weight".to_owned(),
                ("token_embd.weight", false) => "embed.weight".to_owned(),
                ("output_norm.weight", true) => "model.norm.weight".to_owned(),
                ("output_norm.weight", false) => "norm.weight".to_owned(),
                ("output.weight", true) => "lm_head.weight".to_owned(),
                ("output.weight", false) => "head.weight".to_owned(),
                (hc, _) => {
                    let what = hc
                        .strip_prefix("output_hc_")
                        .unwrap()
                        .strip_suffix(".weight")
                        .unwrap();
                    if theirs {
                        format!("model.hc_head.hc_{what}")
                    } else {
                        format!("hc_head_{what}")
                    }
                }
            };
            out.push(float(gguf, name, to));
            continue;
        };
        let prefix = if theirs {
            format!("model.layers.{layer}.")
        } else {
            format!("layers.{layer}.")
        };
        let stem = part.strip_suffix(".weight").unwrap_or(part);
        if let Some(which) = stem
            .strip_prefix("ffn_")
            .and_then(|s| s.strip_suffix("_exps"))
        {
            experts(gguf, layer, which, names, &prefix, &mut out);
            continue;
        }
        let to = renamed(stem, theirs);
        let mut tensor = float(gguf, name, format!("{prefix}{to}"));
        if stem == "ffn_gate_tid2eid" {
            let ids = gguf.tensor(name).unwrap().bytes.as_chunks::<4>().0.iter();
            let wide = ids.flat_map(|b| i64::from(i32::from_le_bytes(*b)).to_le_bytes());
            (tensor.dtype, tensor.bytes) = ("I64", wide.collect());
        }
        out.push(tensor);
    }
    out
}

fn renamed(stem: &str, theirs: bool) -> String {
    let pairs = [
        ("attn_norm", "input_layernorm.weight", "attn_norm.weight"),
        (
            "ffn_norm",
            "post_attention_layernorm.weight",
            "ffn_norm.weight",
        ),
        ("attn_q_a", "self_attn.q_a_proj.weight", "attn.wq_a.weight"),
        (
            "attn_q_a_norm",
            "self_attn.q_a_norm.weight",
            "attn.q_norm.weight",
        ),
        ("attn_q_b", "self_attn.q_b_proj.weight", "attn.wq_b.weight"),
        ("attn_kv", "self_attn.kv_proj.weight", "attn.wkv.weight"),
        (
            "attn_kv_a_norm",
            "self_attn.kv_norm.weight",
            "attn.kv_norm.weight",
        ),
        ("attn_sinks", "self_attn.sinks", "attn.attn_sink"),
        (
            "attn_output_a",
            "self_attn.o_a_proj.weight",
            "attn.wo_a.weight",
        ),
        (
            "attn_output_b",
            "self_attn.o_b_proj.weight",
            "attn.wo_b.weight",
        ),
        (
            "attn_compressor_kv",
            "self_attn.compressor.kv_proj.weight",
            "attn.compressor.wkv.weight",
        ),
        (
            "attn_compressor_gate",
            "self_attn.compressor.gate_proj.weight",
            "attn.compressor.wgate.weight",
        ),
        (
            "attn_compressor_ape",
            "self_attn.compressor.position_bias",
            "attn.compressor.ape",
        ),
        (
            "attn_compressor_norm",
            "self_attn.compressor.kv_norm.weight",
            "attn.compressor.norm.weight",
        ),
        (
            "indexer_compressor_kv",
            "self_attn.compressor.indexer.kv_proj.weight",
            "attn.indexer.compressor.wkv.weight",
        ),
        (
            "indexer_compressor_gate",
            "self_attn.compressor.indexer.gate_proj.weight",
            "attn.indexer.compressor.wgate.weight",
        ),
        (
            "indexer_compressor_ape",
            "self_attn.compressor.indexer.position_bias",
            "attn.indexer.compressor.ape",
        ),
        (
            "indexer_compressor_norm",
            "self_attn.compressor.indexer.kv_norm.weight",
            "attn.indexer.compressor.norm.weight",
        ),
        (
            "indexer.attn_q_b",
            "self_attn.compressor.indexer.q_b_proj.weight",
            "attn.indexer.wq_b.weight",
        ),
        (
            "indexer.proj",
            "self_attn.compressor.indexer.scorer.weights_proj.weight",
            "attn.indexer.weights_proj.weight",
        ),
        ("ffn_gate_inp", "mlp.gate.weight", "ffn.gate.weight"),
        ("ffn_gate_tid2eid", "mlp.gate.tid2eid", "ffn.gate.tid2eid"),
        (
            "exp_probs_b.bias",
            "mlp.gate.e_score_correction_bias",
            "ffn.gate.bias",
        ),
        (
            "ffn_gate_shexp",
            "mlp.shared_experts.gate_proj.weight",
            "ffn.shared_experts.w1.weight",
        ),
        (
            "ffn_up_shexp",
            "mlp.shared_experts.up_proj.weight",
            "ffn.shared_experts.w3.weight",
        ),
        (
            "ffn_down_shexp",
            "mlp.shared_experts.down_proj.weight",
            "ffn.shared_experts.w2.weight",
        ),
    ];
    if let Some((_, their, published)) = pairs.iter().find(|(ours, ..)| *ours == stem) {
        return if theirs { *their } else { *published }.to_owned();
    }
    let hc = stem.strip_prefix("hc_").unwrap_or_else(|| panic!("{stem}"));
    let (part, what) = hc.split_once('_').unwrap();
    if theirs {
        format!("{part}_hc.{what}")
    } else {
        format!("hc_{part}_{what}")
    }
}

/// Stacked with gate and up as one under the names of transformers, one matrix an expert under the published names.
fn experts(
    gguf: &Gguf,
    layer: &str,
    which: &str,
    names: Names,
    prefix: &str,
    out: &mut Vec<Tensor>,
) {
    let tensor = |which: &str| {
        float(
            gguf,
            &format!("blk.{layer}.ffn_{which}_exps.weight"),
            String::new(),
        )
    };
    let this = tensor(which);
    let [count, rows, cols] = this.shape[..] else {
        panic!()
    };
    let size = this.bytes.len() / count;
    if names == Names::Published {
        let published = match which {
            "gate" => "w1",
            "up" => "w3",
            _ => "w2",
        };
        for (e, bytes) in this.bytes.chunks_exact(size).enumerate() {
            out.push(Tensor {
                name: format!("{prefix}ffn.experts.{e}.{published}.weight"),
                dtype: this.dtype,
                shape: vec![rows, cols],
                bytes: bytes.to_vec(),
            });
        }
        return;
    }
    match which {
        "up" => {}
        "gate" => {
            let up = tensor("up");
            let both = this
                .bytes
                .chunks_exact(size)
                .zip(up.bytes.chunks_exact(size));
            out.push(Tensor {
                name: format!("{prefix}mlp.experts.gate_up_proj"),
                dtype: this.dtype,
                shape: vec![count, 2 * rows, cols],
                bytes: both.flat_map(|(g, u)| [g, u].concat()).collect(),
            });
        }
        _ => out.push(Tensor {
            name: format!("{prefix}mlp.experts.down_proj"),
            ..this
        }),
    }
}

/// One file.
pub(crate) fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!({ "format": "pt" }));
    let mut data = Vec::new();
    for t in tensors {
        let start = data.len();
        data.extend_from_slice(&t.bytes);
        header.insert(
            t.name.clone(),
            json!({ "dtype": t.dtype, "shape": t.shape, "data_offsets": [start, data.len()] }),
        );
    }
    with_header(&Value::Object(header).to_string(), &data)
}

pub(crate) fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

/// A whole folder with the weights in `shards` files.
pub(crate) fn write(folder: &Path, gguf: &Gguf, tensors: &[Tensor], shards: usize) {
    fs::write(folder.join("config.json"), config(gguf).to_string()).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer(gguf).to_string()).unwrap();
    if shards == 1 {
        fs::write(folder.join("model.safetensors"), safetensors(tensors)).unwrap();
        return;
    }
    let mut map = Map::new();
    for (i, part) in tensors.chunks(tensors.len().div_ceil(shards)).enumerate() {
        let name = format!("model-{:05}-of-{shards:05}.safetensors", i + 1);
        fs::write(folder.join(&name), safetensors(part)).unwrap();
        map.extend(
            part.iter()
                .map(|t| (t.name.clone(), Value::from(name.clone()))),
        );
    }
    let index = json!({ "metadata": { "total_size": 0 }, "weight_map": map });
    fs::write(
        folder.join("model.safetensors.index.json"),
        index.to_string(),
    )
    .unwrap();
}

pub(crate) fn config(gguf: &Gguf) -> Value {
    let meta = gguf.metadata();
    let int = |key: &str| meta.get::<u64>(&format!("deepseek4.{key}")).unwrap();
    let float = |key: &str| meta.get::<f64>(&format!("deepseek4.{key}")).unwrap();
    json!({
        "model_type": "deepseek_v4",
        "vocab_size": int("vocab_size"),
        "hidden_size": int("embedding_length"),
        "moe_intermediate_size": int("expert_feed_forward_length"),
        "num_hidden_layers": int("block_count"),
        "num_attention_heads": int("attention.head_count"),
        "num_key_value_heads": 1,
        "head_dim": int("attention.key_length"),
        "q_lora_rank": int("attention.q_lora_rank"),
        "o_lora_rank": int("attention.output_lora_rank"),
        "o_groups": int("attention.output_group_count"),
        "num_experts_per_tok": int("expert_used_count"),
        "n_routed_experts": int("expert_count"),
        "n_shared_experts": int("expert_shared_count"),
        "scoring_func": "sqrtsoftplus",
        "norm_topk_prob": true,
        "routed_scaling_factor": float("expert_weights_scale"),
        "max_position_embeddings": int("context_length"),
        "rope_theta": float("rope.freq_base"),
        "compress_rope_theta": float("attention.compress_rope_freq_base"),
        "qk_rope_head_dim": int("rope.dimension_count"),
        "compress_ratios": meta.get::<Vec<i64>>("deepseek4.attention.compress_ratios").unwrap(),
        "num_hash_layers": int("hash_layer_count"),
        "hc_mult": int("hyper_connection.count"),
        "hc_sinkhorn_iters": int("hyper_connection.sinkhorn_iterations"),
        "hc_eps": float("hyper_connection.epsilon"),
        "swiglu_limit": meta.get::<Vec<f64>>("deepseek4.swiglu_clamp_exp").unwrap()[0],
        "sliding_window": int("attention.sliding_window"),
        "index_n_heads": int("attention.indexer.head_count"),
        "index_head_dim": int("attention.indexer.key_length"),
        "index_topk": int("attention.indexer.top_k"),
        "rms_norm_eps": float("attention.layer_norm_rms_epsilon"),
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
        "rope_scaling": {
            "type": "yarn",
            "factor": float("rope.scaling.factor"),
            "original_max_position_embeddings": int("rope.scaling.original_context_length"),
            "beta_fast": float("rope.scaling.yarn_beta_fast"),
            "beta_slow": float("rope.scaling.yarn_beta_slow"),
        },
    })
}

/// The splitting rule of the published tokenizer; its file is large, and read once.
fn splitting_rule() -> &'static Value {
    static RULE: OnceLock<Value> = OnceLock::new();
    RULE.get_or_init(|| {
        let packed = include_bytes!("../data/tokenizer/deepseek-v4.tokenizer.json.gz");
        let unpacked = flate2::read::GzDecoder::new(&packed[..]);
        let published: Value = serde_json::from_reader(unpacked).unwrap();
        published["pre_tokenizer"].clone()
    })
}

/// The tokenizer of a GGUF under the splitting rule of the published one.
fn tokenizer(gguf: &Gguf) -> Value {
    let meta = gguf.metadata();
    let texts = |key: &str| -> Vec<String> {
        let strings = meta.get::<Strings<'_>>(key).unwrap();
        strings
            .map(|s| String::from_utf8(s.to_vec()).unwrap())
            .collect()
    };
    let types: Vec<i64> = meta.get("tokenizer.ggml.token_type").unwrap();
    let (mut vocab, mut added) = (Map::new(), Vec::new());
    for ((id, token), ty) in texts("tokenizer.ggml.tokens")
        .into_iter()
        .enumerate()
        .zip(types)
    {
        match ty {
            3 | 4 => added.push(json!({ "id": id, "content": token, "special": ty == 3 })),
            _ => drop(vocab.insert(token, id.into())),
        }
    }
    json!({
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": splitting_rule(),
        "model": { "type": "BPE", "vocab": vocab, "merges": texts("tokenizer.ggml.merges") },
    })
}
