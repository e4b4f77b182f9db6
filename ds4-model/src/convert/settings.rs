//! `config.json` as the `deepseek4.*` keys of a GGUF.
//!
//! Two spellings exist: that of the published checkpoints (`compress_ratios`, `rope_scaling`, `qk_rope_head_dim`) and that of
//! newer huggingface/transformers (`layer_types`, `rope_parameters`, `partial_rotary_factor`). Either is read.
//! Source: huggingface/transformers:src/transformers/models/deepseek_v4/configuration_deepseek_v4.py;
//! keys as antirez/ds4 and ggml-org/llama.cpp read them.

use ds4_gguf::{Metadata, Value};
use serde_json::{Map, Value as Json};

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
        self.json.get("tie_word_embeddings").and_then(Json::as_bool) == Some(true)
    }

    /// Add the keys of the model to `metadata`; what is wrong, all at once.
    pub(super) fn write(mut self, metadata: &mut Metadata) -> Result<(), Vec<String>> {
        let kind = self.json.get("model_type").and_then(Json::as_str);
        if !kind.is_some_and(|kind| TYPES.contains(&kind)) {
            let found = kind.unwrap_or("absent");
            return Err(vec![format!("model_type is {found}; expected deepseek_v4")]);
        }
        for (field, expected) in [
            ("scoring_func", Json::from("sqrtsoftplus")),
            ("norm_topk_prob", Json::from(true)),
            ("num_key_value_heads", Json::from(1)),
        ] {
            if let Some(found) = self.json.get(field).filter(|found| **found != expected) {
                self.problems
                    .push(format!("{field} is {found}; expected {expected}"));
            }
        }
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
        keys.push(("rope.dimension_count", self.rope_dim(head_dim).into()));
        let yarn = self.yarn();
        let original = self.of(&yarn, "original_max_position_embeddings", 65_536.0);
        keys.push((
            "rope.scaling.original_context_length",
            (original as u32).into(),
        ));
        for (key, field) in [
            ("expert_count", "n_routed_experts"),
            ("expert_used_count", "num_experts_per_tok"),
            ("expert_shared_count", "n_shared_experts"),
        ] {
            keys.push((key, self.size(field).into()));
        }
        keys.push(("expert_feed_forward_length", experts.into()));
        keys.push(("expert_gating_func", 4u32.into()));
        let hash_layers = self.hash_layers();
        keys.push(("hash_layer_count", hash_layers.into()));
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
        let base = self.base("main", "rope_theta", 10_000.0);
        keys.push(("rope.freq_base", (base as f32).into()));
        for (key, field, usual) in [
            ("rope.scaling.factor", "factor", 16.0),
            ("rope.scaling.yarn_beta_fast", "beta_fast", 32.0),
            ("rope.scaling.yarn_beta_slow", "beta_slow", 1.0),
        ] {
            keys.push((key, (self.of(&yarn, field, usual) as f32).into()));
        }
        let base = self.base("compress", "compress_rope_theta", 160_000.0);
        keys.push(("attention.compress_rope_freq_base", (base as f32).into()));
        keys.push((
            "expert_weights_scale",
            (self.number("routed_scaling_factor", None) as f32).into(),
        ));
        keys.push(("rope.scaling.type", "yarn".into()));
        keys.push(("expert_weights_norm", true.into()));
        keys.push(("attention.compress_ratios", self.ratios().into()));
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

    fn problem(&mut self, field: &str, found: Option<&Json>, expected: &str) {
        self.problems.push(match found {
            Some(found) => format!("{field} is {found}; expected {expected}"),
            None => format!("{field} is missing"),
        });
    }

    /// A whole number.
    fn size(&mut self, field: &str) -> u32 {
        let found = self.json.get(field);
        let size = found
            .and_then(Json::as_u64)
            .and_then(|n| u32::try_from(n).ok());
        size.unwrap_or_else(|| {
            self.problem(field, found, "a whole number below 2^32");
            0
        })
    }

    fn number(&mut self, field: &str, usual: Option<f64>) -> f64 {
        let found = self.json.get(field).filter(|found| !found.is_null());
        let number = match (found, usual) {
            (None, Some(usual)) => Some(usual),
            (found, _) => found.and_then(Json::as_f64),
        };
        number.unwrap_or_else(|| {
            self.problem(field, found, "a number");
            0.0
        })
    }

    /// The settings of YaRN, wherever they are.
    fn yarn(&self) -> Map<String, Json> {
        let parameters = self.json.get("rope_parameters");
        [
            self.json.get("rope_scaling"),
            parameters.and_then(|p| p.get("compress")),
            parameters,
        ]
        .into_iter()
        .flatten()
        .filter_map(Json::as_object)
        .find(|object| object.contains_key("factor"))
        .cloned()
        .unwrap_or_default()
    }

    fn of(&mut self, object: &Map<String, Json>, field: &str, usual: f64) -> f64 {
        match object.get(field).map(|found| (found, found.as_f64())) {
            None => usual,
            Some((_, Some(number))) => number,
            Some((found, None)) => {
                self.problem(&format!("rope_scaling.{field}"), Some(found), "a number");
                usual
            }
        }
    }

    /// A base of rotary angles: a field of its own, or one of `rope_parameters`.
    fn base(&mut self, which: &str, field: &str, usual: f64) -> f64 {
        let nested = self.json.get("rope_parameters").and_then(|p| p.get(which));
        let nested = nested
            .and_then(|p| p.get("rope_theta"))
            .and_then(Json::as_f64);
        self.number(field, Some(nested.unwrap_or(usual)))
    }

    fn rope_dim(&mut self, head_dim: u32) -> u32 {
        match self
            .json
            .get("partial_rotary_factor")
            .and_then(Json::as_f64)
        {
            Some(share) if !self.json.contains_key("qk_rope_head_dim") => {
                (share * f64::from(head_dim)).round() as u32
            }
            _ => self.size("qk_rope_head_dim"),
        }
    }

    fn hash_layers(&mut self) -> u32 {
        let kinds = self.json.get("mlp_layer_types").and_then(Json::as_array);
        match kinds {
            Some(kinds) if !self.json.contains_key("num_hash_layers") => {
                kinds.iter().take_while(|kind| **kind == "hash_moe").count() as u32
            }
            _ => self.size("num_hash_layers"),
        }
    }

    /// Compression of each layer; lists may be longer than the trunk.
    fn ratios(&mut self) -> Vec<i32> {
        if let Some(kinds) = self.json.get("layer_types").and_then(Json::as_array)
            && !self.json.contains_key("compress_ratios")
        {
            return kinds
                .iter()
                .map(|kind| match kind.as_str() {
                    Some("sliding_attention") => 0,
                    Some("compressed_sparse_attention") => 4,
                    Some("heavily_compressed_attention") => 128,
                    _ => {
                        self.problem("layer_types", Some(kind), "a known kind of attention");
                        0
                    }
                })
                .collect();
        }
        let found = self.json.get("compress_ratios");
        let ratios = found.and_then(Json::as_array).and_then(|list| {
            list.iter()
                .map(|n| n.as_i64().and_then(|n| i32::try_from(n).ok()))
                .collect::<Option<Vec<i32>>>()
        });
        ratios.unwrap_or_else(|| {
            self.problem("compress_ratios", found, "a list of whole numbers");
            Vec::new()
        })
    }
}
