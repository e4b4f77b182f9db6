//! Searches for scales, shared by the encoders.
//!
//! Each works on eight groups of weights at once, one a lane (see [`lanes`](crate::simd::lanes)), and does in
//! every lane what the reference encoder of llama.cpp does for one group, operation by operation: the codes
//! that come out are the same. What is saved is the time eight groups would take one after another.
//!
//! | module | codes | fits |
//! |---|---|---|
//! | [`symmetric`] | −n..n−1 | `x ≈ scale · l` |
//! | [`affine`] | 0..=n | `x ≈ scale · l − min`, `min ≥ 0` |
//! | [`positive`] | 0..=n | `x ≈ scale · l` for scales of scales |
//! | [`grid`] | points of a code book | `|x| ≈ scale · point` |

pub(crate) mod affine;
pub(crate) mod grid;
pub(crate) mod positive;
pub(crate) mod symmetric;

use crate::simd::lanes::{Float, LANES, Lanes, Mask};

/// Groups whose largest magnitude is below this are silent: they get scale 0.
pub(crate) const SILENT: f32 = 1e-15;

/// `N` elements of eight groups: element `i` of group `g` is lane `g` of entry `i`.
pub(crate) type Tile<L, const N: usize> = [<L as Lanes>::F; N];

/// Eight groups of `N` consecutive weights as a tile; `N` is a multiple of 8.
///
/// * `x`: `[8 · N]`; where it is shorter the missing weights are 0
#[inline(always)]
pub(crate) fn tile<L: Lanes, const N: usize>(lanes: L, x: &[f32]) -> Tile<L, N> {
    const { assert!(N.is_multiple_of(LANES)) };
    let zero = [0.0; LANES];
    let mut out = [lanes.splat(0.0); N];
    for first in (0..N).step_by(LANES) {
        let mut rows = [lanes.splat(0.0); LANES];
        for (g, row) in rows.iter_mut().enumerate() {
            let part = x.get(g * N + first..).and_then(|rest| rest.first_chunk());
            *row = lanes.load(part.unwrap_or(&zero));
        }
        let columns = lanes.transpose(rows);
        out[first..first + LANES].copy_from_slice(&columns);
    }
    out
}

/// Eight groups of `N` integers back in the order of the weights.
#[inline(always)]
pub(crate) fn untile<L: Lanes, const N: usize>(lanes: L, tile: &Tile<L, N>, out: &mut [u8]) {
    for first in (0..N).step_by(LANES) {
        let mut columns = [lanes.splat(0.0); LANES];
        columns.copy_from_slice(&tile[first..first + LANES]);
        for (g, row) in lanes.transpose(columns).into_iter().enumerate() {
            if let Some(part) = out
                .get_mut(g * N + first..)
                .and_then(|rest| rest.first_chunk_mut())
            {
                *part = row.to_bytes();
            }
        }
    }
}

/// Eight groups back in the order of the weights.
///
/// * `out`: at least `[8 · N]`
#[inline(always)]
pub(crate) fn untile_floats<L: Lanes, const N: usize>(
    lanes: L,
    tile: &Tile<L, N>,
    out: &mut [f32],
) {
    for first in (0..N).step_by(LANES) {
        let mut columns = [lanes.splat(0.0); LANES];
        columns.copy_from_slice(&tile[first..first + LANES]);
        for (g, row) in lanes.transpose(columns).into_iter().enumerate() {
            out[g * N + first..][..LANES].copy_from_slice(&row.to_array());
        }
    }
}

/// Nearest integer, halves to even, held between `low` and `high`.
#[inline(always)]
pub(crate) fn nearest_in<F: Float>(x: F, low: F, high: F) -> F {
    x.round().min(high).max(low)
}

/// `Σ x²` of up to eight blocks of 256, each summed in order.
#[inline(always)]
pub(crate) fn energies<L: Lanes>(lanes: L, x: &[f32]) -> [f32; LANES] {
    const BLOCK: usize = 256;
    let zero = [0.0; LANES];
    let mut sum = lanes.splat(0.0);
    for first in (0..BLOCK).step_by(LANES) {
        let mut rows = [lanes.splat(0.0); LANES];
        for (b, row) in rows.iter_mut().enumerate() {
            let part = x
                .get(b * BLOCK + first..)
                .and_then(|rest| rest.first_chunk());
            *row = lanes.load(part.unwrap_or(&zero));
        }
        for v in lanes.transpose(rows) {
            sum = sum + v * v;
        }
    }
    sum.to_array()
}

