//! Products with rows of plain numbers that lie anywhere: the two halves of attention.
//!
//! ```text
//! scores        s[h, j] = Σ_c q[h, c] · row_j[c]       in the order of `dot_f32`
//! weighted sum  o[h, c] = Σ_j p[h, j] · row_j[c]       acc = fma(p, row, acc), j ascending from +0
//! ```
//! Each element is one fixed chain, so results do not depend on how many heads or rows a call has.

#[cfg(target_arch = "x86_64")]
use crate::simd::avx2_rows;
use crate::simd::dot_f32_scalar;

/// `s[h, j] = q_h · row_j`.
///
/// * `q`: `[heads, dim]` · `rows`: `n` slices of `[dim]` · `s`: `[heads, n]`
///
/// # Panics
/// When the lengths do not fit together.
pub fn row_scores(q: &[f32], rows: &[&[f32]], s: &mut [f32]) {
    let Some(dim) = rows.first().map(|row| row.len()) else {
        return;
    };
    let heads = s.len() / rows.len();
    assert!(
        s.len() == heads * rows.len() && q.len() == heads * dim,
        "scores of whole heads"
    );
    assert!(
        rows.iter().all(|row| row.len() == dim),
        "rows of one length"
    );
    #[cfg(target_arch = "x86_64")]
    if avx2_rows::scores(q, rows, s, dim) {
        return;
    }
    row_scores_scalar(q, rows, s, dim);
}

/// `o[h, c] = Σ_j p[h, j] · row_j[c]`.
///
/// * `p`: `[heads, n]` · `rows`: `n` slices of `[dim]` · `o`: `[heads, dim]`
///
/// # Panics
/// When the lengths do not fit together.
pub fn weighted_rows(p: &[f32], rows: &[&[f32]], o: &mut [f32]) {
    let Some(dim) = rows.first().map(|row| row.len()) else {
        o.fill(0.0);
        return;
    };
    let heads = p.len() / rows.len();
    assert!(
        p.len() == heads * rows.len() && o.len() == heads * dim,
        "weights of whole heads"
    );
    assert!(
        rows.iter().all(|row| row.len() == dim),
        "rows of one length"
    );
    #[cfg(target_arch = "x86_64")]
    if avx2_rows::weighted(p, rows, o, dim) {
        return;
    }
    weighted_rows_scalar(p, rows, o, dim);
}

/// The specification of [`row_scores`].
fn row_scores_scalar(q: &[f32], rows: &[&[f32]], s: &mut [f32], dim: usize) {
    for (q, s) in q.chunks_exact(dim).zip(s.chunks_exact_mut(rows.len())) {
        for (row, s) in rows.iter().zip(s) {
            *s = dot_f32_scalar(q, row);
        }
    }
}

/// The specification of [`weighted_rows`].
fn weighted_rows_scalar(p: &[f32], rows: &[&[f32]], o: &mut [f32], dim: usize) {
    for (p, o) in p.chunks_exact(rows.len()).zip(o.chunks_exact_mut(dim)) {
        o.fill(0.0);
        for (p, row) in p.iter().zip(rows) {
            o.iter_mut()
                .zip(*row)
                .for_each(|(o, x)| *o = p.mul_add(*x, *o));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(len: usize, seed: u32) -> Vec<f32> {
        (0..len as u32)
            .map(|i| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8) as f32 / 8e6) - 1.0)
            .collect()
    }

    fn bits(x: &[f32]) -> Vec<u32> {
        x.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn every_processor_gives_the_bits_of_the_plain_loops() {
        for (heads, n, dim) in [
            (1, 1, 16),
            (3, 5, 48),
            (4, 7, 192),
            (9, 130, 64),
            (5, 3, 20),
        ] {
            let (q, p) = (wave(heads * dim, 1), wave(heads * n, 2));
            let data = wave(n * dim, 3);
            let rows: Vec<&[f32]> = data.chunks_exact(dim).collect();
            let (mut got, mut want) = (vec![0.0; heads * n], vec![0.0; heads * n]);
            row_scores(&q, &rows, &mut got);
            row_scores_scalar(&q, &rows, &mut want, dim);
            assert_eq!(bits(&got), bits(&want), "{heads} heads, {n} rows of {dim}");
            let (mut got, mut want) = (vec![7.0; heads * dim], vec![0.0; heads * dim]);
            weighted_rows(&p, &rows, &mut got);
            weighted_rows_scalar(&p, &rows, &mut want, dim);
            assert_eq!(bits(&got), bits(&want), "{heads} heads, {n} rows of {dim}");
        }
    }
}
