//! Any format on any processor: each packed block is expanded once, by the scalar code that specifies it, and meets
//! all rows of activations.

use crate::accumulate::{
    FloatChains, Products, SMALL_CHAINS, SUPER_CHAINS, fold, small_term, super_term,
};
use crate::format::packed::{Block, Integers};
use crate::{Activations, Matrix, Precision};

/// `y[t][r] = Σ w[r, i]·x[t, i]`, 16 bytes at a time by `P`.
pub(crate) fn rows<B: Block, P: Products>(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let blocks: &[B] = bytemuck::cast_slice(w.bytes());
    let n = w.cols() / B::LEN;
    if x.precision() == Precision::Exact {
        return exact(blocks, n, x, y);
    }
    match B::INTEGERS {
        Integers::Super { expand, min } => {
            let x: Vec<_> = (0..y.len()).map(|t| x.q8_k(t)).collect();
            each_row::<SUPER_CHAINS>(n, y, |r, b, acc| {
                let w = expand(&blocks[r * n + b]);
                for (x, acc) in x.iter().zip(acc) {
                    let (codes, sums) = (&x.codes[256 * b..][..256], &x.sums[16 * b..][..16]);
                    let acc = &mut acc[b % SUPER_CHAINS];
                    let t = super_term::<P>(&w, codes, sums, min);
                    *acc = x.scales[b].mul_add(t, *acc);
                }
            });
        }
        Integers::Small { expand } => {
            let x: Vec<_> = (0..y.len()).map(|t| x.q8_0(t)).collect();
            let parts = B::LEN / 32;
            each_row::<SMALL_CHAINS>(n * parts, y, |r, b, acc| {
                let w = expand(&blocks[r * n + b / parts], b % parts);
                for (x, acc) in x.iter().zip(acc) {
                    let (codes, sums) = (&x.codes[32 * b..][..32], &x.sums[2 * b..][..2]);
                    let acc = &mut acc[b % SMALL_CHAINS];
                    let t = small_term::<P>(&w, codes, sums);
                    *acc = x.scales[b].mul_add(t, *acc);
                }
            });
        }
    }
}

/// Call `add(r, b, acc)` for the `n` blocks of every row, with the accumulators of all rows of activations.
fn each_row<const CHAINS: usize>(
    n: usize,
    y: &mut [&mut [f32]],
    mut add: impl FnMut(usize, usize, &mut [[f32; CHAINS]]),
) {
    let rows = y.first().map_or(0, |y| y.len());
    let mut acc = vec![[0.0; CHAINS]; y.len()];
    for r in 0..rows {
        acc.fill([0.0; CHAINS]);
        for b in 0..n {
            add(r, b, &mut acc);
        }
        for (y, acc) in y.iter_mut().zip(&acc) {
            y[r] = fold(*acc);
        }
    }
}

/// Decoded weights with the activations as they are.
fn exact<B: Block>(blocks: &[B], n: usize, x: &Activations, y: &mut [&mut [f32]]) {
    let rows = y.first().map_or(0, |y| y.len());
    let mut row = vec![0.0; n * B::LEN];
    for r in 0..rows {
        let blocks = &blocks[r * n..][..n];
        for (block, w) in blocks.iter().zip(row.chunks_exact_mut(B::LEN)) {
            block.decode(w);
        }
        for (t, y) in y.iter_mut().enumerate() {
            let mut acc = FloatChains::new();
            acc.add(&row, x.row(t));
            y[r] = acc.sum();
        }
    }
}