/// The extreme of each group: its largest magnitude, and the first value that has it.
#[inline(always)]
pub(crate) fn extremes<L: Lanes, const N: usize>(lanes: L, x: &Tile<L, N>) -> (L::F, L::F) {
    let (mut largest, mut value) = (lanes.splat(0.0), lanes.splat(0.0));
    for &x in x {
        let a = x.abs();
        let larger = a.gt(largest);
        largest = largest.replace(larger, a);
        value = value.replace(larger, x);
    }
    (largest, value)
}

/// The largest magnitude of each of up to eight groups of `N`; 0 where `x` has ended.
#[inline(always)]
pub(crate) fn magnitudes<L: Lanes, const N: usize>(lanes: L, x: &[f32]) -> L::F {
    let mut largest = [lanes.splat(0.0); LANES];
    for (largest, x) in largest.iter_mut().zip(x.as_chunks::<N>().0) {
        for x in x.as_chunks().0 {
            *largest = largest.max(lanes.load(x).abs());
        }
    }
    let mut out = lanes.splat(0.0);
    for largest in lanes.transpose(largest) {
        out = out.max(largest);
    }
    out
}

/// [`extremes`] of up to eight groups of `N` that are no tile: the values; 0 where `x` has ended.
#[inline(always)]
pub(crate) fn extreme_values<L: Lanes, const N: usize>(lanes: L, x: &[f32]) -> L::F {
    let zero = lanes.splat(0.0);
    let (mut highs, mut lows) = ([zero; LANES], [zero; LANES]);
    for (g, x) in x.as_chunks::<N>().0.iter().enumerate().take(LANES) {
        for x in x.as_chunks().0 {
            let x = lanes.load(x);
            highs[g] = highs[g].max(x);
            lows[g] = lows[g].min(x);
        }
    }
    let (highs, lows) = (lanes.transpose(highs), lanes.transpose(lows));
    let (mut high, mut low) = (zero, zero);
    for i in 0..LANES {
        high = high.max(highs[i]);
        low = low.min(lows[i]);
    }
    let size = zero - low;
    let value = high.replace(size.gt(high), low);
    if !(size.same(high) & high.gt(zero)).any() {
        return value;
    }
    // Both signs have the largest magnitude somewhere: the first one counts.
    let (size, mut value) = (high.max(size).to_array(), value.to_array());
    for (g, x) in x.as_chunks::<N>().0.iter().enumerate().take(LANES) {
        for &x in x.iter().rev() {
            if x.abs() == size[g] && x != 0.0 {
                value[g] = x;
            }
        }
    }
    lanes.load(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::simd::lanes::{Work, run};

    struct ExtremeValues<'a>(&'a [f32]);

    impl Work for ExtremeValues<'_> {
        type Out = [[f32; LANES]; 2];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Self::Out {
            [
                extreme_values::<L, 16>(lanes, self.0),
                extremes(lanes, &tile::<L, 16>(lanes, self.0)).1,
            ]
            .map(Float::to_array)
        }
    }

    #[test]
    fn the_first_of_two_opposite_extremes_counts_and_groups_may_be_missing() {
        let mut x = [0.25; 7 * 16];
        (x[3], x[9]) = (-1.0, 1.0);
        (x[16 + 3], x[16 + 9]) = (1.0, -1.0);
        x[2 * 16 + 15] = -0.5;
        x[3 * 16 + 7] = 0.75;
        x[4 * 16..5 * 16].fill(0.0);
        x[5 * 16..6 * 16].fill(-0.0);
        x[6 * 16..].fill(-2.0);
        let want = [-1.0, 1.0, -0.5, 0.75, 0.0, 0.0, -2.0, 0.0];
        for isa in [Isa::SCALAR, Isa::best()] {
            let found = run(isa, ExtremeValues(&x));
            assert_eq!(found, [want; 2]);
        }
    }
}
