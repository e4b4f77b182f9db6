//! Q4_0: 32 codes 0..=15 meaning −8..7 under one `f16`.
//!
//! Without importance the extreme weight becomes −8; with it nineteen scales around that are tried.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use crate::search::{extremes, nearest_in, symmetric, tile, untile};
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
        let mean = row.iter().fold(0.0, |sum, x| sum + x * x) / row.len() as f32;
        let zero = lanes.splat(0.0);
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            let x = tile::<L, BLOCK>(lanes, x);
            let mut codes = x;
            let d = match importance {
                Some(a) => {
                    let mut w = tile::<L, BLOCK>(lanes, &a[i * LANES * BLOCK..]);
                    for i in 0..BLOCK {
                        w[i] = w[i] * (lanes.splat(mean) + x[i] * x[i]).sqrt();
                    }
                    let fit = symmetric::fit(lanes, N, &x, &w);
                    let silent = fit.inverse.same(zero);
                    for l in &mut codes {
                        let q = nearest_in(fit.inverse * *l, lanes.splat(-N), lanes.splat(N - 1.0));
                        *l = (q + lanes.splat(N)).replace(silent, zero);
                    }
                    fit.scale
                }
                None => {
                    let d = extremes(lanes, &x).1 / lanes.splat(-N);
                    let inverse = (lanes.splat(1.0) / d).replace(d.same(zero), zero);
                    for l in &mut codes {
                        *l = (*l * inverse + lanes.splat(N + 0.5))
                            .trunc()
                            .min(lanes.splat(15.0));
                    }
                    d
                }
            };
            let mut bytes = [0; LANES * BLOCK];
            untile(lanes, &codes, &mut bytes);
            let out = bytes
                .as_chunks::<BLOCK>()
                .0
                .iter()
                .zip(blocks.as_chunks_mut::<BYTES>().0);
            for ((codes, block), d) in out.zip(d.to_array()) {
                block[..2].copy_from_slice(&f16::from_f32(d).to_le_bytes());
                pack_halves(codes, &mut block[2..]);
            }
        }
    }
}

/// Code `j` in the low and code `j + 16` in the high nibble of byte `j`.
#[inline(always)]
pub(super) fn pack_halves(codes: &[u8; BLOCK], bytes: &mut [u8]) {
    for (j, byte) in bytes.iter_mut().enumerate() {
        *byte = codes[j] | codes[j + 16] << 4;
    }
}
