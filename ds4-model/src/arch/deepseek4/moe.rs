//! Mixture of experts: a few routed by score or by token id, one shared by all tokens.

use super::Context;
use crate::graph::{Builder, Op, Tid};
use crate::weights::{Layer, Selection};

/// `Σ_k w_k · expert_k(x)`, `[R, D]`.
pub(super) fn routed(g: &mut Builder<'_>, c: &Context<'_>, index: usize, w: &Layer, x: Tid) -> Tid {
    let config = c.config;
    let z = g.linear("ffn.router", x, w.router);
    let a = g.affinity("ffn.affinity", z);
    let (ids, weights) = match w.selection {
        Selection::Hash(table) => g.route_hash(
            "ffn.route",
            a,
            table,
            config.experts_used,
            config.route_scale,
        ),
        Selection::TopK(bias) => g.route_top_k(
            "ffn.route",
            a,
            bias,
            config.experts_used,
            config.route_scale,
        ),
    };
    let experts = Op::Experts {
        gate: w.gate_experts,
        up: w.up_experts,
        down: w.down_experts,
        clamp: config.clamp_routed[index],
    };
    g.experts("ffn.experts", x, ids, weights, experts)
}

/// The expert every token uses, `[R, D]`.
pub(super) fn shared(g: &mut Builder<'_>, c: &Context<'_>, index: usize, w: &Layer, x: Tid) -> Tid {
    let gate = g.linear("ffn.shared.gate", x, w.gate_shared);
    let up = g.linear("ffn.shared.up", x, w.up_shared);
    let h = g.swiglu("ffn.shared.act", gate, up, c.config.clamp_shared[index]);
    g.linear("ffn.shared.down", h, w.down_shared)
}
