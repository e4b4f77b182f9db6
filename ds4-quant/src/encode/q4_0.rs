//! Q4_0: 32 codes 0..=15 meaning −8..7 under one `f16`.
//!
//! Without importance the extreme weight becomes −8; with it nineteen scales around that are tried.

use ds4_gguf::TensorType;

use super::Encoder;
use crate::search::{extreme_values, nearest_in, symmetric, tile, untile};
use crate::simd::lanes::{Float, LANES, Lanes};

const BLOCK: usize = 32;
const BYTES: usize = 18;
/// Codes mean −N..N−1.
const N: f32 = 8.0;

pub(crate) struct Q4_0;

impl Encoder for Q4_0 {
    const TY: TensorType = TensorType::Q4_0;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let mean = match importance {
            Some(_) => row.iter().fold(0.0, |sum, x| sum + x * x) / row.len() as f32,
            None => 0.0,
        };
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            match importance {
                Some(a) => weighted(lanes, mean, x, &a[i * LANES * BLOCK..], blocks),
                None => plain(lanes, x, blocks),
            }
        }
    }
}

/// Up to eight blocks, with the importance of their columns.
#[inline(always)]
fn weighted<L: Lanes>(lanes: L, mean: f32, x: &[f32], a: &[f32], blocks: &mut [u8]) {
    let zero = lanes.splat(0.0);
    let x = tile::<L, BLOCK>(lanes, x);
    let mut w = tile::<L, BLOCK>(lanes, a);
    for i in 0..BLOCK {
        w[i] = w[i] * (lanes.splat(mean) + x[i] * x[i]).sqrt();
    }
    let fit = symmetric::fit(lanes, N, &x, &w);
    let silent = fit.inverse.same(zero);
    let mut codes = x;
    for l in &mut codes {
        let q = nearest_in(fit.inverse * *l, lanes.splat(-N), lanes.splat(N - 1.0));
        *l = (q + lanes.splat(N)).replace(silent, zero);
    }
    let mut bytes = [0; LANES * BLOCK];
    untile(lanes, &codes, &mut bytes);
    let out = bytes
        .as_chunks::<BLOCK>()
        .0
        .iter()
        .zip(blocks.as_chunks_mut::<BYTES>().0);
    for ((codes, block), d) in out.zip(fit.scale.to_halves()) {
        block[..2].copy_from_slice(&d.to_le_bytes());
        pack_halves(codes, &mut block[2..]);
    }
}

/// Up to eight blocks.
#[inline(always)]
fn plain<L: Lanes>(lanes: L, x: &[f32], blocks: &mut [u8]) {
    let zero = lanes.splat(0.0);
    let d = extreme_values::<L, BLOCK>(lanes, x) / lanes.splat(-N);
    let inverse = (lanes.splat(1.0) / d).replace(d.same(zero), zero);
    let (d, inverse) = (d.to_halves(), inverse.to_array());
    let out = x
        .as_chunks::<BLOCK>()
        .0
        .iter()
        .zip(blocks.as_chunks_mut::<BYTES>().0);
    for (b, (x, block)) in out.enumerate() {
        let mut codes = [lanes.splat_int(0); BLOCK / LANES];
        for (codes, x) in codes.iter_mut().zip(x.as_chunks().0) {
            let x = lanes.load(x) * lanes.splat(inverse[b]);
            let code = (x + lanes.splat(N + 0.5)).trunc();
            *codes = code.min(lanes.splat(15.0)).to_int();
        }
        block[..2].copy_from_slice(&d[b].to_le_bytes());
        pack_halves(&lanes.bytes(codes), &mut block[2..]);
    }
}

/// Code `j` in the low and code `j + 16` in the high nibble of byte `j`.
#[inline(always)]
pub(super) fn pack_halves(codes: &[u8; BLOCK], bytes: &mut [u8]) {
    for (j, byte) in bytes.iter_mut().enumerate() {
        *byte = codes[j] | codes[j + 16] << 4;
    }
}
