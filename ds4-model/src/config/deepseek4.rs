//! DeepSeek-V4 hyper-parameters from `deepseek4.*` metadata, both GGUF dialects.
//!
//! Keys that one dialect leaves out are derived from tensor shapes (`attn_kv` gives the head dimension, …).
//! Source of names and defaults: antirez/ds4:ds4.c (loader) and ggml-org/llama.cpp:src/models/deepseek4.cpp.

use ds4_gguf::{Dims, FromValue, Gguf, Metadata, Value};

use super::ConfigError;
use crate::weights::spellings;

/// How one layer compresses its past: entries per token window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ratio {
    /// Sliding window only.
    None,
    /// Overlapping windows of 4 tokens, chosen by the learned indexer.
    Four,
    /// Plain windows of 128 tokens, all visible.
    OneTwentyEight,
}

impl Ratio {
    /// Tokens per compressed entry; 0 for [`Ratio::None`].
    pub const fn tokens(self) -> u32 {
        match self {
            Ratio::None => 0,
            Ratio::Four => 4,
            Ratio::OneTwentyEight => 128,
        }
    }

    /// Halves of a compressor row: 2 when neighbouring windows overlap, else 1.
    pub const fn halves(self) -> usize {
        match self {
            Ratio::Four => 2,
            _ => 1,
        }
    }
}

/// YaRN frequency scaling of the compressed-attention rotary table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yarn {
    /// Context extension factor.
    pub factor: f64,
    /// Context length of the original training, in tokens.
    pub original_context: u32,
    /// Rotations above which a frequency is kept.
    pub beta_fast: f64,
    /// Rotations below which a frequency is divided by `factor`.
    pub beta_slow: f64,
}

/// One rotary table: base frequency, optionally scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Base θ.
    pub base: f64,
    /// Scaling, when the layers of this table use it.
    pub yarn: Option<Yarn>,
}

/// Everything about the model's shape and constants, read from one file.
#[derive(Clone, Debug)]
pub struct Config {
    /// `general.name`, when given.
    pub name: Option<Box<str>>,
    /// Decoder layers L.
    pub layers: usize,
    /// Hidden width D.
    pub dim: usize,
    /// Rows of the embedding and of the output head.
    pub vocab: usize,
    /// Longest context the file claims, in tokens.
    pub context: usize,
    /// Query heads H.
    pub heads: usize,
    /// Head width d; key and value share one row of this width.
    pub head_dim: usize,
    /// Rotary channels r, the last of each head.
    pub rope_dim: usize,
    /// Rank of the low-rank query projection.
    pub q_rank: usize,
    /// Groups G of the output projection.
    pub out_groups: usize,
    /// Rank of each output group.
    pub out_rank: usize,
    /// Sliding window in tokens, the query itself included.
    pub window: usize,
    /// Compression of each layer, `[layers]`.
    pub ratios: Vec<Ratio>,
    /// Indexer heads.
    pub index_heads: usize,
    /// Indexer head width.
    pub index_dim: usize,
    /// Compressed entries the indexer keeps.
    pub index_top_k: usize,
    /// Routed experts E.
    pub experts: usize,
    /// Experts used for each token.
    pub experts_used: usize,
    /// Inner width of one expert, routed or shared.
    pub expert_width: usize,
    /// Inner width of the shared expert(s) together.
    pub shared_width: usize,
    /// The first layers, whose experts are chosen by a table over token ids.
    pub hash_layers: usize,
    /// Scale of normalised routing weights.
    pub route_scale: f32,
    /// SwiGLU limit of routed experts, `[layers]`; `None` = off.
    pub clamp_routed: Vec<Option<f32>>,
    /// SwiGLU limit of the shared expert, `[layers]`; `None` = off.
    pub clamp_shared: Vec<Option<f32>>,
    /// Residual streams of the hyper-connections.
    pub streams: usize,
    /// Sinkhorn normalisations.
    pub sinkhorn_iterations: usize,
    /// Epsilon of the hyper-connections.
    pub hc_eps: f32,
    /// Epsilon of every RMS norm.
    pub norm_eps: f32,
    /// Rotary table of layers without compression.
    pub rope_main: Rope,
    /// Rotary table of layers with compression.
    pub rope_compress: Rope,
}

