//! Which tensors the result has, and what they are called in a checkpoint.
//!
//! Checkpoints come with the names of huggingface/transformers (`model.layers.3.self_attn.q_a_proj.weight`) or with those of
//! the published weights (`layers.3.attn.wq_a.weight`, with or without `model.` in front). Either may be sharded, and a
//! checkpoint may mix them.
//! Source of the names: huggingface/transformers:src/transformers/models/deepseek_v4;
//! ggml-org/llama.cpp:conversion/deepseek.py.

use crate::config::{Config, Ratio};

/// A tensor of the result.
#[derive(Clone, Debug)]
pub(super) struct Want {
    /// In the result.
    pub(super) name: String,
    /// In the checkpoint.
    pub(super) from: Origin,
    /// Rows and columns; of experts, of one of them.
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// What it holds.
    pub(super) kind: Kind,
}

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Weights in one dimension.
    Vector,
    /// Weights in two dimensions.
    Matrix,
    /// Expert numbers.
    Table,
    /// Weights in three dimensions.
    Experts,
}

/// Where a tensor comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// One tensor under any of these names; the first that is there counts.
    One(Vec<String>),
    /// One matrix an expert.
    Experts {
        /// `[experts, part of rows, cols]` in one tensor: its name, the rows of one expert in it, the first that counts.
        stacked: (String, usize, usize),
        /// One tensor an expert: layer, and the name of the matrix in transformers' names and in the published ones.
        each: (usize, &'static str, &'static str),
    },
}

/// Every tensor of a model of these sizes, in the order of the result.
pub(super) fn wanted(c: &Config, tied: bool) -> Vec<Want> {
    let streams = c.streams * c.dim;
    let mut list = List(Vec::new());
    list.top(
        "token_embd.weight",
        &["model.embed_tokens.weight", "embed.weight"],
        c.vocab,
        c.dim,
    );
    list.top(
        "output_norm.weight",
        &["model.norm.weight", "norm.weight"],
        0,
        c.dim,
    );
    let mut head = vec!["lm_head.weight", "head.weight"];
    if tied {
        head.extend(["model.embed_tokens.weight", "embed.weight"]);
    }
    list.top("output.weight", &head, c.vocab, c.dim);
    list.top(
        "output_hc_fn.weight",
        &["model.hc_head.hc_fn", "hc_head_fn"],
        c.streams,
        streams,
    );
    list.top(
        "output_hc_base.weight",
        &["model.hc_head.hc_base", "hc_head_base"],
        0,
        c.streams,
    );
    list.top(
        "output_hc_scale.weight",
        &["model.hc_head.hc_scale", "hc_head_scale"],
        0,
        1,
    );
    for layer in 0..c.layers {
        list.layer(c, layer);
    }
    list.0
}

struct List(Vec<Want>);

impl List {
    /// A tensor outside the layers; 0 rows for a vector.
    fn top(&mut self, name: &str, from: &[&str], rows: usize, cols: usize) {
        let mut names: Vec<String> = from.iter().map(|&name| name.to_owned()).collect();
        let bare = from.iter().filter(|name| !name.starts_with("model."));
        names.extend(bare.map(|name| format!("model.{name}")));
        self.push(name.to_owned(), Origin::One(names), rows, cols);
    }

    fn push(&mut self, name: String, from: Origin, rows: usize, cols: usize) {
        let kind = match rows {
            0 => Kind::Vector,
            _ if name.ends_with("tid2eid.weight") => Kind::Table,
            _ => Kind::Matrix,
        };
        self.0.push(Want {
            name,
            from,
            rows: rows.max(1),
            cols,
            kind,
        });
    }

