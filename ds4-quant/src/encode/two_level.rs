//! Blocks of 256 whose groups carry a small integer scale and minimum under two `f16`: Q2_K, Q4_K, Q5_K.
//!
//! ```text
//! w[i] = d · scale[g] · q[i] − dmin · min[g]          g = the group of i
//! ```
//!
//! Without importance the integers are the groups' fits rounded linearly to the block's largest. With importance
//! they are fitted themselves, each group weighted by the sum of its weights. Codes are redone with the stored
//! numbers in either case.

use half::f16;

use super::Encoder;
use crate::search::affine::{self, Trials};
use crate::search::{Tile, energies, nearest_in, positive, tile};
use crate::simd::lanes::{Float, LANES, Lanes};

/// Weights in a block.
pub(crate) const BLOCK: usize = 256;
const MOST_GROUPS: usize = 16;
/// Tiles that are fitted side by side; those of eight blocks are a multiple.
const TOGETHER: usize = 2;

/// How one of the formats is searched.
pub(crate) struct Recipe {
    /// Largest integer scale or minimum.
    pub(crate) top: f32,
    /// Factor on the block's mean square in the weights.
    pub(crate) energy: f32,
    /// Trials for a group without importance.
    pub(crate) plain: Trials,
    /// Trials for a group with importance.
    pub(crate) weighted: Trials,
}

/// A block, before its bits are packed.
pub(crate) struct Block {
    pub(crate) d: f16,
    pub(crate) dmin: f16,
    pub(crate) scales: [u8; MOST_GROUPS],
    pub(crate) mins: [u8; MOST_GROUPS],
    pub(crate) codes: [u8; BLOCK],
}

/// One of the formats.
pub(crate) trait TwoLevel: Encoder {
    /// How it is searched.
    const RECIPE: Recipe;

    /// Weights of eight groups without importance.
    fn plain_weights<L: Lanes, const G: usize>(lanes: L, x: &Tile<L, G>) -> Tile<L, G>;

    /// A better block than the one that was found, if the format knows of one.
    fn better(x: &[f32; BLOCK], importance: Option<&[f32]>, found: Block) -> Block {
        let _ = (x, importance);
        found
    }

    /// The bytes of a block.
    fn pack(block: &Block, bytes: &mut [u8]);
}

/// Fits of the groups of up to eight blocks.
struct Fits {
    scale: [f32; LANES * MOST_GROUPS],
    min: [f32; LANES * MOST_GROUPS],
    inverse: [f32; LANES * MOST_GROUPS],
    from: [f32; LANES * MOST_GROUPS],
    weight: [f32; LANES * MOST_GROUPS],
}

/// Encode a row in groups of `G`, `GROUPS` a block.
#[inline(always)]
pub(crate) fn encode<L: Lanes, T: TwoLevel, const G: usize, const GROUPS: usize>(
    lanes: L,
    row: &[f32],
    importance: Option<&[f32]>,
    bytes: &mut [u8],
) {
    const { assert!(G * GROUPS == BLOCK) };
    let block_bytes = T::TY.block_bytes();
    let chunks = row
        .chunks(LANES * BLOCK)
        .zip(bytes.chunks_mut(LANES * block_bytes));
    for (i, (x, bytes)) in chunks.enumerate() {
        let a = importance.map(|a| &a[i * LANES * BLOCK..][..x.len()]);
        let fits = fit_groups::<L, T, G, GROUPS>(lanes, x, a);
        let blocks = quantize_scales::<L, T, GROUPS>(lanes, &fits, a.is_some());
        let out = x
            .as_chunks::<BLOCK>()
            .0
            .iter()
            .zip(bytes.chunks_exact_mut(block_bytes));
        for (b, (quantized, (x, bytes))) in blocks.iter().zip(out).enumerate() {
            let block = code::<L, T, G, GROUPS>(lanes, x, quantized, &fits, b * GROUPS);
            let a = a.map(|a| &a[b * BLOCK..][..BLOCK]);
            T::pack(&T::better(x, a, block), bytes);
        }
    }
}

