//! V4-Flash as a list: its metadata and its tensors, layer by layer.

use ds4_gguf::{ArrayBuf, Metadata};

use super::fill::Content;

/// Layers of the whole model.
pub(super) const LAYERS: u32 = 43;
const HIDDEN: u64 = 4096;
const HEADS: u64 = 64;
const HEAD: u64 = 512;
const QUERY_RANK: u64 = 1024;
const OUTPUT_GROUPS: u64 = 8;
const OUTPUT_RANK: u64 = 1024;
const EXPERTS: u64 = 256;
const EXPERTS_A_TOKEN: u64 = 6;
const EXPERT_WIDTH: u64 = 2048;
const VOCABULARY: u64 = 129_280;
const STREAMS: u64 = 4;
const INDEX_HEADS: u64 = 64;
const INDEX_HEAD: u64 = 128;
const HASH_LAYERS: u32 = 3;

/// One tensor: its name, its extents (fastest first) and what fills it.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
    pub(super) content: Content,
}

/// Rows attention compresses into one, by layer: 0, 0, then 4 and 128 in turn.
fn ratio(layer: u32) -> u64 {
    match layer {
        0 | 1 => 0,
        _ if layer.is_multiple_of(2) => 4,
        _ => 128,
    }
}

/// Layers routed by token: three, and never all.
fn hash_layers(layers: u32) -> u32 {
    HASH_LAYERS.min(layers - 1)
}

/// Metadata of a file with the first `layers` layers; keys as llama.cpp writes them.
pub(super) fn metadata(layers: u32) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "deepseek4");
    metadata.set("general.name", "synthetic V4 Flash");
    metadata.set("general.type", "model");
    metadata.set("general.file_type", 19u32);
    let mut set = |key: &str, value: u64| {
        metadata.set(
            &format!("deepseek4.{key}"),
            u32::try_from(value).expect("the constants are small"),
        )
    };
    set("vocab_size", VOCABULARY);
    set("context_length", 1 << 20);
    set("embedding_length", HIDDEN);
    set("embedding_length_out", HIDDEN * STREAMS);
    set("block_count", u64::from(layers));
    set("feed_forward_length", EXPERT_WIDTH);
    set("attention.head_count", HEADS);
    set("attention.head_count_kv", 1);
    set("attention.key_length", HEAD);
    set("attention.value_length", HEAD);
    set("attention.q_lora_rank", QUERY_RANK);
    set("attention.output_lora_rank", OUTPUT_RANK);
    set("attention.output_group_count", OUTPUT_GROUPS);
    set("attention.sliding_window", 128);
    set("attention.indexer.head_count", INDEX_HEADS);
    set("attention.indexer.key_length", INDEX_HEAD);
    set("attention.indexer.top_k", 512);
    set("rope.dimension_count", 64);
    set("rope.scaling.original_context_length", 65536);
    set("expert_count", EXPERTS);
    set("expert_used_count", EXPERTS_A_TOKEN);
    set("expert_shared_count", 1);
    set("expert_feed_forward_length", EXPERT_WIDTH);
    set("expert_gating_func", 4);
    set("hash_layer_count", u64::from(hash_layers(layers)));
    set("hyper_connection.count", STREAMS);
    set("hyper_connection.sinkhorn_iterations", 20);
    let mut set = |key: &str, value: f32| metadata.set(&format!("deepseek4.{key}"), value);
    set("attention.layer_norm_rms_epsilon", 1e-6);
    set("hyper_connection.epsilon", 1e-6);
    set("rope.freq_base", 10_000.0);
    set("rope.scaling.factor", 16.0);
    set("rope.scaling.yarn_beta_fast", 32.0);
    set("rope.scaling.yarn_beta_slow", 1.0);
    set("attention.compress_rope_freq_base", 160_000.0);
    set("expert_weights_scale", 1.5);
    metadata.set("deepseek4.rope.scaling.type", "yarn");
    metadata.set("deepseek4.expert_weights_norm", true);
    let ratios: Vec<i32> = (0..layers).map(|l| ratio(l) as i32).collect();
    metadata.set("deepseek4.attention.compress_ratios", ratios);
    metadata.set("deepseek4.swiglu_clamp_exp", vec![10f32; layers as usize]);
    metadata.set("deepseek4.swiglu_clamp_shexp", vec![10f32; layers as usize]);
    tokenizer(&mut metadata);
    metadata
}

