//! Choosing experts, and choosing compressed rows: exact top-k with ties to the lower index.

use std::cmp::Ordering;

/// `sqrt(softplus(z))`, in place.
pub(super) fn affinity(row: &mut [f32]) {
    for z in row {
        // ln(1 + e^z) without overflow for large z and without cancellation for small.
        let softplus = z.max(0.0) + (-z.abs()).exp().ln_1p();
        *z = softplus.sqrt();
    }
}

/// Higher score first; equal scores (and NaN, which sorts last) by index.
fn order(scores: &[f32], a: u32, b: u32) -> Ordering {
    let key = |i: u32| {
        let s = scores[i as usize];
        if s.is_nan() { f32::NEG_INFINITY } else { s }
    };
    key(b).total_cmp(&key(a)).then(a.cmp(&b))
}

/// Indices of the `k` highest scores into `order_buffer`, best first.
pub(super) fn top_k(scores: &[f32], order_buffer: &mut Vec<u32>, k: usize) {
    order_buffer.clear();
    order_buffer.extend(0..scores.len() as u32);
    if k < order_buffer.len() {
        order_buffer.select_nth_unstable_by(k, |&a, &b| order(scores, a, b));
        order_buffer.truncate(k);
    }
    order_buffer.sort_unstable_by(|&a, &b| order(scores, a, b));
}

/// Routing weights of chosen experts: affinities normalised to sum to `scale`.
pub(super) fn weights(affinity: &[f32], ids: &[i32], scale: f32, out: &mut [f32]) {
    // The floor keeps the division finite when every chosen affinity vanishes.
    const FLOOR: f32 = 1.0 / 16_384.0;
    let sum: f32 = ids.iter().map(|&e| affinity[e as usize]).sum();
    let scale = scale / sum.max(FLOOR);
    for (w, &e) in out.iter_mut().zip(ids) {
        *w = affinity[e as usize] * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_prefer_the_lower_index() {
        let mut order = Vec::new();
        top_k(&[1.0, 3.0, 3.0, 0.0, 3.0], &mut order, 2);
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn nan_scores_are_chosen_last() {
        let mut order = Vec::new();
        top_k(&[f32::NAN, -1.0, 0.0], &mut order, 2);
        assert_eq!(order, [2, 1]);
    }

    #[test]
    fn affinity_of_large_inputs_is_finite() {
        let mut z = [0.0, 100.0, -100.0];
        affinity(&mut z);
        assert!(
            (z[0] - 2f32.ln().sqrt()).abs() < 1e-6 && (z[1] - 10.0).abs() < 1e-6 && z[2] >= 0.0
        );
    }
}
