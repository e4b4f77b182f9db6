//! `config.json` as the `deepseek4.*` keys of a GGUF.
//!
//! Two spellings exist: that of the published checkpoints (`compress_ratios`, `rope_scaling`, `qk_rope_head_dim`) and that of
//! newer huggingface/transformers (`layer_types`, `rope_parameters`, `partial_rotary_factor`). Either is read; where both are
//! there they must agree. A field that is null is one that is absent. What the engine does in one way only must be said
//! in that way, or not at all.
//! Source: huggingface/transformers:src/transformers/models/deepseek_v4/configuration_deepseek_v4.py;
//! keys as antirez/ds4 and ggml-org/llama.cpp read them.

use ds4_gguf::{Metadata, Value};
use serde_json::{Map, Value as Json, json};

use super::layers;
use super::rotary::Rotary;

/// What `config.json` says.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    json: &'a Map<String, Json>,
    /// What is missing or of a wrong kind, in words.
    problems: Vec<String>,
}

const TYPES: [&str; 2] = ["deepseek_v4", "DeepseekV4ForCausalLM"];

impl<'a> Settings<'a> {
    pub(super) fn new(json: &'a Map<String, Json>) -> Self {
        Self {
            json,
            problems: Vec::new(),
        }
    }

    /// Whether the output projection is the embedding.
    pub(super) fn tied(&self) -> bool {
        self.at("tie_word_embeddings").and_then(Json::as_bool) == Some(true)
    }

    /// Add the keys of the model to `metadata`; what is wrong, all at once.
    pub(super) fn write(mut self, metadata: &mut Metadata) -> Result<(), Vec<String>> {
        let kind = self.at("model_type").and_then(Json::as_str);
        if !kind.is_some_and(|kind| TYPES.contains(&kind)) {
            let found = kind.unwrap_or("absent");
            return Err(vec![format!("model_type is {found}; expected deepseek_v4")]);
        }
        self.what_is_fixed();
        let mut keys: Vec<(&str, Value)> = Vec::new();
        let layers = self.size("num_hidden_layers");
        let dim = self.size("hidden_size");
        let head_dim = self.size("head_dim");
        let experts = self.size("moe_intermediate_size");
        let streams = self.size("hc_mult");
        keys.push(("vocab_size", self.size("vocab_size").into()));
        keys.push((
            "context_length",
            self.size("max_position_embeddings").into(),
        ));
        keys.push(("embedding_length", dim.into()));
        keys.push(("block_count", layers.into()));
        keys.push(("feed_forward_length", experts.into()));
        keys.push((
            "attention.head_count",
            self.size("num_attention_heads").into(),
        ));
        keys.push(("attention.head_count_kv", 1u32.into()));
        keys.push(("attention.key_length", head_dim.into()));
        keys.push(("attention.value_length", head_dim.into()));
        for (key, field) in [
            ("attention.q_lora_rank", "q_lora_rank"),
            ("attention.output_lora_rank", "o_lora_rank"),
            ("attention.output_group_count", "o_groups"),
            ("attention.sliding_window", "sliding_window"),
            ("attention.indexer.head_count", "index_n_heads"),
            ("attention.indexer.key_length", "index_head_dim"),
            ("attention.indexer.top_k", "index_topk"),
        ] {
            keys.push((key, self.size(field).into()));
        }
        let rotary = Rotary::of(&mut self, head_dim);
        keys.push(("rope.dimension_count", rotary.dim.into()));
        if let Some(yarn) = &rotary.yarn {
            keys.push(("rope.scaling.original_context_length", yarn.original.into()));
        }
        for (key, field) in [
            ("expert_count", "n_routed_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_shared_count", "n_shared_experts"),
        ] {
            keys.push((key, self.size(field).into()));
        }
        keys.push(("expert_feed_forward_length", experts.into()));
        keys.push(("expert_gating_func", 4u32.into()));
        keys.push(("hash_layer_count", layers::hashed(&mut self).into()));
        keys.push(("hyper_connection.count", streams.into()));
        keys.push((
            "hyper_connection.sinkhorn_iterations",
            self.size("hc_sinkhorn_iters").into(),
        ));
        keys.push(("embedding_length_out", dim.saturating_mul(streams).into()));
        keys.push((
            "attention.layer_norm_rms_epsilon",
            (self.number("rms_norm_eps", None) as f32).into(),
        ));
        keys.push((
            "hyper_connection.epsilon",
            (self.number("hc_eps", None) as f32).into(),
        ));
        keys.push(("rope.freq_base", (rotary.base as f32).into()));
        if let Some(yarn) = &rotary.yarn {
            keys.push(("rope.scaling.factor", (yarn.factor as f32).into()));
            keys.push(("rope.scaling.yarn_beta_fast", (yarn.fast as f32).into()));
            keys.push(("rope.scaling.yarn_beta_slow", (yarn.slow as f32).into()));
        }
        keys.push((
            "attention.compress_rope_freq_base",
            (rotary.compress_base as f32).into(),
        ));
        keys.push((
            "expert_weights_scale",
            (self.number("routed_scaling_factor", None) as f32).into(),
        ));
        let scaling = if rotary.yarn.is_some() {
            "yarn"
        } else {
            "none"
        };
        keys.push(("rope.scaling.type", scaling.into()));
        keys.push(("expert_weights_norm", true.into()));
        keys.push((
            "attention.compress_ratios",
            layers::ratios(&mut self).into(),
        ));
        // Bounded as `Config` bounds it, so that no list of a billion numbers is made for a number in a file.
        let clamp = vec![self.number("swiglu_limit", None) as f32; layers.min(4096) as usize];
        keys.push(("swiglu_clamp_exp", clamp.clone().into()));
        keys.push(("swiglu_clamp_shexp", clamp.into()));
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        for (key, value) in keys {
            metadata.set(&format!("deepseek4.{key}"), value);
        }
        Ok(())
    }