const PREFIX: &str = "deepseek4.";

impl Config {
    /// Read and check the configuration of `gguf`.
    ///
    /// # Errors
    /// [`ConfigError`] names the first key that is missing, has the wrong type or a value the model cannot have.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ConfigError> {
        let keys = Keys { gguf };
        let architecture: String = keys.meta().get("general.architecture")?;
        if architecture != "deepseek4" {
            return Err(ConfigError::Architecture {
                found: architecture.into(),
            });
        }
        let layers = keys.size("block_count", || None)?;
        // Checked before anything is sized by it; the other numbers are checked together below.
        keys.within("block_count", layers, 4096)?;
        let dim = keys.size("embedding_length", || keys.ne("token_embd.weight", 0))?;
        let vocab = keys.size("vocab_size", || {
            keys.ne("token_embd.weight", 1)
                .or_else(|| keys.token_count())
        })?;
        let heads = keys.size("attention.head_count", || {
            keys.layer_ne("attn_sinks.weight", 0)
        })?;
        keys.exactly("attention.head_count_kv", 1)?;
        let head_dim = keys.size("attention.key_length", || {
            keys.layer_ne("attn_kv.weight", 1)
        })?;
        keys.exactly("attention.value_length", head_dim as u64)?;
        let out_groups = keys.size("attention.output_group_count", || {
            keys.layer_ne("attn_output_a.weight", 0)
                .and_then(|w| heads.checked_mul(head_dim)?.checked_div(w))
        })?;
        let out_rank = keys.size("attention.output_lora_rank", || {
            keys.layer_ne("attn_output_a.weight", 1)
                .and_then(|r| r.checked_div(out_groups))
        })?;
        let experts = keys.size("expert_count", || keys.layer_ne("ffn_gate_exps.weight", 2))?;
        let expert_width = keys.size("expert_feed_forward_length", || {
            keys.layer_ne("ffn_gate_exps.weight", 1)
        })?;
        let shared = keys.size_or("expert_shared_count", 1)?;
        let hash_layers = match keys.find::<u64>("hash_layer_count")? {
            Some(n) => n as usize,
            None => (0..layers)
                .take_while(|l| keys.has(&format!("blk.{l}.ffn_gate_tid2eid.weight")))
                .count(),
        };
        keys.flag("expert_weights_norm", true)?;
        keys.exactly("expert_gating_func", 4)?;
        keys.exactly("expert_group_count", 0)?;
        let clamp_routed = keys
            .clamps("swiglu_clamp_exp", layers)?
            .unwrap_or_else(|| vec![Some(10.0); layers]);
        let clamp_shared = keys
            .clamps("swiglu_clamp_shexp", layers)?
            .unwrap_or_else(|| clamp_routed.clone());
        let ratios = keys.ratios(layers)?;
        let indexed = ratios.contains(&Ratio::Four);
        let yarn = Yarn {
            factor: keys.number_or("rope.scaling.factor", 16.0)?,
            original_context: keys.size_or("rope.scaling.original_context_length", 65_536)? as u32,
            beta_fast: keys.number_or("rope.scaling.yarn_beta_fast", 32.0)?,
            beta_slow: keys.number_or("rope.scaling.yarn_beta_slow", 1.0)?,
        };
        let scaling = keys
            .find::<String>("rope.scaling.type")?
            .unwrap_or_else(|| "yarn".into());
        let yarn = match scaling.as_str() {
            "yarn" => Some(yarn).filter(|y| y.factor != 1.0),
            "none" => None,
            other => return Err(keys.bad("rope.scaling.type", other, "yarn or none")),
        };
        let compress_base = match keys.find::<f64>("attention.compress_rope_freq_base")? {
            Some(base) => base,
            None => keys.number_or("rope.freq_base_swa", 160_000.0)?,
        };
        let config = Config {
            name: keys.meta().find::<String>("general.name").map(Into::into),
            layers,
            dim,
            vocab,
            context: keys.size_or("context_length", 1_048_576)?,
            heads,
            head_dim,
            rope_dim: keys.size_or("rope.dimension_count", 64)?,
            q_rank: keys.size("attention.q_lora_rank", || {
                keys.layer_ne("attn_q_a.weight", 1)
            })?,
            out_groups,
            out_rank,
            window: keys.size_or("attention.sliding_window", 128)?,
            ratios,
            index_heads: keys.size_if(indexed, "attention.indexer.head_count")?,
            index_dim: keys.size_if(indexed, "attention.indexer.key_length")?,
            index_top_k: keys.size_if(indexed, "attention.indexer.top_k")?,
            experts,
            experts_used: keys.size("expert_used_count", || None)?,
            expert_width,
            shared_width: shared.saturating_mul(expert_width),
            hash_layers,
            route_scale: keys.number("expert_weights_scale")? as f32,
            clamp_routed,
            clamp_shared,
            streams: keys.size("hyper_connection.count", || {
                keys.ne("output_hc_base.weight", 0)
            })?,
            sinkhorn_iterations: keys.size_or("hyper_connection.sinkhorn_iterations", 20)?,
            hc_eps: keys.number_or("hyper_connection.epsilon", 1e-6)? as f32,
            norm_eps: keys.number_or("attention.layer_norm_rms_epsilon", 1e-6)? as f32,
            rope_main: Rope {
                base: keys.number_or("rope.freq_base", 10_000.0)?,
                yarn: None,
            },
            rope_compress: Rope {
                base: compress_base,
                yarn,
            },
        };
        config.check(&keys)?;
        Ok(config)
    }

    /// Relations between numbers that the maths relies on, so that later code may divide and slice without asking.
    fn check(&self, keys: &Keys<'_>) -> Result<(), ConfigError> {
        let limit = |key: &str, value: usize, most: usize| keys.within(key, value, most);
        // Bounds are far above any published model; they keep products of two sizes inside 64 bits and allocations sane.
        limit("embedding_length", self.dim, 1 << 20)?;
        limit("vocab_size", self.vocab, 1 << 24)?;
        limit("context_length", self.context, 1 << 31)?;
        limit("attention.head_count", self.heads, 1 << 14)?;
        limit("attention.key_length", self.head_dim, 1 << 16)?;
        limit("attention.q_lora_rank", self.q_rank, 1 << 20)?;
        limit("attention.output_group_count", self.out_groups, self.heads)?;
        limit("attention.output_lora_rank", self.out_rank, 1 << 20)?;
        limit("attention.sliding_window", self.window, 1 << 20)?;
        limit("expert_count", self.experts, 1 << 15)?;
        limit("expert_used_count", self.experts_used, self.experts)?;
        limit("expert_feed_forward_length", self.expert_width, 1 << 20)?;
        limit(
            "expert_shared_count",
            self.shared_width / self.expert_width,
            1024,
        )?;
        limit("hyper_connection.count", self.streams, 64)?;
        limit(
            "hyper_connection.sinkhorn_iterations",
            self.sinkhorn_iterations,
            10_000,
        )?;
        limit("rope.dimension_count", self.rope_dim, self.head_dim)?;
        let even = |key: &str, value: usize| match value % 2 {
            0 => Ok(()),
            _ => Err(keys.bad(key, value, "an even number")),
        };
        even("rope.dimension_count", self.rope_dim)?;
        if !self.heads.is_multiple_of(self.out_groups) {
            let expected = format!("a divisor of {} heads", self.heads);
            return Err(keys.bad("attention.output_group_count", self.out_groups, &expected));
        }
        if self.hash_layers > self.layers {
            let expected = format!("at most {} layers", self.layers);
            return Err(keys.bad("hash_layer_count", self.hash_layers, &expected));
        }
        if self.ratios.contains(&Ratio::Four) {
            limit("attention.indexer.head_count", self.index_heads, 1 << 14)?;
            limit("attention.indexer.key_length", self.index_dim, 1 << 16)?;
            limit("attention.indexer.top_k", self.index_top_k, 1 << 20)?;
            if self.index_dim < self.rope_dim {
                let expected = format!("at least {} rotary channels", self.rope_dim);
                return Err(keys.bad("attention.indexer.key_length", self.index_dim, &expected));
            }
        }
        let positive = |key: &str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(keys.bad(key, value, "a positive number")),
        };
        positive("rope.freq_base", self.rope_main.base)?;
        positive("attention.compress_rope_freq_base", self.rope_compress.base)?;
        if let Some(yarn) = &self.rope_compress.yarn {
            positive("rope.scaling.factor", yarn.factor)?;
            positive("rope.scaling.yarn_beta_fast", yarn.beta_fast)?;
            positive("rope.scaling.yarn_beta_slow", yarn.beta_slow)?;
            positive(
                "rope.scaling.original_context_length",
                f64::from(yarn.original_context),
            )?;
        }
        positive("attention.layer_norm_rms_epsilon", f64::from(self.norm_eps))?;
        positive("hyper_connection.epsilon", f64::from(self.hc_eps))?;
        positive("expert_weights_scale", f64::from(self.route_scale))
    }

    /// Channels of a head before its rotary tail.
    pub fn nope_dim(&self) -> usize {
        self.head_dim - self.rope_dim
    }

    /// The rotary table of `layer`.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn rope(&self, layer: usize) -> &Rope {
        match self.ratios[layer] {
            Ratio::None => &self.rope_main,
            _ => &self.rope_compress,
        }
    }
}

