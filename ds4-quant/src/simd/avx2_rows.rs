//! AVX2 for plain floats: the two halves of attention ([`crate::row_scores`], [`crate::weighted_rows`]), and products of
//! decoded weights. Same chains as the scalar forms, several at a time.
#![expect(
    unsafe_code,
    reason = "calls functions that need AVX2, FMA and F16C; unaligned loads"
)]

use std::arch::x86_64::*;
use std::cell::RefCell;

use ds4_gguf::TensorType;

use super::avx2::reg::load_half;
use crate::{Activations, Matrix, codec};

/// Heads (or tokens) of a tile of products; two accumulators for each pair of head and row.
const TILE_HEADS: usize = 3;
/// Rows of such a tile.
const TILE_ROWS: usize = 2;
/// Rows of a tile with a single head: as many accumulators as the latency of a product asks for.
const LONE_ROWS: usize = 4;
/// Heads of a tile of weighted sums.
const SUM_HEADS: usize = 4;
/// Rows of weights decoded at a time: they stay in the second-level cache while all tokens pass.
const DECODED_ROWS: usize = 16;

thread_local! {
    /// Decoded rows of one tile.
    static DECODED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Whether the forms here apply: the processor has the instructions, and rows are whole pairs of vectors.
fn usable(dim: usize) -> bool {
    dim.is_multiple_of(16)
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

/// `s[h, j] = q_h · row_j`; false when nothing was done.
pub(crate) fn scores(q: &[f32], rows: &[&[f32]], s: &mut [f32], dim: usize) -> bool {
    let usable = usable(dim);
    if usable {
        let heads: Vec<&[f32]> = q.chunks_exact(dim).collect();
        // SAFETY: `usable` saw the features.
        unsafe { pairs(&heads, rows, &mut |h, j, x| s[h * rows.len() + j] = x) };
    }
    usable
}

/// `a · b`; `None` when nothing was done.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> Option<f32> {
    // SAFETY: `usable` saw the features.
    usable(a.len()).then(|| unsafe { tile([a], [b]) }[0][0])
}

/// Weights decoded to `f32`, activations as they are: plain float types, and every type under `Precision::Exact`.
pub(crate) fn floats(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let cols = w.cols();
    if !usable(cols) {
        return super::pairs(w, x, y);
    }
    let tokens: Vec<&[f32]> = (0..y.len()).map(|t| x.row(t)).collect();
    let mut put = |t: usize, r: usize, x: f32| y[t][r] = x;
    if w.ty() == TensorType::F32
        && let Ok(numbers) = bytemuck::try_cast_slice::<_, f32>(w.bytes())
    {
        let rows: Vec<&[f32]> = numbers.chunks_exact(cols).collect();
        // SAFETY: `usable` saw the features.
        return unsafe { pairs(&tokens, &rows, &mut put) };
    }
    if w.ty() == TensorType::F16 && tokens.len() <= TILE_HEADS {
        let halves = w.bytes().chunks_exact(2 * cols).map(Halves);
        let rows: Vec<Halves<'_>> = halves.collect();
        // SAFETY: `usable` saw the features.
        return unsafe { pairs(&tokens, &rows, &mut put) };
    }
    DECODED.with_borrow_mut(|decoded| {
        for first in (0..w.rows()).step_by(DECODED_ROWS) {
            let end = w.rows().min(first + DECODED_ROWS);
            decoded.resize((end - first) * cols, 0.0);
            decode(w.part(first, end), decoded);
            let rows: Vec<&[f32]> = decoded.chunks_exact(cols).collect();
            // SAFETY: `usable` saw the features.
            unsafe { pairs(&tokens, &rows, &mut |t, r, x| put(t, first + r, x)) };
        }
    });
}

/// Every row of `w`, `[rows, cols]`.
fn decode(w: Matrix<'_>, out: &mut [f32]) {
    if w.ty() == TensorType::F16 {
        // SAFETY: `floats` comes here only when `usable` saw the features.
        return unsafe { decode_f16(w.bytes(), out) };
    }
    let codec = codec(w.ty()).expect("Matrix::new checks that there is a codec");
    codec
        .decode(w.bytes(), out)
        .expect("the lengths are those of whole rows");
}

#[target_feature(enable = "avx2,fma,f16c")]
fn decode_f16(bytes: &[u8], out: &mut [f32]) {
    for (b, out) in bytes.as_chunks().0.iter().zip(out.chunks_exact_mut(8)) {
        store(out, _mm256_cvtph_ps(load_half(b)));
    }
}

/// A row of a matrix, 16 numbers at a time.
trait Row: Copy {
    /// Numbers `at..at + 16`.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn pair(self, at: usize) -> [__m256; 2];
}

impl Row for &[f32] {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn pair(self, at: usize) -> [__m256; 2] {
        pair(self, at)
    }
}

/// A row of half floats as bytes.
#[derive(Clone, Copy)]
struct Halves<'a>(&'a [u8]);

