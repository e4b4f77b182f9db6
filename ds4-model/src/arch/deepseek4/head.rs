//! From the streams of the last layer to logits.

use super::Context;
use crate::graph::{Builder, Tid};
use crate::weights::Model;

/// Collapse the streams, normalise, project onto the vocabulary, `[head rows, V]`.
pub(super) fn logits(g: &mut Builder<'_>, c: &Context<'_>, model: &Model, x: Tid) -> Tid {
    let config = c.config;
    let x = g.select_rows("head.rows", x);
    let normed = g.plain_norm(
        "head.hc.norm",
        x,
        config.streams * config.dim,
        config.norm_eps,
    );
    let m = g.linear("head.hc.project", normed, model.head_hc.mix);
    let weights = g.hc_head_weights("head.hc.weights", m, &model.head_hc, config.hc_eps);
    let h = g.hc_collapse("head.hc.collapse", x, weights, config.streams);
    let h = g.rms_norm("head.norm", h, model.output_norm, config.norm_eps);
    g.linear("logits", h, model.output)
}
