//! Q6_K: sixteen groups of 16 six-bit codes under signed 8-bit scales and one `f16`.
//!
//! Each group is fitted by trial with the importance itself as weights, or `x²` without; scales are rounded
//! linearly so that the extreme one becomes −128.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use super::two_level::BLOCK;
use crate::search::{SILENT, nearest_in, symmetric, tile};
use crate::simd::lanes::{Float, LANES, Lanes};

const GROUP: usize = 16;
const GROUPS: usize = BLOCK / GROUP;
const BYTES: usize = 210;
/// Codes are −N..N−1.
const N: f32 = 32.0;

pub(crate) struct Q6K;

impl Encoder for Q6K {
    const TY: TensorType = TensorType::Q6K;
    const HALF_SCALES: &'static [usize] = &[208];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let out = row.chunks_exact(BLOCK).zip(blocks.chunks_exact_mut(BYTES));
        for (b, (x, block)) in out.enumerate() {
            encode_block(
                lanes,
                x,
                importance.map(|a| &a[b * BLOCK..][..BLOCK]),
                block,
            );
        }
    }
}

#[inline(always)]
fn encode_block<L: Lanes>(lanes: L, x: &[f32], importance: Option<&[f32]>, block: &mut [u8]) {
    let (mut scale, mut inverse) = ([0.0; GROUPS], [0.0; GROUPS]);
    for batch in 0..GROUPS / LANES {
        let at = batch * LANES * GROUP;
        let x = tile::<L, GROUP>(lanes, &x[at..]);
        let mut w = x;
        match importance {
            Some(a) => w = tile(lanes, &a[at..]),
            None => {
                for w in &mut w {
                    *w = *w * *w;
                }
            }
        }
        let fit = symmetric::fit(lanes, N, &x, &w);
        scale[batch * LANES..][..LANES].copy_from_slice(&fit.scale.to_array());
        inverse[batch * LANES..][..LANES].copy_from_slice(&fit.inverse.to_array());
    }
    let extreme = scale
        .iter()
        .fold(0.0f32, |a, &b| if b.abs() > a.abs() { b } else { a });
    if extreme.abs() < SILENT {
        block.fill(0);
        return;
    }
    let unit = -128.0 / extreme;
    let d = f16::from_f32(1.0 / unit);
    let scales = scale.map(|scale| (unit * scale).round_ties_even().min(127.0) as i8);

    let mut codes = [0; BLOCK];
    let (low, high, offset) = (lanes.splat(-N), lanes.splat(N - 1.0), lanes.splat(N));
    for g in 0..GROUPS {
        let scale = d.to_f32() * f32::from(scales[g]);
        let x = x[g * GROUP..][..GROUP].as_chunks().0;
        for (x, out) in x.iter().zip(codes[g * GROUP..][..GROUP].as_chunks_mut().0) {
            let x = lanes.load(x);
            if scale != 0.0 {
                *out = (nearest_in(x / lanes.splat(scale), low, high) + offset).to_bytes();
            } else if inverse[g] != 0.0 {
                // Such codes decode to 0 whatever they are; these are the ones the fit ended on.
                *out = (nearest_in(lanes.splat(inverse[g]) * x, low, high) + offset).to_bytes();
            }
        }
    }
    pack(d, &scales, &codes, block);
}

/// ```text
/// byte 0..128    low nibbles: in each half, codes l and l + 64 in byte l, l + 32 and l + 96 in byte l + 32
/// byte 128..192  top bits of code 32k + l of a half in bits 2k of byte l
/// byte 192..208  scales
/// byte 208..210  d
/// ```
fn pack(d: f16, scales: &[i8; GROUPS], codes: &[u8; BLOCK], block: &mut [u8]) {
    for (half, codes) in codes.as_chunks::<128>().0.iter().enumerate() {
        let low = &mut block[64 * half..][..64];
        for (l, low) in low.iter_mut().enumerate() {
            *low = codes[l] & 15 | (codes[l + 64] & 15) << 4;
        }
        let high = &mut block[128 + 32 * half..][..32];
        for (l, high) in high.iter_mut().enumerate() {
            *high = (0..4).fold(0, |bits, k| bits | codes[32 * k + l] >> 4 << (2 * k));
        }
    }
    for (byte, &scale) in block[192..208].iter_mut().zip(scales) {
        *byte = scale as u8;
    }
    block[208..].copy_from_slice(&d.to_le_bytes());
}