/// The 256 bytes, the control tokens at their places, and placeholders: it splits any text into bytes.
fn tokenizer(metadata: &mut Metadata) {
    const CONTROL: [(usize, &str); 8] = [
        (0, "<｜begin▁of▁sentence｜>"),
        (1, "<｜end▁of▁sentence｜>"),
        (2, "<｜▁pad▁｜>"),
        (128_803, "<｜User｜>"),
        (128_804, "<｜Assistant｜>"),
        (128_821, "<think>"),
        (128_822, "</think>"),
        (128_825, "｜DSML｜"),
    ];
    const FIRST_BYTE: usize = 3;
    let mut tokens: Vec<String> = (0..VOCABULARY).map(|id| format!("<unused {id}>")).collect();
    let mut types = vec![5i32; tokens.len()];
    for (id, text) in CONTROL {
        text.clone_into(&mut tokens[id]);
        types[id] = 3;
    }
    let alphabet = byte_alphabet();
    for (byte, letter) in alphabet.iter().enumerate() {
        tokens[FIRST_BYTE + byte] = letter.to_string();
        types[FIRST_BYTE + byte] = 1;
    }
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "joyai-llm");
    metadata.set("tokenizer.ggml.tokens", ArrayBuf::strings(&tokens));
    metadata.set("tokenizer.ggml.token_type", types);
    // A table without merges is refused by some readers; this one joins two letters into a placeholder's text.
    let (space, a) = (alphabet[usize::from(b' ')], alphabet[usize::from(b'a')]);
    metadata.set(
        "tokenizer.ggml.merges",
        ArrayBuf::strings([format!("{space} {a}")]),
    );
    metadata.set("tokenizer.ggml.bos_token_id", 0u32);
    metadata.set("tokenizer.ggml.eos_token_id", 1u32);
    metadata.set("tokenizer.ggml.padding_token_id", 2u32);
    metadata.set("tokenizer.ggml.add_bos_token", false);
}

/// The printable letter that stands for each byte in a byte-level vocabulary.
fn byte_alphabet() -> [char; 256] {
    let mut next = 256u32;
    std::array::from_fn(|byte| match byte as u8 {
        printable @ (33..=126 | 161..=172 | 174..=255) => char::from(printable),
        _ => {
            next += 1;
            char::from_u32(next - 1).expect("the letters from U+0100 on are characters")
        }
    })
}

/// Every tensor of the first `layers` layers, in file order.
pub(super) fn tensors(layers: u32) -> Vec<Tensor> {
    let mut all = Vec::new();
    let mut add = |name: &str, dims: &[u64], content: Content| {
        all.push(Tensor {
            name: name.to_owned(),
            dims: dims.to_vec(),
            content,
        })
    };
    add(
        "token_embd.weight",
        &[HIDDEN, VOCABULARY],
        Content::F16 { sigma: 1.0 },
    );
    add("output_norm.weight", &[HIDDEN], Content::NORM);
    add(
        "output.weight",
        &[HIDDEN, VOCABULARY],
        Content::q8_0(HIDDEN),
    );
    add(
        "output_hc_fn.weight",
        &[STREAMS * HIDDEN, STREAMS],
        Content::f16(STREAMS * HIDDEN),
    );
    add("output_hc_base.weight", &[STREAMS], Content::SMALL);
    add("output_hc_scale.weight", &[1], Content::NORM);
    for layer in 0..layers {
        let mut add = |name: &str, dims: &[u64], content: Content| {
            add(&format!("blk.{layer}.{name}"), dims, content)
        };
        hyper_connections(&mut add);
        attention(&mut add, ratio(layer));
        experts(&mut add, layer < hash_layers(layers));
    }
    all
}

type Add<'a> = &'a mut dyn FnMut(&str, &[u64], Content);

fn hyper_connections(add: Add<'_>) {
    let weights = 2 * STREAMS + STREAMS * STREAMS;
    for part in ["attn", "ffn"] {
        add(
            &format!("hc_{part}_fn.weight"),
            &[STREAMS * HIDDEN, weights],
            Content::f16(STREAMS * HIDDEN),
        );
        add(
            &format!("hc_{part}_base.weight"),
            &[weights],
            Content::SMALL,
        );
        add(&format!("hc_{part}_scale.weight"), &[3], Content::NORM);
    }
}

