//! Q3_K: sixteen groups of 16 three-bit codes under signed 6-bit scales and one `f16`.
//!
//! Without importance a group's codes are refined one at a time with weights `x²`, and the scales are rounded
//! linearly. With importance both the groups and their scales are fitted by trial.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use super::q2_k::pack_two_bits;
use super::two_level::BLOCK;
use crate::search::{energies, nearest_in, symmetric, tile, untile};
use crate::simd::lanes::{Float, LANES, Lanes};

const GROUP: usize = 16;
const GROUPS: usize = BLOCK / GROUP;
const BYTES: usize = 110;
/// Codes are −N..N−1.
const N: f32 = 4.0;
/// Scales are −TOP..TOP−1.
const TOP: f32 = 32.0;

pub(crate) struct Q3K;

impl Encoder for Q3K {
    const TY: TensorType = TensorType::Q3K;
    const HALF_SCALES: &'static [usize] = &[108];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            // Codes of groups whose stored scale becomes 0 stay what the fit left.
            let mut codes = [0; LANES * BLOCK];
            let (d, scales) = match importance {
                Some(a) => weighted(lanes, x, &a[i * LANES * BLOCK..][..x.len()], &mut codes),
                None => plain(lanes, x, &mut codes),
            };
            let out = x.chunks_exact(BLOCK).zip(blocks.chunks_exact_mut(BYTES));
            for (b, ((x, block), codes)) in out.zip(codes.as_chunks_mut().0).enumerate() {
                let scales = &scales[b * GROUPS..][..GROUPS];
                code(lanes, x, d[b], scales, codes);
                pack(d[b], scales, codes, block);
            }
        }
    }
}

/// Unit and scales (`+ TOP`) of up to eight blocks, and the codes of the fit.
#[inline(always)]
fn weighted<L: Lanes>(
    lanes: L,
    x: &[f32],
    a: &[f32],
    codes: &mut [u8; LANES * BLOCK],
) -> ([f16; LANES], [u8; LANES * GROUPS]) {
    let (mut scale, mut weight) = ([0.0; LANES * GROUPS], [0.0; LANES * GROUPS]);
    let energy = energies(lanes, x);
    let (low, high, offset) = (lanes.splat(-N), lanes.splat(N - 1.0), lanes.splat(N));
    for batch in 0..x.len() / (LANES * GROUP) {
        let at = batch * LANES * GROUP;
        let mean = lanes.splat(2.0 * energy[at / BLOCK] / BLOCK as f32);
        let x = tile::<L, GROUP>(lanes, &x[at..]);
        let mut w = tile::<L, GROUP>(lanes, &a[at..]);
        let mut sum = lanes.splat(0.0);
        for i in 0..GROUP {
            w[i] = w[i] * (mean + x[i] * x[i]).sqrt();
            sum = sum + w[i];
        }
        let fit = symmetric::fit(lanes, N, &x, &w);
        let silent = fit.inverse.same(lanes.splat(0.0));
        let mut l = x;
        for l in &mut l {
            *l = nearest_in(fit.inverse * *l, low, high) + offset;
            *l = l.replace(silent, lanes.splat(0.0));
        }
        untile(lanes, &l, &mut codes[at..]);
        let group = batch * LANES;
        scale[group..group + LANES].copy_from_slice(&fit.scale.to_array());
        weight[group..group + LANES].copy_from_slice(&sum.to_array());
    }
    let scale = tile::<L, GROUPS>(lanes, &scale);
    let fit = symmetric::fit(lanes, TOP, &scale, &tile::<L, GROUPS>(lanes, &weight));
    let silent = fit.inverse.same(lanes.splat(0.0));
    let mut out = [0; LANES * GROUPS];
    let mut l = scale;
    for l in &mut l {
        *l = nearest_in(fit.inverse * *l, lanes.splat(-TOP), lanes.splat(TOP - 1.0))
            + lanes.splat(TOP);
        *l = l.replace(silent, lanes.splat(0.0));
    }
    untile(lanes, &l, &mut out);
    (fit.scale.to_array().map(f16::from_f32), out)
}

/// As [`weighted`].
#[inline(always)]
fn plain<L: Lanes>(
    lanes: L,
    x: &[f32],
    codes: &mut [u8; LANES * BLOCK],
) -> ([f16; LANES], [u8; LANES * GROUPS]) {
    let mut scale = [0.0; LANES * GROUPS];
    for batch in 0..x.len() / (LANES * GROUP) {
        let at = batch * LANES * GROUP;
        let (fit, l) = symmetric::refine(lanes, N, &tile::<L, GROUP>(lanes, &x[at..]));
        untile(lanes, &l, &mut codes[at..]);
        scale[batch * LANES..][..LANES].copy_from_slice(&fit.to_array());
    }
    let (mut d, mut out) = ([f16::ZERO; LANES], [0; LANES * GROUPS]);
    for (b, (scale, out)) in scale
        .as_chunks::<GROUPS>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<GROUPS>().0)
        .enumerate()
    {
        let extreme = scale
            .iter()
            .fold(0.0f32, |a, &b| if b.abs() > a.abs() { b } else { a });
        if extreme != 0.0 {
            let inverse = -TOP / extreme;
            d[b] = f16::from_f32(1.0 / inverse);
            for (out, &scale) in out.iter_mut().zip(scale) {
                *out = ((inverse * scale).round_ties_even().clamp(-TOP, TOP - 1.0) + TOP) as u8;
            }
        }
    }
    (d, out)
}

/// Codes `+ N` with the stored numbers, where a group's scale is not 0.
#[inline(always)]
fn code<L: Lanes>(lanes: L, x: &[f32], d: f16, scales: &[u8], codes: &mut [u8; BLOCK]) {
    let (low, high, offset) = (lanes.splat(-N), lanes.splat(N - 1.0), lanes.splat(N));
    for (g, &scale) in scales.iter().enumerate() {
        let scale = d.to_f32() * (f32::from(scale) - TOP);
        if scale == 0.0 {
            continue;
        }
        let scale = lanes.splat(scale);
        let x = x[g * GROUP..][..GROUP].as_chunks().0;
        for (x, out) in x.iter().zip(codes[g * GROUP..][..GROUP].as_chunks_mut().0) {
            *out = (nearest_in(lanes.load(x) / scale, low, high) + offset).to_bytes();
        }
    }
}

/// ```text
/// byte 0..32     high bit of code 32k + l in bit k of byte l
/// byte 32..96    low bits, as Q2_K
/// byte 96..104   low nibbles of scales j (low) and j + 8 (high)
/// byte 104..108  top bits of scale j in bits 2·(j/4) of byte j % 4
/// byte 108..110  d
/// ```
fn pack(d: f16, scales: &[u8], codes: &[u8; BLOCK], block: &mut [u8]) {
    for (l, high) in block[..32].iter_mut().enumerate() {
        *high = (0..8).fold(0, |bits, k| bits | (codes[32 * k + l] >> 2) << k);
    }
    pack_two_bits(codes, &mut block[32..96]);
    for j in 0..8 {
        block[96 + j] = scales[j] & 15 | (scales[j + 8] & 15) << 4;
    }
    for j in 0..4 {
        block[104 + j] = (0..4).fold(0, |bits, quarter| {
            bits | scales[j + 4 * quarter] >> 4 << (2 * quarter)
        });
    }
    block[108..].copy_from_slice(&d.to_le_bytes());
}
