//! Attention of one query row over window and compressed rows, one softmax with a sink that has no value.
//!
//! `o_h = Σ_j e^{s_hj} row_j / (Σ_j e^{s_hj} + e^{sink_h})`, `s_hj = q_h · row_j / sqrt(d)`.

use ds4_quant::{row_scores, weighted_rows};

use super::state::Rows;

/// Which rows a query may read.
pub(super) struct Visible<'a> {
    /// Sliding-window rows by position.
    pub(super) raw: &'a Rows,
    /// Tokens of the window, the query included.
    pub(super) window: usize,
    /// Compressed rows and tokens a window.
    pub(super) compressed: Option<(&'a Rows, usize)>,
}

impl<'a> Visible<'a> {
    /// Rows for the query at `position`: window rows, oldest first, then compressed rows, ascending.
    ///
    /// * `ids`: the compressed rows to use, −1 = end; `None` = every closed window
    pub(super) fn rows(&self, position: usize, ids: Option<&[i32]>, out: &mut Vec<&'a [f32]>) {
        out.clear();
        let first = (position + 1).saturating_sub(self.window);
        for piece in self.raw.pieces(first, position + 1) {
            out.extend(piece.chunks_exact(self.raw.cols()));
        }
        let Some((rows, ratio)) = self.compressed else {
            return;
        };
        match ids {
            Some(ids) => out.extend(
                ids.iter()
                    .take_while(|&&id| id >= 0)
                    .map(|&id| rows.row(id as usize)),
            ),
            None => out.extend(rows.pieces(0, (position + 1) / ratio)[0].chunks_exact(rows.cols())),
        }
    }
}

/// Attention of some heads of one query.
///
/// * `q`, `out`: `[heads, dim]` · `rows`: visible rows of `dim` · `sinks`: `[heads]` · `scores`: scratch
pub(super) fn heads(
    q: &[f32],
    rows: &[&[f32]],
    sinks: &[f32],
    dim: usize,
    scores: &mut Vec<f32>,
    out: &mut [f32],
) {
    let count = rows.len();
    scores.clear();
    scores.resize(sinks.len() * count, 0.0);
    row_scores(q, rows, scores);
    let scale = 1.0 / (dim as f32).sqrt();
    for (scores, &sink) in scores.chunks_exact_mut(count).zip(sinks) {
        let top = scores
            .iter()
            .fold(f32::NEG_INFINITY, |m, s| m.max(s * scale))
            .max(sink);
        let mut sum = (sink - top).exp();
        for s in scores.iter_mut() {
            *s = (*s * scale - top).exp();
            sum += *s;
        }
        scores.iter_mut().for_each(|s| *s /= sum);
    }
    weighted_rows(scores, rows, out);
}