impl Row for Halves<'_> {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn pair(self, at: usize) -> [__m256; 2] {
        let bytes: &[u8; 32] = self.0[2 * at..].first_chunk().expect("16 numbers are left");
        let (halves, _) = bytes.as_chunks();
        [
            _mm256_cvtph_ps(load_half(&halves[0])),
            _mm256_cvtph_ps(load_half(&halves[1])),
        ]
    }
}

/// Hand `x_t · w_r` to `put(t, r, ·)` for all pairs.
#[target_feature(enable = "avx2,fma,f16c")]
fn pairs<W: Row>(x: &[&[f32]], w: &[W], put: &mut impl FnMut(usize, usize, f32)) {
    let (mut w, mut done) = (w, 0);
    if let &[x] = x {
        let (fours, rest) = w.as_chunks::<LONE_ROWS>();
        for (j, four) in fours.iter().enumerate() {
            hand_out(&tile([x], *four), 0, j * LONE_ROWS, put);
        }
        (w, done) = (rest, w.len() - rest.len());
    }
    for (i, x) in x.chunks(TILE_HEADS).enumerate() {
        for (j, w) in w.chunks(TILE_ROWS).enumerate() {
            let (t, r) = (i * TILE_HEADS, done + j * TILE_ROWS);
            match (x, w) {
                (&[a, b, c], &[u, v]) => hand_out(&tile([a, b, c], [u, v]), t, r, put),
                (&[a, b], &[u, v]) => hand_out(&tile([a, b], [u, v]), t, r, put),
                (&[a], &[u, v]) => hand_out(&tile([a], [u, v]), t, r, put),
                _ => {
                    for (t, x) in (t..).zip(x) {
                        for (r, w) in (r..).zip(w) {
                            put(t, r, tile([x], [*w])[0][0]);
                        }
                    }
                }
            }
        }
    }
}

fn hand_out<const R: usize>(
    tile: &[[f32; R]],
    t: usize,
    r: usize,
    put: &mut impl FnMut(usize, usize, f32),
) {
    for (t, row) in (t..).zip(tile) {
        for (r, &x) in (r..).zip(row) {
            put(t, r, x);
        }
    }
}

/// Products of T rows with R rows of the same length, a multiple of 16.
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<W: Row, const T: usize, const R: usize>(x: [&[f32]; T], w: [W; R]) -> [[f32; R]; T] {
    let len = x[0].len();
    let x = x.map(|x| &x[..len]);
    let mut acc = [[[_mm256_setzero_ps(); 2]; R]; T];
    for c in (0..len).step_by(16) {
        let mut weights = [[_mm256_setzero_ps(); 2]; R];
        for r in 0..R {
            // SAFETY: this function has the same contract.
            weights[r] = unsafe { w[r].pair(c) };
        }
        for (acc, x) in acc.iter_mut().zip(x) {
            let x = pair(x, c);
            for (acc, w) in acc.iter_mut().zip(weights) {
                *acc = [
                    _mm256_fmadd_ps(x[0], w[0], acc[0]),
                    _mm256_fmadd_ps(x[1], w[1], acc[1]),
                ];
            }
        }
    }
    acc.map(|acc| acc.map(|acc| fold(_mm256_add_ps(acc[0], acc[1]))))
}

/// Eight numbers folded in halves.
#[target_feature(enable = "avx2,fma")]
fn fold(x: __m256) -> f32 {
    let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
}

/// `o[h, c] = Σ_j p[h, j] · row_j[c]`; false when nothing was done.
pub(crate) fn weighted(p: &[f32], rows: &[&[f32]], o: &mut [f32], dim: usize) -> bool {
    let usable = usable(dim);
    if usable {
        // SAFETY: `usable` saw the features.
        unsafe { sum_all(p, rows, o, dim) };
    }
    usable
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
    let x = &x[at..at + 16];
    [load(&x[..8]), load(&x[8..])]
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
