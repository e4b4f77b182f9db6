//! The header of a published DeepSeek-V4-Flash file: every key, all 1328 tensors with their real shapes and types, a
//! vocabulary of 129 280 tokens and 127 741 merges. Behind it the 86.7 GB of data are a hole in a sparse file.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use ds4_gguf::TensorType::{self, F16, F32, I32, Iq2Xxs, Q2K, Q8_0};
use ds4_gguf::{ArrayBuf, Metadata, Plan, Writer};

const LAYERS: u64 = 43;
const HASH_LAYERS: u64 = 3;
/// Hidden width, vocabulary, heads, head width, query rank.
const D: u64 = 4096;
const V: u64 = 129_280;
const H: u64 = 64;
const HEAD: u64 = 512;
const RQ: u64 = 1024;
/// Output groups and their rank, experts, experts used, expert width.
const G: u64 = 8;
const RO: u64 = 1024;
const E: u64 = 256;
const K: u64 = 6;
const F: u64 = 2048;
/// Streams of the hyper-connections; indexer heads and their width.
const C: u64 = 4;
const HI: u64 = 64;
const DI: u64 = 128;

/// Layers 0 and 1 see only their window; then even layers compress by 4, odd ones by 128.
fn ratio(layer: u64) -> u64 {
    match layer {
        0 | 1 => 0,
        even if even % 2 == 0 => 4,
        _ => 128,
    }
}

fn metadata() -> Metadata {
    let mut m = Metadata::new();
    m.set("general.architecture", "deepseek4");
    m.set("general.name", "DeepSeek-V4-Flash");
    m.set("general.quantization_version", 2u32);
    let numbers: [(&str, u64); 24] = [
        ("block_count", LAYERS),
        ("context_length", 1_048_576),
        ("embedding_length", D),
        ("vocab_size", V),
        ("attention.head_count", H),
        ("attention.head_count_kv", 1),
        ("attention.key_length", HEAD),
        ("attention.value_length", HEAD),
        ("attention.q_lora_rank", RQ),
        ("attention.output_lora_rank", RO),
        ("attention.output_group_count", G),
        ("attention.sliding_window", 128),
        ("attention.indexer.head_count", HI),
        ("attention.indexer.key_length", DI),
        ("attention.indexer.top_k", 512),
        ("rope.dimension_count", 64),
        ("expert_count", E),
        ("expert_used_count", K),
        ("expert_shared_count", 1),
        ("expert_feed_forward_length", F),
        ("expert_gating_func", 4),
        ("hash_layer_count", HASH_LAYERS),
        ("hyper_connection.count", C),
        ("hyper_connection.sinkhorn_iterations", 20),
    ];
    for (key, n) in numbers {
        m.set(&format!("deepseek4.{key}"), n as u32);
    }
    let floats: [(&str, f32); 6] = [
        ("attention.compress_rope_freq_base", 160_000.0),
        ("attention.layer_norm_rms_epsilon", 1e-6),
        ("rope.freq_base", 10_000.0),
        ("rope.scaling.factor", 16.0),
        ("expert_weights_scale", 1.5),
        ("hyper_connection.epsilon", 1e-6),
    ];
    for (key, n) in floats {
        m.set(&format!("deepseek4.{key}"), n);
    }
    m.set("deepseek4.rope.scaling.type", "yarn");
    m.set("deepseek4.expert_weights_norm", true);
    m.set(
        "deepseek4.attention.compress_ratios",
        (0..LAYERS).map(|i| ratio(i) as i32).collect::<Vec<_>>(),
    );
    m.set("deepseek4.swiglu_clamp_exp", vec![10.0f32; LAYERS as usize]);
    m.set("tokenizer.ggml.model", "gpt2");
    m.set("tokenizer.ggml.pre", "joyai-llm");
    m.set(
        "tokenizer.ggml.tokens",
        ArrayBuf::strings((0..V).map(|i| format!("Ġtok{i}"))),
    );
    m.set("tokenizer.ggml.token_type", vec![1i32; V as usize]);
    m.set(
        "tokenizer.ggml.merges",
        ArrayBuf::strings((0..127_741).map(|i| format!("Ġt{i} ok{i}"))),
    );
    m.set("tokenizer.ggml.bos_token_id", 0u32);
    m.set("tokenizer.ggml.eos_token_id", 1u32);
    m.set("tokenizer.ggml.padding_token_id", 2u32);
    m.set(
        "tokenizer.chat_template",
        "{% for message in messages %}".repeat(100),
    );
    m
}

