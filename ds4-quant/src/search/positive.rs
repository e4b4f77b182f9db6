//! Codes 0..=n of values that are not negative: `x ≈ scale · l`. Used on the scales of a block.
//!
//! A coarse search over nine scales by weighted error, then up to five rounds of moving single codes to
//! raise `(Σwxl)² / Σwl²`.

use super::{SILENT, Tile};
use crate::simd::lanes::{Float, Lanes, Mask};

/// Scale and codes of eight groups.
///
/// Values may be negative too (a value whose sign was flipped to make a parity even): the reference keeps codes
/// in unsigned bytes, so there a code −1 counts as 255 in the first error and in the rounds. That decides which
/// scale wins, so it is done here as well.
#[inline(always)]
pub(crate) fn fit<L: Lanes, const N: usize>(
    lanes: L,
    n: f32,
    x: &Tile<L, N>,
    w: &Tile<L, N>,
) -> (L::F, Tile<L, N>) {
    let zero = lanes.splat(0.0);
    let high = lanes.splat(n);
    let mut largest = zero;
    for &x in x {
        largest = largest.max(x);
    }
    let mut inverse = high / largest;
    let scale = lanes.splat(1.0) / inverse;
    let mut best = zero;
    for i in 0..N {
        let miss = x[i] - scale * as_byte(lanes, (inverse * x[i]).round());
        best = best + w[i] * miss * miss;
    }
    for shift in [-4, -3, -2, -1, 1, 2, 3, 4] {
        let try_inverse = lanes.splat(0.1 * shift as f32 + n) / largest;
        let try_scale = lanes.splat(1.0) / try_inverse;
        let mut error = zero;
        for i in 0..N {
            let miss = x[i] - try_scale * (try_inverse * x[i]).round().min(high);
            error = error + w[i] * miss * miss;
        }
        let better = error.lt(best);
        best = best.replace(better, error);
        inverse = inverse.replace(better, try_inverse);
    }

    let mut codes = [zero; N];
    let (mut sum_lx, mut sum_l2) = (zero, zero);
    for i in 0..N {
        let l = (inverse * x[i]).round().min(high);
        sum_lx = sum_lx + w[i] * x[i] * l;
        sum_l2 = sum_l2 + w[i] * l * l;
        codes[i] = as_byte(lanes, l);
    }
    for _ in 0..5 {
        let mut moved = false;
        for i in 0..N {
            let l = codes[i];
            let rest_lx = sum_lx - w[i] * x[i] * l;
            let rest_l2 = sum_l2 - w[i] * l * l;
            let to = (x[i] * rest_l2 / rest_lx).round().min(high);
            let try_lx = rest_lx + w[i] * x[i] * to;
            let try_l2 = rest_l2 + w[i] * to * to;
            let differs = to.lt(l) | to.gt(l);
            let better = rest_lx.gt(zero)
                & rest_l2.gt(zero)
                & differs
                & (try_lx * try_lx * sum_l2).gt(sum_lx * sum_lx * try_l2);
            codes[i] = l.replace(better, as_byte(lanes, to));
            sum_lx = sum_lx.replace(better, try_lx);
            sum_l2 = sum_l2.replace(better, try_l2);
            moved |= better.any();
        }
        if !moved {
            break;
        }
    }
    let silent = largest.lt(lanes.splat(SILENT));
    for l in &mut codes {
        *l = l.replace(silent, zero);
    }
    let scale = zero.replace(sum_l2.gt(zero), sum_lx / sum_l2);
    (scale.replace(silent, zero), codes)
}

/// A negative integer as the byte it would be stored in.
#[inline(always)]
fn as_byte<L: Lanes>(lanes: L, l: L::F) -> L::F {
    l.replace(l.lt(lanes.splat(0.0)), l + lanes.splat(256.0))
}
