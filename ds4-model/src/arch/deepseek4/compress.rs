//! The compressed past: gated pooling of every window of 4 or 128 tokens into one row, and the indexer that picks rows.

use super::Context;
use crate::config::{Ratio, Rope};
use crate::graph::{Builder, Keep, Rounding, StateId, Tid, Turn};
use crate::weights::{Compressor, Indexer};

/// What distinguishes the attention's compressor from the indexer's.
pub(super) struct Parts<'n> {
    /// Prefix of node names.
    pub(super) name: &'n str,
    /// Prefix of state names.
    pub(super) state: &'n str,
    /// Width of a compressed row.
    pub(super) dim: usize,
    /// Rounding of the stored row.
    pub(super) rounding: Option<Rounding>,
}

/// Feed a compressor and store the rows of windows that close; returns the state that holds them.
///
/// `e_w[c] = Σ_p softmax_p(s_p[c]) · v_p[c]`, then norm and rotation at the window's first token.
///
/// * `x`: normed input of the attention, `[R, D]`
pub(super) fn compress(
    g: &mut Builder<'_>,
    c: &Context<'_>,
    ratio: Ratio,
    rope: &Rope,
    w: &Compressor,
    parts: Parts<'_>,
    x: Tid,
) -> StateId {
    let Parts {
        name,
        state,
        dim,
        rounding,
    } = parts;
    let tokens = ratio.tokens();
    let width = (ratio.halves() * dim) as u32;
    let keep = Keep::OpenWindow {
        ratio: tokens,
        overlap: ratio.halves() == 2,
    };
    let values = g.ring(&format!("{state}.values"), width, keep);
    let gates = g.ring(&format!("{state}.gates"), width, keep);
    let rows = g.windows(&format!("{state}.rows"), dim as u32, tokens);

    let v = g.linear(&format!("{name}.values"), x, w.kv);
    g.store(&format!("{name}.values.store"), v, values);
    let s = g.linear(&format!("{name}.gates"), x, w.gate);
    g.store_gate(&format!("{name}.gates.store"), s, gates, w.ape, tokens);

    let e = g.pool(
        &format!("{name}.pool"),
        values,
        gates,
        tokens,
        ratio.halves(),
    );
    let e = g.rms_norm(&format!("{name}.norm"), e, w.norm, c.config.norm_eps);
    let e = g.rope_tail(
        &format!("{name}.rope"),
        e,
        1,
        c.config.rope_dim,
        *rope,
        Turn::Forward,
    );
    let e = g.round(&format!("{name}.round"), e, dim, rounding);
    g.store(&format!("{name}.store"), e, rows);
    rows
}

/// The compressed rows each query may read, ids `[R, K]`: `S_w = Σ_h w_h · relu(q_h · key_w)`, the K largest.
///
/// * `qa`: normed low-rank query, `[R, q_rank]` · `x`: normed input of the attention, `[R, D]`
pub(super) fn choose(
    g: &mut Builder<'_>,
    c: &Context<'_>,
    ratio: Ratio,
    rope: &Rope,
    w: &Indexer,
    qa: Tid,
    x: Tid,
) -> Tid {
    let config = c.config;
    let parts = Parts {
        name: "index.comp",
        state: "index",
        dim: config.index_dim,
        rounding: c.index_rounding(true),
    };
    let keys = compress(g, c, ratio, rope, &w.compressor, parts, x);
    let q = g.linear("index.q_b", qa, w.q_b);
    let q = g.rope_tail(
        "index.q",
        q,
        config.index_heads,
        config.rope_dim,
        *rope,
        Turn::Forward,
    );
    let q = g.round(
        "index.q.round",
        q,
        config.index_dim,
        c.index_rounding(false),
    );
    let head_weights = g.linear("index.weights", x, w.head_weights);
    g.index_top_k(
        "index.top_k",
        q,
        head_weights,
        keys,
        config.index_top_k,
        ratio.tokens(),
    )
}
