//! RMS normalisation.

use ds4_quant::dot_f32;

/// `x ← x / sqrt(mean(x²) + ε) ⊙ w` over each `group` of a row, in place.
pub(super) fn rms_norm(row: &mut [f32], weight: Option<&[f32]>, group: usize, eps: f32) {
    for x in row.chunks_exact_mut(group) {
        let scale = 1.0 / (dot_f32(x, x) / group as f32 + eps).sqrt();
        match weight {
            Some(weight) => x.iter_mut().zip(weight).for_each(|(x, w)| *x *= scale * w),
            None => x.iter_mut().for_each(|x| *x *= scale),
        }
    }
}
