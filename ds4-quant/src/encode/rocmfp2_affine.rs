//! ROCmFP2 (id 107), affine layout: `code · s − o`, a scale and an offset byte for 32 weights.
//!
//! From a first guess the scale, the offset, and the scale again are searched in full, each with the other fixed:
//! least `Σ w·error²`, the smaller byte on a tie. Bounds as in [`rocm`](super::rocm): the largest weight is clipped
//! by small scales and large offsets, the smallest one by small offsets, and a scale at which all codes are 0 gives
//! what every larger one does.

use ds4_gguf::TensorType;

use super::Encoder;
use super::rocm::{BLOCK, LARGEST, LARGEST_SCALE, row_energy, scale_of, weigh};
use super::rocmfp2::pack_two_bits;
use crate::codebook::{nearest_ue4m3, ue4m3};
use crate::search::{Tile, tile, untile};
use crate::simd::lanes::{Float, Int, LANES, Lanes, Mask};

const BYTES: usize = 10;

pub(crate) struct Affine;

impl Encoder for Affine {
    const TY: TensorType = TensorType::RocmFp2Affine;
    const LARGEST: f32 = 3.0 * LARGEST_SCALE;

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let energy = importance.map(|_| row_energy(row));
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            let x = tile::<L, BLOCK>(lanes, x);
            let mut w = [lanes.splat(1.0); BLOCK];
            if let (Some(a), Some(energy)) = (importance, energy) {
                w = tile(lanes, &a[i * LANES * BLOCK..]);
                weigh(lanes, energy, &x, &mut w);
            }
            let (scales, offsets) = search(lanes, &x, &w);
            let (scale, offset) = (scale_of(lanes, scales), scale_of(lanes, offsets));
            let mut codes = x;
            for code in &mut codes {
                *code = self::code(lanes, *code, scale, offset);
            }
            let mut flat = [0; LANES * BLOCK];
            untile(lanes, &codes, &mut flat);
            let (scales, offsets) = (scales.to_array(), offsets.to_array());
            let out = blocks
                .as_chunks_mut::<BYTES>()
                .0
                .iter_mut()
                .zip(flat.as_chunks().0);
            for (lane, (block, codes)) in out.enumerate() {
                pack_two_bits(codes, &mut block[..8]);
                block[8] = scales[lane] as u8;
                block[9] = offsets[lane] as u8;
            }
        }
    }
}

/// `floor((x + o) / s + ½)` within 0..=3; 0 where `s` is 0.
#[inline(always)]
fn code<L: Lanes>(lanes: L, x: L::F, scale: L::F, offset: L::F) -> L::F {
    let (zero, one) = (lanes.splat(0.0), lanes.splat(1.0));
    let silent = scale.same(zero);
    let q = ((x + offset) / scale.replace(silent, one) + lanes.splat(0.5)).floor();
    q.min(lanes.splat(3.0)).max(zero).replace(silent, zero)
}

/// What is being searched, and which way.
#[derive(Clone, Copy, PartialEq)]
enum Walk {
    SmallerScale,
    LargerScale,
    SmallerOffset,
    LargerOffset,
}

/// `Σ w·(x − (code·s − o))²` of eight blocks, and the part of it that cannot fall on the way that `walk` goes: weights
/// beyond the end that recedes from them, or, for larger scales, on code 0.
#[inline(always)]
fn error<L: Lanes>(
    lanes: L,
    x: &Tile<L, BLOCK>,
    w: &Tile<L, BLOCK>,
    scale: L::F,
    offset: L::F,
    walk: Walk,
) -> (L::F, L::F) {
    let (zero, three) = (lanes.splat(0.0), lanes.splat(3.0));
    let (low, high) = (zero - offset, three * scale - offset);
    let (mut sum, mut stuck) = (zero, zero);
    for i in 0..BLOCK {
        let code = code(lanes, x[i], scale, offset);
        let miss = x[i] - (code * scale - offset);
        let term = w[i] * miss * miss;
        sum = sum + term;
        let stays = match walk {
            Walk::LargerScale => code.same(zero),
            Walk::SmallerOffset => code.same(zero) & x[i].lt(low),
            Walk::SmallerScale | Walk::LargerOffset => code.same(three) & x[i].gt(high),
        };
        stuck = stuck.replace(stays, stuck + term);
    }
    (sum, stuck)
}

