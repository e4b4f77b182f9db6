//! The search of the ROCmFPX formats: which of the 126 scale bytes serves a group best.
//!
//! The answer is that of trying all of them, `E(b) = Σ w·(x − level·scale(b))²` summed in order, the smaller byte on
//! a tie. Two bounds make it short. Downwards, the weight that matters most is clipped, and what that alone costs
//! only grows. Upwards, weights below the first level cost no less with any larger scale, and there are ever more of
//! them. Where such a part exceeds the best total, nothing better lies beyond: rounded sums of terms that are not
//! negative keep that order.

use ds4_gguf::TensorType;

use super::Encoder;
use crate::codebook;
use crate::search::{Tile, extremes, tile, untile};
use crate::simd::lanes::{Float, Int, LANES, Lanes, Mask};

/// Weights in a block of any format of the family.
pub(crate) const BLOCK: usize = 32;
/// What the largest valid scale byte stands for.
pub(super) const LARGEST_SCALE: f32 = 224.0;
/// Largest valid scale byte.
pub(super) const LARGEST: u8 = 0x7e;

/// The levels of a format and the codes that stand for them.
pub(crate) trait Levels {
    /// The format.
    const TY: TensorType;
    /// The lowest and the highest level.
    const ENDS: [f32; 2];
    /// Below this magnitude of `x / scale` the error does not fall as the scale grows.
    const STILL: f32 = 0.5;
    /// The code of everything in a group of scale 0.
    const SILENT_CODE: f32 = 0.0;

    /// Whether the levels of negative numbers are those of their magnitudes, negated. Then `level` is only asked for
    /// numbers that are not negative, and what it gives may be either zero.
    const SYMMETRIC: bool = true;

    /// The level for `q = x / scale`.
    fn level<L: Lanes>(lanes: L, q: L::F) -> L::F;

    /// The code of a level.
    fn code<L: Lanes>(lanes: L, level: L::F) -> L::F;

    /// One block: codes of 32 weights, and its one or two scale bytes.
    fn pack(codes: &[u8; BLOCK], scales: &[u8], block: &mut [u8]);
}

/// The encoder of levels `V` in groups of `G`.
pub(crate) struct Searched<V, const G: usize>(std::marker::PhantomData<V>);

impl<V: Levels, const G: usize> Encoder for Searched<V, G> {
    const TY: TensorType = V::TY;
    const LARGEST: f32 = LARGEST_SCALE * V::ENDS[0].abs().max(V::ENDS[1]);

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let energy = importance.map(|_| row_energy(row));
        let bytes = V::TY.block_bytes();
        let chunks = row
            .chunks(LANES * G)
            .zip(blocks.chunks_mut(LANES * G / BLOCK * bytes));
        for (i, (x, blocks)) in chunks.enumerate() {
            let x = tile::<L, G>(lanes, x);
            let mut w = [lanes.splat(1.0); G];
            if let (Some(a), Some(energy)) = (importance, energy) {
                w = tile(lanes, &a[i * LANES * G..]);
                weigh(lanes, energy, &x, &mut w);
            }
            let mut sizes = x;
            if V::SYMMETRIC {
                for x in &mut sizes {
                    *x = x.abs();
                }
            }
            let scales = best_scales::<L, V, G>(lanes, &sizes, &w);
            let mut codes = x;
            code_tile::<L, V, G>(lanes, &scales, &mut codes);
            let mut flat = [0; LANES * BLOCK];
            untile(lanes, &codes, &mut flat);
            let parts = flat
                .as_chunks()
                .0
                .iter()
                .zip(scales.chunks_exact(BLOCK / G));
            for (block, (codes, scales)) in blocks.chunks_exact_mut(bytes).zip(parts) {
                V::pack(codes, scales, block);
            }
        }
    }
}

/// `Σ x² / n` over a row, in order.
pub(super) fn row_energy(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |sum, x| sum + x * x) / row.len() as f32
}

/// Importance to weights: `w = a · sqrt(σ² + x²)`, 0 where `a` is 0.
#[inline(always)]
pub(super) fn weigh<L: Lanes, const G: usize>(
    lanes: L,
    energy: f32,
    x: &Tile<L, G>,
    w: &mut Tile<L, G>,
) {
    let energy = lanes.splat(energy);
    for i in 0..G {
        w[i] = w[i] * (energy + x[i] * x[i]).sqrt();
    }
}

/// The scale of valid bytes.
#[inline(always)]
pub(super) fn scale_of<L: Lanes>(lanes: L, byte: L::U) -> L::F {
    let byte_value = byte.to_float();
    let normal = (byte + lanes.splat_int(119 << 3)).shl(20).as_float_bits();
    let small = byte_value * lanes.splat(2f32.powi(-10));
    normal.replace(byte_value.lt(lanes.splat(8.0)), small)
}

