//! Kernels: some rows of a matrix with all rows of activations.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2_rows;
pub(crate) mod lanes;

use crate::{Activations, Matrix, codec};

/// `y[t][r] = Σ w[r, i]·x[t, i]`.
///
/// * `w`: `[rows, cols]` · `x`: `[tokens, cols]` · `y`: `tokens` slices of `[rows]`
pub(crate) fn multiply(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let codec = codec(w.ty()).expect("Matrix::new checks that there is a codec");
    for r in 0..w.rows() {
        let row = w.part(r, r + 1).bytes();
        for (t, y) in y.iter_mut().enumerate() {
            y[r] = codec.dot(row, x, t);
        }
    }
}

/// `Σ a[i]·b[i]` in the order of every float product of this crate: 16 chains, then halves.
///
/// # Panics
/// When the lengths differ.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "a dot product of equal lengths");
    let mut acc = crate::accumulate::FloatChains::new();
    acc.add(a, b);
    acc.sum()
}