/// Scale and offset bytes of eight blocks.
#[inline(always)]
fn search<L: Lanes>(lanes: L, x: &Tile<L, BLOCK>, w: &Tile<L, BLOCK>) -> (L::U, L::U) {
    let zero = lanes.splat(0.0);
    // Range of the weights that count, or of all where none does.
    let (inf, mut any) = (lanes.splat(f32::INFINITY), zero);
    let (mut low, mut high, mut all_low, mut all_high) = (inf, zero - inf, inf, zero - inf);
    for i in 0..BLOCK {
        let counts = w[i].gt(zero);
        any = any.replace(counts, lanes.splat(1.0));
        low = low.replace(counts & x[i].lt(low), x[i]);
        high = high.replace(counts & x[i].gt(high), x[i]);
        all_low = all_low.min(x[i]);
        all_high = all_high.max(x[i]);
    }
    let none = any.same(zero);
    let (low, high) = (low.replace(none, all_low), high.replace(none, all_high));
    let silent = low.same(zero) & high.same(zero);

    let offset = zero.max(zero - low);
    let scale = ((high + offset) / lanes.splat(3.0)).max(lanes.splat(ue4m3(1)));
    let mut scale = lanes.load_int(&scale.to_array().map(|x| u32::from(nearest_ue4m3(x))));
    let mut offset = lanes.load_int(&offset.to_array().map(|x| u32::from(nearest_ue4m3(x))));
    let (mut best, _) = error(
        lanes,
        x,
        w,
        scale_of(lanes, scale),
        scale_of(lanes, offset),
        Walk::LargerScale,
    );
    for searched in [Searched::Scale, Searched::Offset, Searched::Scale] {
        let (from_scale, from_offset) = (scale, offset);
        let (ways, bytes) = match searched {
            Searched::Scale => ([Walk::SmallerScale, Walk::LargerScale], &mut scale),
            Searched::Offset => ([Walk::SmallerOffset, Walk::LargerOffset], &mut offset),
        };
        for way in ways {
            walk(lanes, x, w, way, from_scale, from_offset, &mut best, bytes);
        }
    }
    let nothing = lanes.splat_int(0);
    (
        scale.replace(silent, nothing),
        offset.replace(silent, nothing),
    )
}

#[derive(Clone, Copy)]
enum Searched {
    Scale,
    Offset,
}

/// Go from byte to byte until nothing better can come in any lane; take the smaller of equals.
#[expect(
    clippy::too_many_arguments,
    reason = "one loop's state, split only so that it exists once"
)]
#[inline(always)]
fn walk<L: Lanes>(
    lanes: L,
    x: &Tile<L, BLOCK>,
    w: &Tile<L, BLOCK>,
    way: Walk,
    mut scale: L::U,
    mut offset: L::U,
    best: &mut L::F,
    best_byte: &mut L::U,
) {
    let down = matches!(way, Walk::SmallerScale | Walk::SmallerOffset);
    let step = lanes.splat_int(if down { u32::MAX } else { 1 });
    let (first, last) = match way {
        Walk::SmallerScale => (1.0, f32::MAX),
        Walk::SmallerOffset => (0.0, f32::MAX),
        Walk::LargerScale | Walk::LargerOffset => (0.0, f32::from(LARGEST)),
    };
    let (first, last) = (lanes.splat(first), lanes.splat(last));
    let mut open = first.same(first);
    loop {
        let byte = match way {
            Walk::SmallerScale | Walk::LargerScale => &mut scale,
            Walk::SmallerOffset | Walk::LargerOffset => &mut offset,
        };
        *byte = *byte + step;
        let byte = *byte;
        let value = byte.to_float();
        open = open & value.ge(first) & last.ge(value);
        if !open.any() {
            return;
        }
        let (error, stuck) = error(
            lanes,
            x,
            w,
            scale_of(lanes, scale),
            scale_of(lanes, offset),
            way,
        );
        let better = open
            & if down {
                best.ge(error)
            } else {
                error.lt(*best)
            };
        *best = best.replace(better, error);
        *best_byte = best_byte.replace(better, byte);
        open = open
            & if down {
                best.ge(stuck)
            } else {
                stuck.lt(*best)
            };
    }
}
