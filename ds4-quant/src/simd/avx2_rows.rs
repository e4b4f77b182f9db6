//! AVX2 forms of [`crate::row_scores`] and [`crate::weighted_rows`]: same chains, several at a time.
#![expect(
    unsafe_code,
    reason = "calls into functions that need AVX2 and FMA; unaligned loads"
)]

use std::arch::x86_64::*;

/// Heads a tile of scores holds; two accumulators a pair of head and row.
const SCORE_HEADS: usize = 3;
/// Rows of such a tile.
const SCORE_ROWS: usize = 2;
/// Heads a tile of weighted sums holds.
const SUM_HEADS: usize = 4;

/// Whether the forms here apply: the processor has the instructions, and rows are whole pairs of vectors.
fn usable(dim: usize) -> bool {
    dim.is_multiple_of(16) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// False when nothing was done.
pub(crate) fn scores(q: &[f32], rows: &[&[f32]], s: &mut [f32], dim: usize) -> bool {
    if usable(dim) {
        // SAFETY: `usable` saw the features.
        unsafe { score_all(q, rows, s, dim) };
        return true;
    }
    false
}

#[target_feature(enable = "avx2,fma")]
fn score_all(q: &[f32], rows: &[&[f32]], s: &mut [f32], dim: usize) {
    let n = rows.len();
    for (q, s) in q
        .chunks(SCORE_HEADS * dim)
        .zip(s.chunks_mut(SCORE_HEADS * n))
    {
        for (tile, rows) in rows.chunks(SCORE_ROWS).enumerate() {
            let s = &mut s[tile * SCORE_ROWS..];
            match (q.len() / dim, rows.len()) {
                (3, 2) => score_tile::<3, 2>(q, rows, s, n, dim),
                (3, 1) => score_tile::<3, 1>(q, rows, s, n, dim),
                (2, 2) => score_tile::<2, 2>(q, rows, s, n, dim),
                (2, 1) => score_tile::<2, 1>(q, rows, s, n, dim),
                (1, 2) => score_tile::<1, 2>(q, rows, s, n, dim),
                _ => score_tile::<1, 1>(q, rows, s, n, dim),
            }
        }
    }
}

/// `s[h · stride + j] = q_h · row_j` for H heads and J rows.
#[target_feature(enable = "avx2,fma")]
fn score_tile<const H: usize, const J: usize>(
    q: &[f32],
    rows: &[&[f32]],
    s: &mut [f32],
    stride: usize,
    dim: usize,
) {
    let heads: [&[f32]; H] = std::array::from_fn(|h| &q[h * dim..(h + 1) * dim]);
    let rows: [&[f32]; J] = std::array::from_fn(|j| &rows[j][..dim]);
    let mut acc = [[[_mm256_setzero_ps(); 2]; J]; H];
    for c in (0..dim).step_by(16) {
        let x: [[__m256; 2]; J] = std::array::from_fn(|j| pair(rows[j], c));
        for (acc, head) in acc.iter_mut().zip(heads) {
            let q = pair(head, c);
            for (acc, x) in acc.iter_mut().zip(&x) {
                *acc = [
                    _mm256_fmadd_ps(q[0], x[0], acc[0]),
                    _mm256_fmadd_ps(q[1], x[1], acc[1]),
                ];
            }
        }
    }
    for (acc, s) in acc.iter().zip(s.chunks_mut(stride)) {
        for (acc, s) in acc.iter().zip(s) {
            *s = fold(_mm256_add_ps(acc[0], acc[1]));
        }
    }
}

/// Eight numbers folded in halves.
#[target_feature(enable = "avx2,fma")]
fn fold(x: __m256) -> f32 {
    let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
}

/// False when nothing was done.
pub(crate) fn weighted(p: &[f32], rows: &[&[f32]], o: &mut [f32], dim: usize) -> bool {
    if usable(dim) {
        // SAFETY: `usable` saw the features.
        unsafe { sum_all(p, rows, o, dim) };
        return true;
    }
    false
}

#[target_feature(enable = "avx2,fma")]
fn sum_all(p: &[f32], rows: &[&[f32]], o: &mut [f32], dim: usize) {
    let n = rows.len();
    // Columns outside: their slice of all rows stays in cache for every head.
    for c in (0..dim).step_by(16) {
        for (p, o) in p.chunks(SUM_HEADS * n).zip(o.chunks_mut(SUM_HEADS * dim)) {
            match p.len() / n {
                4 => sum_tile::<4>(p, rows, o, c, dim),
                3 => sum_tile::<3>(p, rows, o, c, dim),
                2 => sum_tile::<2>(p, rows, o, c, dim),
                _ => sum_tile::<1>(p, rows, o, c, dim),
            }
        }
    }
}

/// Columns `c..c + 16` of H heads' sums.
#[target_feature(enable = "avx2,fma")]
fn sum_tile<const H: usize>(p: &[f32], rows: &[&[f32]], o: &mut [f32], c: usize, dim: usize) {
    let n = rows.len();
    let weights: [&[f32]; H] = std::array::from_fn(|h| &p[h * n..(h + 1) * n]);
    let mut acc = [[_mm256_setzero_ps(); 2]; H];
    for (j, row) in rows.iter().enumerate() {
        let x = pair(row, c);
        for (acc, weights) in acc.iter_mut().zip(weights) {
            let w = _mm256_set1_ps(weights[j]);
            *acc = [
                _mm256_fmadd_ps(w, x[0], acc[0]),
                _mm256_fmadd_ps(w, x[1], acc[1]),
            ];
        }
    }
    for (acc, o) in acc.iter().zip(o.chunks_mut(dim)) {
        store(&mut o[c..c + 8], acc[0]);
        store(&mut o[c + 8..c + 16], acc[1]);
    }
}

/// Numbers `at..at + 16`.
#[target_feature(enable = "avx2,fma")]
fn pair(x: &[f32], at: usize) -> [__m256; 2] {
    [load(&x[at..at + 8]), load(&x[at + 8..at + 16])]
}

#[target_feature(enable = "avx2,fma")]
fn load(x: &[f32]) -> __m256 {
    assert!(x.len() == 8);
    // SAFETY: eight numbers are there; the load needs no alignment.
    unsafe { _mm256_loadu_ps(x.as_ptr()) }
}

#[target_feature(enable = "avx2,fma")]
fn store(to: &mut [f32], x: __m256) {
    assert!(to.len() == 8);
    // SAFETY: eight numbers fit; the store needs no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), x) }
}