fn attention(add: Add<'_>, ratio: u64) {
    let group = HEADS * HEAD / OUTPUT_GROUPS;
    let low = OUTPUT_GROUPS * OUTPUT_RANK;
    add("attn_norm.weight", &[HIDDEN], Content::NORM);
    add(
        "attn_q_a.weight",
        &[HIDDEN, QUERY_RANK],
        Content::q8_0(HIDDEN),
    );
    add("attn_q_a_norm.weight", &[QUERY_RANK], Content::NORM);
    add(
        "attn_q_b.weight",
        &[QUERY_RANK, HEADS * HEAD],
        Content::q8_0(QUERY_RANK),
    );
    add("attn_kv.weight", &[HIDDEN, HEAD], Content::q8_0(HIDDEN));
    add("attn_kv_a_norm.weight", &[HEAD], Content::NORM);
    add("attn_sinks.weight", &[HEADS], Content::SMALL);
    add("attn_output_a.weight", &[group, low], Content::q8_0(group));
    add("attn_output_b.weight", &[low, HIDDEN], Content::q8_0(low));
    if ratio != 0 {
        // Windows of ratio 4 overlap: their compressor carries two rows.
        let width = if ratio == 4 { 2 * HEAD } else { HEAD };
        compressor(add, "attn_compressor", width, HEAD, ratio);
    }
    if ratio == 4 {
        add(
            "indexer.attn_q_b.weight",
            &[QUERY_RANK, INDEX_HEADS * INDEX_HEAD],
            Content::f16(QUERY_RANK),
        );
        add(
            "indexer.proj.weight",
            &[HIDDEN, INDEX_HEADS],
            Content::f16(HIDDEN),
        );
        compressor(add, "indexer_compressor", 2 * INDEX_HEAD, INDEX_HEAD, ratio);
    }
}

fn compressor(add: Add<'_>, name: &str, width: u64, head: u64, ratio: u64) {
    add(
        &format!("{name}_kv.weight"),
        &[HIDDEN, width],
        Content::f16(HIDDEN),
    );
    add(
        &format!("{name}_gate.weight"),
        &[HIDDEN, width],
        Content::f16(HIDDEN),
    );
    add(
        &format!("{name}_ape.weight"),
        &[width, ratio],
        Content::f16(width),
    );
    add(&format!("{name}_norm.weight"), &[head], Content::NORM);
}

fn experts(add: Add<'_>, by_hash: bool) {
    add("ffn_norm.weight", &[HIDDEN], Content::NORM);
    add(
        "ffn_gate_inp.weight",
        &[HIDDEN, EXPERTS],
        Content::f16(HIDDEN),
    );
    if by_hash {
        add(
            "ffn_gate_tid2eid.weight",
            &[EXPERTS_A_TOKEN, VOCABULARY],
            Content::Experts {
                count: EXPERTS as u32,
                used: EXPERTS_A_TOKEN as u32,
            },
        );
    } else {
        add("exp_probs_b.bias", &[EXPERTS], Content::SMALL);
    }
    add(
        "ffn_gate_exps.weight",
        &[HIDDEN, EXPERT_WIDTH, EXPERTS],
        Content::iq2_xxs(HIDDEN),
    );
    add(
        "ffn_up_exps.weight",
        &[HIDDEN, EXPERT_WIDTH, EXPERTS],
        Content::iq2_xxs(HIDDEN),
    );
    add(
        "ffn_down_exps.weight",
        &[EXPERT_WIDTH, HIDDEN, EXPERTS],
        Content::q2_k(EXPERT_WIDTH),
    );
    add(
        "ffn_gate_shexp.weight",
        &[HIDDEN, EXPERT_WIDTH],
        Content::q8_0(HIDDEN),
    );
    add(
        "ffn_up_shexp.weight",
        &[HIDDEN, EXPERT_WIDTH],
        Content::q8_0(HIDDEN),
    );
    add(
        "ffn_down_shexp.weight",
        &[EXPERT_WIDTH, HIDDEN],
        Content::q8_0(EXPERT_WIDTH),
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The published IQ2XXS file has these counts and 86.72 GB; its metadata are 5.3 MB of that.
    #[test]
    fn all_layers_together_are_the_published_file() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut bytes = 0;
        for tensor in tensors(LAYERS) {
            let ty = tensor.content.ty();
            *counts.entry(ty.name()).or_default() += 1;
            bytes +=
                ty.row_bytes(tensor.dims[0]).unwrap() * tensor.dims[1..].iter().product::<u64>();
        }
        let expected = [
            ("F16", 359),
            ("F32", 492),
            ("I32", 3),
            ("IQ2_XXS", 86),
            ("Q2_K", 43),
            ("Q8_0", 345),
        ];
        assert_eq!(counts, BTreeMap::from(expected));
        assert_eq!(bytes, 86_714_775_900);
    }

    #[test]
    fn the_byte_alphabet_is_that_of_gpt_2() {
        let alphabet = byte_alphabet();
        assert_eq!(
            (
                alphabet[0],
                alphabet[usize::from(b' ')],
                alphabet[usize::from(b'A')],
                alphabet[0xad]
            ),
            ('\u{100}', '\u{120}', 'A', '\u{143}')
        );
    }
}