/// Names, shapes and types of one layer.
fn layer(i: u64) -> Vec<(&'static str, Vec<u64>, TensorType)> {
    let hyper = 2 * C + C * C;
    let mut tensors = vec![
        ("hc_attn_fn.weight", vec![C * D, hyper], F16),
        ("hc_attn_base.weight", vec![hyper], F32),
        ("hc_attn_scale.weight", vec![3], F32),
        ("hc_ffn_fn.weight", vec![C * D, hyper], F16),
        ("hc_ffn_base.weight", vec![hyper], F32),
        ("hc_ffn_scale.weight", vec![3], F32),
        ("attn_norm.weight", vec![D], F32),
        ("ffn_norm.weight", vec![D], F32),
        ("attn_q_a.weight", vec![D, RQ], Q8_0),
        ("attn_q_a_norm.weight", vec![RQ], F32),
        ("attn_q_b.weight", vec![RQ, H * HEAD], Q8_0),
        ("attn_kv.weight", vec![D, HEAD], Q8_0),
        ("attn_kv_a_norm.weight", vec![HEAD], F32),
        ("attn_sinks.weight", vec![H], F32),
        ("attn_output_a.weight", vec![H * HEAD / G, G * RO], Q8_0),
        ("attn_output_b.weight", vec![G * RO, D], Q8_0),
        ("ffn_gate_inp.weight", vec![D, E], F16),
        ("ffn_gate_exps.weight", vec![D, F, E], Iq2Xxs),
        ("ffn_up_exps.weight", vec![D, F, E], Iq2Xxs),
        ("ffn_down_exps.weight", vec![F, D, E], Q2K),
        ("ffn_gate_shexp.weight", vec![D, F], Q8_0),
        ("ffn_up_shexp.weight", vec![D, F], Q8_0),
        ("ffn_down_shexp.weight", vec![F, D], Q8_0),
    ];
    if i < HASH_LAYERS {
        tensors.push(("ffn_gate_tid2eid.weight", vec![K, V], I32));
    } else {
        tensors.push(("exp_probs_b.bias", vec![E], F32));
    }
    let ratio = ratio(i);
    if ratio != 0 {
        // Windows that compress by 4 overlap: two sets of columns.
        let wide = if ratio == 4 { 2 * HEAD } else { HEAD };
        tensors.extend([
            ("attn_compressor_kv.weight", vec![D, wide], F16),
            ("attn_compressor_gate.weight", vec![D, wide], F16),
            ("attn_compressor_ape.weight", vec![wide, ratio], F16),
            ("attn_compressor_norm.weight", vec![HEAD], F32),
        ]);
    }
    if ratio == 4 {
        tensors.extend([
            ("indexer.attn_q_b.weight", vec![RQ, HI * DI], F16),
            ("indexer.proj.weight", vec![D, HI], F16),
            ("indexer_compressor_kv.weight", vec![D, 2 * DI], F16),
            ("indexer_compressor_gate.weight", vec![D, 2 * DI], F16),
            ("indexer_compressor_ape.weight", vec![2 * DI, 4], F16),
            ("indexer_compressor_norm.weight", vec![DI], F32),
        ]);
    }
    tensors
}

fn plan() -> Plan {
    let mut plan = Plan::new(metadata()).expect("no alignment is set");
    let mut add = |name: &str, dims: &[u64], ty| {
        plan.add(name, dims, ty)
            .expect("real shapes fit their types")
    };
    add("token_embd.weight", &[D, V], F16);
    for i in 0..LAYERS {
        for (name, dims, ty) in layer(i) {
            add(&format!("blk.{i}.{name}"), &dims, ty);
        }
    }
    add("output_norm.weight", &[D], F32);
    add("output.weight", &[D, V], Q8_0);
    add("output_hc_fn.weight", &[C * D, C], F16);
    add("output_hc_base.weight", &[C], F32);
    add("output_hc_scale.weight", &[1], F32);
    plan
}

/// A sparse file with that header; deleted when dropped.
pub(crate) struct Sparse(PathBuf);

impl Sparse {
    /// Write the header into `dir` and stretch the file to its planned length.
    pub(crate) fn create(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(format!("flash-{}.gguf", std::process::id()));
        let file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let sparse = Self(path);
        let writer = Writer::new(&file, plan()).map_err(std::io::Error::other)?;
        file.set_len(writer.file_bytes())?;
        Ok(sparse)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // A leftover is a hole under `target/`; the next `cargo clean` takes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Resident memory of this process now and at its peak in KiB, where the system tells.
pub(crate) fn resident_kib() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((kib("VmRSS:")?, kib("VmHWM:")?))
}