/// Look-ups that accept what either dialect writes.
struct Keys<'a> {
    gguf: &'a Gguf,
}

impl Keys<'_> {
    fn meta(&self) -> &Metadata {
        self.gguf.metadata()
    }

    fn bad(&self, key: &str, found: impl ToString, expected: &str) -> ConfigError {
        ConfigError::Value {
            key: format!("{PREFIX}{key}").into(),
            found: found.to_string().into(),
            expected: expected.into(),
        }
    }

    fn within(&self, key: &str, value: usize, most: usize) -> Result<(), ConfigError> {
        match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(self.bad(key, value, &format!("1 to {most}"))),
        }
    }

    /// A tensor under any of its spellings.
    fn dims(&self, tensor: &str) -> Option<&Dims> {
        let found = spellings(tensor).find_map(|name| self.gguf.find(&name))?;
        Some(&found.info.dims)
    }

    fn has(&self, tensor: &str) -> bool {
        self.dims(tensor).is_some()
    }

    fn ne(&self, tensor: &str, axis: usize) -> Option<usize> {
        usize::try_from(self.dims(tensor)?.get(axis)).ok()
    }

    fn layer_ne(&self, suffix: &str, axis: usize) -> Option<usize> {
        self.ne(&format!("blk.0.{suffix}"), axis)
    }

    fn token_count(&self) -> Option<usize> {
        match self.meta().value("tokenizer.ggml.tokens")? {
            Value::Array(tokens) => Some(tokens.view().len()),
            _ => None,
        }
    }

    fn find<T: for<'v> FromValue<'v>>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        Ok(self.meta().try_find(&format!("{PREFIX}{key}"))?)
    }

    fn size(
        &self,
        key: &str,
        derive: impl FnOnce() -> Option<usize>,
    ) -> Result<usize, ConfigError> {
        // llama.cpp writes some sizes as one number a layer; all must agree for the shapes this engine runs.
        let full = format!("{PREFIX}{key}");
        if let Some(Value::Array(_)) = self.meta().value(&full) {
            let list: Vec<u64> = self.meta().get(&full)?;
            return match list.first() {
                Some(&first) if list.iter().all(|&n| n == first) => Ok(first as usize),
                _ => Err(self.bad(key, format!("{list:?}"), "the same number for every layer")),
            };
        }
        match self.find::<u64>(key)? {
            Some(n) => usize::try_from(n).map_err(|_| self.bad(key, n, "a size of this machine")),
            None => derive().ok_or(ConfigError::Missing { key: full.into() }),
        }
    }

    fn size_or(&self, key: &str, default: usize) -> Result<usize, ConfigError> {
        self.size(key, || Some(default))
    }

    fn size_if(&self, needed: bool, key: &str) -> Result<usize, ConfigError> {
        self.size(key, || (!needed).then_some(0))
    }

    fn number(&self, key: &str) -> Result<f64, ConfigError> {
        self.find::<f64>(key)?.ok_or_else(|| ConfigError::Missing {
            key: format!("{PREFIX}{key}").into(),
        })
    }

    fn number_or(&self, key: &str, default: f64) -> Result<f64, ConfigError> {
        Ok(self.find::<f64>(key)?.unwrap_or(default))
    }

    fn exactly(&self, key: &str, expected: u64) -> Result<(), ConfigError> {
        match self.find::<u64>(key)? {
            Some(found) if found != expected => Err(self.bad(key, found, &expected.to_string())),
            _ => Ok(()),
        }
    }

    fn flag(&self, key: &str, expected: bool) -> Result<(), ConfigError> {
        match self.find::<bool>(key)? {
            Some(found) if found != expected => Err(self.bad(key, found, &expected.to_string())),
            _ => Ok(()),
        }
    }

    /// One limit a layer; a single number stands for all. Values up to 1e-6 mean "off".
    fn clamps(&self, key: &str, layers: usize) -> Result<Option<Vec<Option<f32>>>, ConfigError> {
        let full = format!("{PREFIX}{key}");
        let list: Vec<f64> = match self.meta().value(&full) {
            None => return Ok(None),
            Some(Value::Array(_)) => self.meta().get(&full)?,
            Some(_) => vec![self.meta().get::<f64>(&full)?; layers],
        };
        if list.len() < layers {
            return Err(self.bad(
                key,
                format!("{} values", list.len()),
                &format!("at least {layers} values"),
            ));
        }
        Ok(Some(
            list[..layers]
                .iter()
                .map(|&c| (c > 1e-6).then_some(c as f32))
                .collect(),
        ))
    }

    /// The first `layers` entries; files append zeros for their draft layers.
    fn ratios(&self, layers: usize) -> Result<Vec<Ratio>, ConfigError> {
        let key = "attention.compress_ratios";
        let full = format!("{PREFIX}{key}");
        let Some(value) = self.meta().value(&full) else {
            return Ok((0..layers).map(|l| self.guess_ratio(l)).collect());
        };
        let list: Vec<i64> = match value {
            Value::Array(array) if array.view().is_empty() => Vec::new(),
            _ => self.meta().get(&full)?,
        };
        if list.len() < layers {
            return Err(self.bad(
                key,
                format!("{} values", list.len()),
                &format!("at least {layers} values"),
            ));
        }
        list[..layers]
            .iter()
            .map(|ratio| match ratio {
                0 => Ok(Ratio::None),
                4 => Ok(Ratio::Four),
                128 => Ok(Ratio::OneTwentyEight),
                other => Err(self.bad(key, other, "0, 4 or 128")),
            })
            .collect()
    }

    fn guess_ratio(&self, layer: usize) -> Ratio {
        if self.has(&format!("blk.{layer}.indexer.proj.weight")) {
            Ratio::Four
        } else if self.has(&format!("blk.{layer}.attn_compressor_kv.weight")) {
            Ratio::OneTwentyEight
        } else {
            Ratio::None
        }
    }
}
