//! The indexer's choice of compressed rows for one query.

use ds4_quant::row_scores;

use super::route::top_k;
use super::state::Rows;

/// Scratch of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    dots: Vec<f32>,
    scores: Vec<f32>,
    order: Vec<u32>,
}

/// Keys scored at a time: the dots of one tile stay in cache for any context length.
const TILE: usize = 64;

/// The `ids.len()` visible entries with the largest `Σ_h w_h · relu(q_h · key)`, ascending, −1 = unused.
///
/// * `q`: `[heads, dim]` · `weights`: `[heads]` · `visible`: closed windows at the query
pub(super) fn choose(
    q: &[f32],
    weights: &[f32],
    keys: &Rows,
    visible: usize,
    scratch: &mut Scratch,
    ids: &mut [i32],
) {
    ids.fill(-1);
    if visible <= ids.len() {
        ids.iter_mut()
            .zip(0..visible as i32)
            .for_each(|(slot, id)| *slot = id);
        return;
    }
    scratch.scores.clear();
    for tile in keys.pieces(0, visible)[0].chunks(TILE * keys.cols()) {
        let mut rows = [&tile[..0]; TILE];
        let count = tile.len() / keys.cols();
        rows.iter_mut()
            .zip(tile.chunks_exact(keys.cols()))
            .for_each(|(slot, row)| *slot = row);
        scratch.dots.clear();
        scratch.dots.resize(weights.len() * count, 0.0);
        row_scores(q, &rows[..count], &mut scratch.dots);
        scratch.scores.extend((0..count).map(|j| {
            weights
                .iter()
                .enumerate()
                .map(|(h, w)| w * scratch.dots[h * count + j].max(0.0))
                .sum::<f32>()
        }));
    }
    top_k(&scratch.scores, &mut scratch.order, ids.len());
    ids.iter_mut()
        .zip(&scratch.order)
        .for_each(|(slot, &id)| *slot = id as i32);
    ids.sort_unstable();
}
