//! DeepSeek-V4 (Flash, 0731, Pro): hyper-connections around compressed sparse attention and a mixture of experts.
//!
//! Operations and their shapes: [`Op`](crate::graph::Op). [`record`] is what [`Engine`](crate::Engine) calls.
//! Sources: huggingface/transformers:src/transformers/models/deepseek_v4, ggml-org/llama.cpp:src/models/deepseek4.cpp.

mod attention;
mod compress;
mod head;
mod hyper;
mod layer;
mod moe;

use crate::config::Config;
use crate::graph::{Builder, Graph, Rounding};
use crate::weights::{Model, Weights};

/// Whether cached rows carry the rounding the model was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheRounding {
    /// FP8 key/value rows, FP4 indexer rows, F16 storage: what the reference engine computes.
    #[default]
    Reference,
    /// Plain f32 rows: what transformers and llama.cpp compute.
    None,
}

/// What the recording needs besides the weights.
struct Context<'a> {
    config: &'a Config,
    rounding: CacheRounding,
}

impl Context<'_> {
    /// Rounding of key/value rows, raw and compressed.
    fn kv_rounding(&self) -> Option<Rounding> {
        let exact = self.config.rope_dim as u32;
        (self.rounding == CacheRounding::Reference).then_some(Rounding::Kv { exact })
    }

    /// Rounding of indexer rows; `store` for cached keys.
    fn index_rounding(&self, store: bool) -> Option<Rounding> {
        (self.rounding == CacheRounding::Reference).then_some(Rounding::Index { store })
    }
}

/// Record the whole trunk: token ids → logits of the rows that want them.
pub fn record(config: &Config, model: &Model, weights: &Weights, rounding: CacheRounding) -> Graph {
    let c = Context { config, rounding };
    let mut g = Builder::new(weights);
    let embedded = g.embed("embed", model.embedding);
    let mut x = g.streams("streams", embedded, config.streams);
    for (index, layer) in model.layers.iter().enumerate() {
        g.layer(Some(index));
        x = layer::block(&mut g, &c, index, layer, x);
    }
    g.layer(None);
    let logits = head::logits(&mut g, &c, model, x);
    g.finish(logits)
}