    /// Fields that may have one value, for the engine computes nothing else.
    fn what_is_fixed(&mut self) {
        for (field, expected) in [
            ("scoring_func", json!("sqrtsoftplus")),
            ("topk_method", json!("noaux_tc")),
            ("norm_topk_prob", json!(true)),
            ("num_key_value_heads", json!(1)),
            ("hidden_act", json!("silu")),
            ("attention_bias", json!(false)),
            ("mlp_bias", json!(false)),
            ("compress_rate_csa", json!(4)),
            ("compress_rate_hca", json!(128)),
            ("compress_rates.compressed_sparse_attention", json!(4)),
            ("compress_rates.heavily_compressed_attention", json!(128)),
            ("quantization_config.weight_block_size", json!([128, 128])),
            ("quantization_config.fmt", json!("e4m3")),
        ] {
            let found = self.at(field);
            if found.is_some_and(|found| *found != expected) {
                self.problem(field, found, &expected.to_string());
            }
        }
        // Groups of experts: none, or one that has all of them.
        for field in ["n_group", "topk_group"] {
            let found = self.at(field);
            if found.is_some_and(|found| found.as_u64().is_none_or(|groups| groups > 1)) {
                self.problem(field, found, "0 or 1");
            }
        }
        let tied = self.at("tie_word_embeddings");
        if tied.is_some_and(|tied| !tied.is_boolean()) {
            self.problem("tie_word_embeddings", tied, "true or false");
        }
    }

    /// A field, or by a path with dots a field of a field; `None` where it is absent or null.
    pub(super) fn at(&self, path: &str) -> Option<&'a Json> {
        let mut names = path.split('.');
        let first = self.json.get(names.next()?)?;
        names
            .try_fold(first, |json, name| json.get(name))
            .filter(|json| !json.is_null())
    }

    /// A field of a wrong value, or one that is missing.
    pub(super) fn problem(&mut self, field: &str, found: Option<&Json>, expected: &str) {
        /// Enough of a value to recognize it.
        const MOST: usize = 80;
        let Some(found) = found.map(Json::to_string) else {
            self.wrong(format!("{field} is missing"));
            return;
        };
        let shown = match found.char_indices().nth(MOST) {
            Some((end, _)) => format!("{}…", &found[..end]),
            None => found,
        };
        self.wrong(format!("{field} is {shown}; expected {expected}"));
    }

    /// A problem in other words.
    pub(super) fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// A whole number.
    pub(super) fn size(&mut self, field: &str) -> u32 {
        let found = self.at(field);
        let size = found
            .and_then(Json::as_u64)
            .and_then(|n| u32::try_from(n).ok());
        size.unwrap_or_else(|| {
            self.problem(field, found, "a whole number below 2^32");
            0
        })
    }

    /// A number; `usual` where there is none.
    pub(super) fn number(&mut self, field: &str, usual: Option<f64>) -> f64 {
        let found = self.at(field);
        let number = match (found, usual) {
            (None, Some(usual)) => Some(usual),
            (found, _) => found.and_then(Json::as_f64),
        };
        number.unwrap_or_else(|| {
            self.problem(field, found, "a number");
            0.0
        })
    }
}