#[inline(always)]
fn fit_groups<L: Lanes, T: TwoLevel, const G: usize, const GROUPS: usize>(
    lanes: L,
    x: &[f32],
    importance: Option<&[f32]>,
) -> Fits {
    let none = [0.0; LANES * MOST_GROUPS];
    let mut fits = Fits {
        scale: none,
        min: none,
        inverse: none,
        from: none,
        weight: none,
    };
    let energy = if importance.is_some() {
        energies(lanes, x)
    } else {
        [0.0; LANES]
    };
    for first in (0..x.len() / (LANES * G)).step_by(TOGETHER) {
        let none = [lanes.splat(0.0); G];
        let (mut tiles, mut weights) = ([none; TOGETHER], [none; TOGETHER]);
        let mut trials = T::RECIPE.plain;
        for k in 0..TOGETHER {
            let at = (first + k) * LANES * G;
            let tx = tile::<L, G>(lanes, x.get(at..).unwrap_or_default());
            let w = match importance {
                Some(a) => {
                    trials = T::RECIPE.weighted;
                    let mean = T::RECIPE.energy * energy[at / BLOCK] / BLOCK as f32;
                    let mut w = tile::<L, G>(lanes, a.get(at..).unwrap_or_default());
                    for i in 0..G {
                        w[i] = w[i] * (lanes.splat(mean) + tx[i] * tx[i]).sqrt();
                    }
                    w
                }
                None => T::plain_weights(lanes, &tx),
            };
            let mut sum = lanes.splat(0.0);
            for &w in &w {
                sum = sum + w;
            }
            let group = (first + k) * LANES;
            fits.weight[group..group + LANES].copy_from_slice(&sum.to_array());
            (tiles[k], weights[k]) = (tx, w);
        }
        let found = affine::fit(lanes, trials, &tiles, &weights);
        for (k, fit) in found.iter().enumerate() {
            let group = (first + k) * LANES;
            fits.scale[group..group + LANES].copy_from_slice(&fit.scale.to_array());
            fits.min[group..group + LANES].copy_from_slice(&fit.min.to_array());
            fits.inverse[group..group + LANES].copy_from_slice(&fit.inverse.to_array());
            fits.from[group..group + LANES].copy_from_slice(&fit.from.to_array());
        }
    }
    fits
}

/// The stored numbers of a block.
#[derive(Clone, Copy, Default)]
struct Quantized {
    d: f16,
    dmin: f16,
    scales: [u8; MOST_GROUPS],
    mins: [u8; MOST_GROUPS],
}

/// Blocks that `fits` does not hold come out as zeros.
#[inline(always)]
fn quantize_scales<L: Lanes, T: TwoLevel, const GROUPS: usize>(
    lanes: L,
    fits: &Fits,
    weighted: bool,
) -> [Quantized; LANES] {
    let top = T::RECIPE.top;
    let mut out = [Quantized::default(); LANES];
    if !weighted {
        for (b, out) in out.iter_mut().enumerate() {
            let groups = b * GROUPS..(b + 1) * GROUPS;
            (out.d, out.scales) = linear(&fits.scale[groups.clone()], top);
            (out.dmin, out.mins) = linear(&fits.min[groups], top);
        }
        return out;
    }
    let weight = tile::<L, GROUPS>(lanes, &fits.weight);
    let (d, scales) = positive::fit(lanes, top, &tile::<L, GROUPS>(lanes, &fits.scale), &weight);
    let (dmin, mins) = positive::fit(lanes, top, &tile::<L, GROUPS>(lanes, &fits.min), &weight);
    let (d, dmin) = (d.to_array(), dmin.to_array());
    for g in 0..GROUPS {
        let (scale, min) = (scales[g].to_bytes(), mins[g].to_bytes());
        for (b, out) in out.iter_mut().enumerate() {
            out.scales[g] = scale[b].min(top as u8);
            out.mins[g] = min[b].min(top as u8);
        }
    }
    for (b, out) in out.iter_mut().enumerate() {
        out.d = f16::from_f32(d[b]);
        out.dmin = f16::from_f32(dmin[b]);
    }
    out
}

/// Integers 0..=top proportional to `x`, and the unit.
fn linear(x: &[f32], top: f32) -> (f16, [u8; MOST_GROUPS]) {
    let largest = x.iter().fold(0.0f32, |a, &b| if b > a { b } else { a });
    let mut codes = [0; MOST_GROUPS];
    if largest > 0.0 {
        let inverse = top / largest;
        for (code, &x) in codes.iter_mut().zip(x) {
            *code = (inverse * x).round_ties_even().clamp(0.0, top) as u8;
        }
    }
    (f16::from_f32(largest / top), codes)
}

#[inline(always)]
fn code<L: Lanes, T: TwoLevel, const G: usize, const GROUPS: usize>(
    lanes: L,
    x: &[f32],
    quantized: &Quantized,
    fits: &Fits,
    first_group: usize,
) -> Block {
    let mut codes = [0; BLOCK];
    let (zero, n) = (lanes.splat(0.0), lanes.splat(T::RECIPE.weighted.n));
    let (d, dmin) = (quantized.d.to_f32(), quantized.dmin.to_f32());
    for g in 0..GROUPS {
        let scale = d * f32::from(quantized.scales[g]);
        let min = dmin * f32::from(quantized.mins[g]);
        let x = x[g * G..(g + 1) * G].as_chunks().0;
        let out = codes[g * G..(g + 1) * G].as_chunks_mut().0;
        if scale == 0.0 {
            // Such codes decode to the minimum whatever they are; these are the ones the fit ended on.
            let inverse = lanes.splat(fits.inverse[first_group + g]);
            let from = lanes.splat(fits.from[first_group + g]);
            for (x, out) in x.iter().zip(out) {
                *out = nearest_in(inverse * (lanes.load(x) - from), zero, n).to_bytes();
            }
        } else {
            let (scale, min) = (lanes.splat(scale), lanes.splat(min));
            for (x, out) in x.iter().zip(out) {
                *out = nearest_in((lanes.load(x) + min) / scale, zero, n).to_bytes();
            }
        }
    }
    Block {
        d: quantized.d,
        dmin: quantized.dmin,
        scales: quantized.scales,
        mins: quantized.mins,
        codes,
    }
}
