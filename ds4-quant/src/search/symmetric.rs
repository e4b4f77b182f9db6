//! One scale, codes −n..n−1: `x ≈ scale · l`, weighted least squares.
//!
//! For codes `l` the best scale is `Σwxl / Σwl²`, and its gain over all-zero codes is `(Σwxl)² / Σwl²`.
//! [`fit`] tries nineteen roundings of `x · inverse` around the one that puts the extreme on −n;
//! [`refine`] starts from that one and moves single codes.

use super::{SILENT, Tile, extremes, nearest_in};
use crate::simd::lanes::{Float, Lanes, Mask};

/// The result of [`fit`] for eight groups.
pub(crate) struct Fit<F> {
    /// Best scale, 0 for a silent group.
    pub(crate) scale: F,
    /// The factor whose roundings are the codes: `l = clamp(round(inverse · x), −n, n−1)`; 0 for a silent group.
    pub(crate) inverse: F,
}

/// The best of nineteen roundings, by weighted gain; the earlier one on a tie.
#[inline(always)]
pub(crate) fn fit<L: Lanes, const N: usize>(
    lanes: L,
    n: f32,
    x: &Tile<L, N>,
    w: &Tile<L, N>,
) -> Fit<L::F> {
    let zero = lanes.splat(0.0);
    let (low, high) = (lanes.splat(-n), lanes.splat(n - 1.0));
    let (largest, extreme) = extremes(lanes, x);
    let mut wx = [zero; N];
    for i in 0..N {
        wx[i] = w[i] * x[i];
    }

    let mut inverse = lanes.splat(-n) / extreme;
    let (mut scale, mut gain) = (zero, zero);
    for trial in 0..19 {
        // The unperturbed one comes first and is taken even without gain.
        let shift = match trial {
            0 => 0,
            1..=9 => trial - 10,
            _ => trial - 9,
        };
        let try_inverse = lanes.splat(-(n + 0.1 * shift as f32)) / extreme;
        let (mut sum_lx, mut sum_l2) = (zero, zero);
        for i in 0..N {
            let l = nearest_in(try_inverse * x[i], low, high);
            sum_lx = sum_lx + wx[i] * l;
            sum_l2 = sum_l2 + w[i] * l * l;
        }
        let try_scale = sum_lx / sum_l2;
        if trial == 0 {
            scale = zero.replace(sum_l2.gt(zero), try_scale);
            gain = scale * sum_lx;
        } else {
            let better = sum_l2.gt(zero) & (sum_lx * sum_lx).gt(gain * sum_l2);
            inverse = inverse.replace(better, try_inverse);
            scale = scale.replace(better, try_scale);
            gain = gain.replace(better, try_scale * sum_lx);
        }
    }
    let silent = largest.lt(lanes.splat(SILENT));
    Fit {
        scale: scale.replace(silent, zero),
        inverse: inverse.replace(silent, zero),
    }
}

/// Up to five rounds of moving one code at a time, weights `x²`: scale and codes `l + n`.
///
/// Few codes move. Where none of eight would, that is seen without the division that says where to.
///
/// A silent group has scale 0 and codes 0.
#[inline(always)]
pub(crate) fn refine<L: Lanes, const N: usize>(
    lanes: L,
    n: f32,
    x: &Tile<L, N>,
) -> (L::F, Tile<L, N>) {
    let zero = lanes.splat(0.0);
    let (low, high) = (lanes.splat(-n), lanes.splat(n - 1.0));
    let (largest, extreme) = extremes(lanes, x);
    let inverse = lanes.splat(-n) / extreme;
    let mut codes = [zero; N];
    let (mut wxl, mut wl2) = ([zero; N], [zero; N]);
    let mut stays = [(zero, zero); N];
    let (mut sum_lx, mut sum_l2) = (zero, zero);
    for i in 0..N {
        let l = nearest_in(inverse * x[i], low, high);
        let w = x[i] * x[i];
        codes[i] = l;
        wxl[i] = w * x[i] * l;
        wl2[i] = w * l * l;
        stays[i] = rounds_to(lanes, l, low, high);
        sum_lx = sum_lx + wxl[i];
        sum_l2 = sum_l2 + wl2[i];
    }
    for _ in 0..5 {
        let mut moved = false;
        for i in 0..N {
            let rest_lx = sum_lx - wxl[i];
            let rest_l2 = sum_l2 - wl2[i];
            let dividend = x[i] * rest_l2;
            let (from, until) = stays[i];
            let may_move = rest_lx.gt(zero)
                & ((from * rest_lx).ge(dividend)
                    | dividend.ge(until * rest_lx)
                    | lanes.splat(INEXACT).ge(rest_lx));
            if !may_move.any() {
                continue;
            }
            let (l, w) = (codes[i], x[i] * x[i]);
            let to = nearest_in(dividend / rest_lx, low, high);
            let (to_lx, to_l2) = (w * x[i] * to, w * to * to);
            let try_lx = rest_lx + to_lx;
            let try_l2 = rest_l2 + to_l2;
            let differs = to.lt(l) | to.gt(l);
            let better = rest_lx.gt(zero)
                & differs
                & try_l2.gt(zero)
                & (try_lx * try_lx * sum_l2).gt(sum_lx * sum_lx * try_l2);
            codes[i] = l.replace(better, to);
            wxl[i] = wxl[i].replace(better, to_lx);
            wl2[i] = wl2[i].replace(better, to_l2);
            stays[i] = rounds_to(lanes, codes[i], low, high);
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
        *l = (*l + lanes.splat(n)).replace(silent, zero);
    }
    let scale = zero.replace(sum_l2.gt(zero), sum_lx / sum_l2);
    (scale.replace(silent, zero), codes)
}

/// Below this a product may lose bits to the smallest exponent.
const INEXACT: f32 = 1e-30;

/// Between these every number rounds to `l` within `low` and `high`, even one that is off by the rounding of a product
/// and a quotient.
#[inline(always)]
fn rounds_to<L: Lanes>(lanes: L, l: L::F, low: L::F, high: L::F) -> (L::F, L::F) {
    let (most, inf) = (lanes.splat(0.499), lanes.splat(f32::INFINITY));
    let from = (l - most).replace(low.ge(l), lanes.splat(f32::NEG_INFINITY));
    (from, (l + most).replace(l.ge(high), inf))
}
