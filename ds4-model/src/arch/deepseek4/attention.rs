//! Attention with one shared key/value row: low-rank queries, sliding window, compressed past, sinks, grouped output.

use super::{Context, compress};
use crate::config::Ratio;
use crate::graph::{Builder, Keep, Op, Tid, Turn};
use crate::weights::Layer;

/// `x`: normed, `[R, D]` → `[R, D]`.
pub(super) fn attend(g: &mut Builder<'_>, c: &Context<'_>, index: usize, w: &Layer, x: Tid) -> Tid {
    let config = c.config;
    let (heads, dim, eps) = (config.heads, config.head_dim, config.norm_eps);
    let rope = *config.rope(index);
    let turn = |g: &mut Builder<'_>, name: &str, x: Tid, heads: usize, turn: Turn| {
        g.rope_tail(name, x, heads, config.rope_dim, rope, turn)
    };

    let qa = g.linear("attn.q_a", x, w.q_a);
    let qa = g.rms_norm("attn.q_a.norm", qa, w.q_a_norm, eps);
    let q = g.linear("attn.q_b", qa, w.q_b);
    let q = g.plain_norm("attn.q.norm", q, dim, eps);
    let q = turn(g, "attn.q", q, heads, Turn::Forward);

    let kv = g.linear("attn.kv.project", x, w.kv);
    let kv = g.rms_norm("attn.kv.norm", kv, w.kv_norm, eps);
    let kv = turn(g, "attn.kv", kv, 1, Turn::Forward);
    let kv = g.round("attn.kv.round", kv, dim, c.kv_rounding());
    // The query itself is part of the window, so the next token looks back at W - 1 stored rows.
    let raw = g.ring(
        "raw",
        dim as u32,
        Keep::Last {
            tokens: config.window as u32 - 1,
        },
    );
    g.store("attn.kv.store", kv, raw);

    let ratio = config.ratios[index];
    let compressed = w.compressor.as_ref().map(|compressor| {
        let parts = compress::Parts {
            name: "attn.comp",
            state: "comp",
            dim,
            rounding: c.kv_rounding(),
        };
        compress::compress(g, c, ratio, &rope, compressor, parts, x)
    });
    let ids = match (&w.indexer, ratio) {
        (Some(indexer), Ratio::Four) => Some(compress::choose(g, c, ratio, &rope, indexer, qa, x)),
        _ => None,
    };
    let attend = Op::Attend {
        raw,
        compressed: compressed.map(|state| (state, ratio.tokens())),
        sinks: w.sinks,
        heads: heads as u32,
        dim: dim as u32,
        window: config.window as u32,
    };
    let o = g.attend("attn.heads.rotated", q, ids, attend);
    let o = turn(g, "attn.heads", o, heads, Turn::Back);
    let low = g.grouped_linear("attn.low", o, w.out_a, config.out_groups);
    g.linear("attn.out", low, w.out_b)
}
