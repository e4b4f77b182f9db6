//! Manifold-constrained hyper-connections: N residual streams, mixed by a doubly stochastic matrix made for each token.

use super::Context;
use crate::graph::{Builder, Tid};
use crate::weights::Hyper;

/// A collapsed input and the weights that expand the answer again.
#[derive(Clone, Copy)]
pub(super) struct Mix {
    /// `Σ pre_i · x_i`, `[R, D]`
    pub(super) collapsed: Tid,
    /// pre, post and comb, `[R, 2N + N²]`
    weights: Tid,
}

/// Mixing weights from the normalised streams, and the collapsed input of the sublayer.
pub(super) fn mix(g: &mut Builder<'_>, c: &Context<'_>, name: &str, w: &Hyper, x: Tid) -> Mix {
    let c = c.config;
    let normed = g.plain_norm(&format!("{name}.norm"), x, c.streams * c.dim, c.norm_eps);
    let projected = g.linear(&format!("{name}.project"), normed, w.mix);
    let weights = g.hc_weights(
        &format!("{name}.weights"),
        projected,
        w,
        c.streams,
        c.sinkhorn_iterations,
        c.hc_eps,
    );
    let collapsed = g.hc_collapse(&format!("{name}.collapse"), x, weights, c.streams);
    Mix { collapsed, weights }
}

/// `x'_b = post_b · y + Σ_a comb[a, b] · x_a`: the sum runs over the source stream.
pub(super) fn expand(
    g: &mut Builder<'_>,
    c: &Context<'_>,
    name: &str,
    m: Mix,
    y: Tid,
    x: Tid,
) -> Tid {
    g.hc_expand(name, x, y, m.weights, c.config.streams)
}