    fn layer(&mut self, c: &Config, layer: usize) {
        let dim = c.dim;
        let mut put = |name: &str, theirs: &str, published: &str, rows: usize, cols: usize| {
            let from = Origin::One(spellings(layer, theirs, published));
            self.push(format!("blk.{layer}.{name}"), from, rows, cols);
        };
        let mixed = 2 * c.streams + c.streams * c.streams;
        for part in ["attn", "ffn"] {
            for (what, rows, cols) in [
                ("fn", mixed, c.streams * dim),
                ("base", 0, mixed),
                ("scale", 0, 3),
            ] {
                let name = format!("hc_{part}_{what}");
                put(
                    &format!("{name}.weight"),
                    &format!("{part}_hc.{what}"),
                    &name,
                    rows,
                    cols,
                );
            }
        }
        put(
            "attn_norm.weight",
            "input_layernorm.weight",
            "attn_norm.weight",
            0,
            dim,
        );
        put(
            "ffn_norm.weight",
            "post_attention_layernorm.weight",
            "ffn_norm.weight",
            0,
            dim,
        );
        let (heads, groups) = (c.heads * c.head_dim, c.out_groups);
        put(
            "attn_q_a.weight",
            "self_attn.q_a_proj.weight",
            "attn.wq_a.weight",
            c.q_rank,
            dim,
        );
        put(
            "attn_q_b.weight",
            "self_attn.q_b_proj.weight",
            "attn.wq_b.weight",
            heads,
            c.q_rank,
        );
        put(
            "attn_kv.weight",
            "self_attn.kv_proj.weight",
            "attn.wkv.weight",
            c.head_dim,
            dim,
        );
        put(
            "attn_output_a.weight",
            "self_attn.o_a_proj.weight",
            "attn.wo_a.weight",
            groups * c.out_rank,
            heads / groups,
        );
        put(
            "attn_output_b.weight",
            "self_attn.o_b_proj.weight",
            "attn.wo_b.weight",
            dim,
            groups * c.out_rank,
        );
        put(
            "attn_q_a_norm.weight",
            "self_attn.q_a_norm.weight",
            "attn.q_norm.weight",
            0,
            c.q_rank,
        );
        put(
            "attn_kv_a_norm.weight",
            "self_attn.kv_norm.weight",
            "attn.kv_norm.weight",
            0,
            c.head_dim,
        );
        put(
            "attn_sinks.weight",
            "self_attn.sinks",
            "attn.attn_sink",
            0,
            c.heads,
        );
        let ratio = c.ratios[layer];
        let mut compressors = Vec::new();
        if ratio != Ratio::None {
            compressors.push((
                "attn_compressor",
                "self_attn.compressor",
                "attn.compressor",
                c.head_dim,
            ));
        }
        if ratio == Ratio::Four {
            compressors.push((
                "indexer_compressor",
                "self_attn.compressor.indexer",
                "attn.indexer.compressor",
                c.index_dim,
            ));
        }
        for (ours, theirs, published, inner) in compressors {
            let rows = ratio.halves() * inner;
            for (our, their, publish, rows, cols) in [
                ("kv", "kv_proj.weight", "wkv.weight", rows, dim),
                ("gate", "gate_proj.weight", "wgate.weight", rows, dim),
                ("ape", "position_bias", "ape", ratio.tokens() as usize, rows),
                ("norm", "kv_norm.weight", "norm.weight", 0, inner),
            ] {
                put(
                    &format!("{ours}_{our}.weight"),
                    &format!("{theirs}.{their}"),
                    &format!("{published}.{publish}"),
                    rows,
                    cols,
                );
            }
        }
        if ratio == Ratio::Four {
            put(
                "indexer.attn_q_b.weight",
                "self_attn.compressor.indexer.q_b_proj.weight",
                "attn.indexer.wq_b.weight",
                c.index_heads * c.index_dim,
                c.q_rank,
            );
            put(
                "indexer.proj.weight",
                "self_attn.compressor.indexer.scorer.weights_proj.weight",
                "attn.indexer.weights_proj.weight",
                c.index_heads,
                dim,
            );
        }
        put(
            "ffn_gate_inp.weight",
            "mlp.gate.weight",
            "ffn.gate.weight",
            c.experts,
            dim,
        );
        if layer < c.hash_layers {
            put(
                "ffn_gate_tid2eid.weight",
                "mlp.gate.tid2eid",
                "ffn.gate.tid2eid",
                c.vocab,
                c.experts_used,
            );
        } else {
            put(
                "exp_probs_b.bias",
                "mlp.gate.e_score_correction_bias",
                "ffn.gate.bias",
                0,
                c.experts,
            );
        }
        self.experts(c, layer);
        let shared = c.shared_width;
        for (ours, published, rows, cols) in [
            ("gate", "w1", shared, dim),
            ("up", "w3", shared, dim),
            ("down", "w2", dim, shared),
        ] {
            let from = spellings(
                layer,
                &format!("mlp.shared_experts.{ours}_proj.weight"),
                &format!("ffn.shared_experts.{published}.weight"),
            );
            self.push(
                format!("blk.{layer}.ffn_{ours}_shexp.weight"),
                Origin::One(from),
                rows,
                cols,
            );
        }
    }

    fn experts(&mut self, c: &Config, layer: usize) {
        let (dim, width) = (c.dim, c.expert_width);
        for (ours, published, rows, cols, stacked) in [
            ("gate", "w1", width, dim, ("gate_up_proj", 2 * width, 0)),
            ("up", "w3", width, dim, ("gate_up_proj", 2 * width, width)),
            ("down", "w2", dim, width, ("down_proj", dim, 0)),
        ] {
            let (name, of, first) = stacked;
            self.0.push(Want {
                name: format!("blk.{layer}.ffn_{ours}_exps.weight"),
                from: Origin::Experts {
                    stacked: (
                        format!("model.layers.{layer}.mlp.experts.{name}"),
                        of,
                        first,
                    ),
                    each: (layer, ours, published),
                },
                rows,
                cols,
                kind: Kind::Experts,
            });
        }
    }
}

/// The names of one tensor of a layer.
fn spellings(layer: usize, theirs: &str, published: &str) -> Vec<String> {
    vec![
        format!("model.layers.{layer}.{theirs}"),
        format!("layers.{layer}.{published}"),
        format!("model.layers.{layer}.{published}"),
    ]
}

/// The names of the matrix of one expert.
pub(super) fn expert(each: (usize, &str, &str), expert: usize) -> Vec<String> {
    let (layer, theirs, published) = each;
    spellings(
        layer,
        &format!("mlp.experts.{expert}.{theirs}_proj.weight"),
        &format!("ffn.experts.{expert}.{published}.weight"),
    )
}

/// What the scales of a tensor may be called.
pub(super) fn scales(tensor: &str) -> Vec<String> {
    let stem = tensor.strip_suffix(".weight");
    let mut names: Vec<String> = stem
        .map(|stem| format!("{stem}.scale"))
        .into_iter()
        .collect();
    names.push(format!("{tensor}_scale_inv"));
    names.push(format!("{tensor}_scale"));
    names
}

/// Whether a tensor that the result has no place for is one that every checkpoint may have: drafters and what the layers
/// beyond the trunk hold.
pub(super) fn is_beyond_trunk(name: &str, layers: usize) -> bool {
    let name = name.strip_prefix("model.").unwrap_or(name);
    name.starts_with("mtp.")
        || name
            .strip_prefix("layers.")
            .and_then(|rest| rest.split_once('.'))
            .and_then(|(layer, _)| layer.parse::<usize>().ok())
            .is_some_and(|layer| layer >= layers)
}
