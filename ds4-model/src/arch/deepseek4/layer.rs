//! One decoder block.

use super::{Context, attention, hyper, moe};
use crate::graph::{Builder, Tid};
use crate::weights::Layer;

/// `x ← post ⊗ F(norm(pre · x)) + combᵀ · x`, once for attention and once for the experts.
///
/// * `x`: streams, `[R, N·D]`
pub(super) fn block(g: &mut Builder<'_>, c: &Context<'_>, index: usize, w: &Layer, x: Tid) -> Tid {
    let eps = c.config.norm_eps;

    let m = hyper::mix(g, c, "attn.hc", &w.attn_hc, x);
    let h = g.rms_norm("attn.norm", m.collapsed, w.attn_norm, eps);
    let a = attention::attend(g, c, index, w, h);
    let x = hyper::expand(g, c, "attn.hc.expand", m, a, x);

    let m = hyper::mix(g, c, "ffn.hc", &w.ffn_hc, x);
    let h = g.rms_norm("ffn.norm", m.collapsed, w.ffn_norm, eps);
    let routed = moe::routed(g, c, index, w, h);
    let shared = moe::shared(g, c, index, w, h);
    let y = g.add("ffn.out", routed, shared);
    hyper::expand(g, c, "ffn.hc.expand", m, y, x)
}