/// Levels of eight groups in place of the weights, and their codes in place of those.
#[inline(always)]
fn code_tile<L: Lanes, V: Levels, const G: usize>(
    lanes: L,
    scales: &[u8; LANES],
    x: &mut Tile<L, G>,
) {
    let scale = scale_of(lanes, lanes.load_int(&scales.map(u32::from)));
    let silent = scale.same(lanes.splat(0.0));
    let inverse = lanes.splat(1.0) / scale;
    for x in x {
        let q = *x * inverse;
        let level = if V::SYMMETRIC {
            V::level(lanes, q.abs()).copysign(q)
        } else {
            V::level(lanes, q)
        };
        let code = V::code(lanes, level);
        *x = code.replace(silent, lanes.splat(V::SILENT_CODE));
    }
}

/// The best scale byte of eight groups; 0 where all weights are 0.
///
/// * `x`: weights, or their magnitudes where levels are symmetric: these miss by as much
#[inline(always)]
fn best_scales<L: Lanes, V: Levels, const G: usize>(
    lanes: L,
    x: &Tile<L, G>,
    w: &Tile<L, G>,
) -> [u8; LANES] {
    let zero = lanes.splat(0.0);
    let [low, high] = V::ENDS;
    let (largest, _) = extremes(lanes, x);
    let top = if high > -low { high } else { -low };
    let mut first = [0; LANES];
    for (byte, scale) in first
        .iter_mut()
        .zip((largest / lanes.splat(top)).to_array())
    {
        *byte = u32::from(codebook::nearest_ue4m3(scale));
    }

    // The weight that matters most: its value, its weight, and the level it is clipped to.
    let (mut most, mut key, mut key_w) = (zero, zero, zero);
    for i in 0..G {
        let matters = w[i] * x[i] * x[i];
        let more = matters.gt(most);
        most = most.replace(more, matters);
        key = key.replace(more, x[i]);
        key_w = key_w.replace(more, w[i]);
    }
    let end = lanes.splat(high).replace(key.lt(zero), lanes.splat(-low));
    let key = key.abs();

    let mut byte = lanes.load_int(&first);
    let (mut best, _) = error::<L, V, G>(lanes, scale_of(lanes, byte), x, w);
    let mut best_byte = byte;
    let one = lanes.splat_int(1);
    let minus_one = lanes.splat_int(u32::MAX);
    let (lowest, highest) = (lanes.splat(1.0), lanes.splat(f32::from(LARGEST)));

    loop {
        byte = byte + minus_one;
        let scale = scale_of(lanes, byte);
        let clipped = (key - end * scale).max(zero);
        let open = byte.to_float().ge(lowest) & best.ge(key_w * clipped * clipped);
        if !open.any() {
            break;
        }
        let (error, _) = error::<L, V, G>(lanes, scale, x, w);
        let better = open & best.ge(error);
        best = best.replace(better, error);
        best_byte = best_byte.replace(better, byte);
    }

    byte = lanes.load_int(&first);
    let mut open = largest.gt(zero);
    loop {
        byte = byte + one;
        open = open & highest.ge(byte.to_float());
        if !open.any() {
            break;
        }
        let (error, still) = error::<L, V, G>(lanes, scale_of(lanes, byte), x, w);
        let better = open & error.lt(best);
        best = best.replace(better, error);
        best_byte = best_byte.replace(better, byte);
        open = open & still.lt(best);
    }
    lanes
        .splat_int(0)
        .replace(largest.gt(zero), best_byte)
        .to_array()
        .map(|byte| byte as u8)
}

/// `Σ w·(x − level·scale)²`, and the part of it that weights below the first level have.
#[inline(always)]
fn error<L: Lanes, V: Levels, const G: usize>(
    lanes: L,
    scale: L::F,
    x: &Tile<L, G>,
    w: &Tile<L, G>,
) -> (L::F, L::F) {
    let inverse = lanes.splat(1.0) / scale;
    let limit = lanes.splat(V::STILL);
    let (mut sum, mut still) = (lanes.splat(0.0), lanes.splat(0.0));
    for i in 0..G {
        let q = x[i] * inverse;
        let miss = x[i] - V::level(lanes, q) * scale;
        let term = w[i] * miss * miss;
        sum = sum + term;
        let size = if V::SYMMETRIC { q } else { q.abs() };
        still = still.replace(size.lt(limit), still + term);
    }
    (sum, still)
}
