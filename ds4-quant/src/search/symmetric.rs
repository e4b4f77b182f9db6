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

/// Up to five rounds of moving one code at a time, weights `x²`: scale and codes `l + n` of `K` times eight groups.
///
/// A silent group has scale 0 and codes 0. What a code becomes depends on the one before it, through a division: the
/// tiles go side by side so that something is done while one waits.
#[inline(always)]
pub(crate) fn refine<L: Lanes, const N: usize, const K: usize>(
    lanes: L,
    n: f32,
    x: &[Tile<L, N>; K],
) -> [(L::F, Tile<L, N>); K] {
    let zero = lanes.splat(0.0);
    let (low, high) = (lanes.splat(-n), lanes.splat(n - 1.0));
    let mut codes = [[zero; N]; K];
    let mut silent = [lanes.splat(0.0).lt(zero); K];
    let (mut sum_lx, mut sum_l2) = ([zero; K], [zero; K]);
    for k in 0..K {
        let (largest, extreme) = extremes(lanes, &x[k]);
        silent[k] = largest.lt(lanes.splat(SILENT));
        let inverse = lanes.splat(-n) / extreme;
        for i in 0..N {
            let l = nearest_in(inverse * x[k][i], low, high);
            let w = x[k][i] * x[k][i];
            codes[k][i] = l;
            sum_lx[k] = sum_lx[k] + w * x[k][i] * l;
            sum_l2[k] = sum_l2[k] + w * l * l;
        }
    }
    for _ in 0..5 {
        let mut moved = [false; K];
        for i in 0..N {
            for k in 0..K {
                let (x, l) = (x[k][i], codes[k][i]);
                let w = x * x;
                let rest_lx = sum_lx[k] - w * x * l;
                let rest_l2 = sum_l2[k] - w * l * l;
                let to = nearest_in(x * rest_l2 / rest_lx, low, high);
                let try_lx = rest_lx + w * x * to;
                let try_l2 = rest_l2 + w * to * to;
                let differs = to.lt(l) | to.gt(l);
                let better = rest_lx.gt(zero)
                    & differs
                    & try_l2.gt(zero)
                    & (try_lx * try_lx * sum_l2[k]).gt(sum_lx[k] * sum_lx[k] * try_l2);
                codes[k][i] = l.replace(better, to);
                sum_lx[k] = sum_lx[k].replace(better, try_lx);
                sum_l2[k] = sum_l2[k].replace(better, try_l2);
                moved[k] |= better.any();
            }
        }
        if !moved.contains(&true) {
            break;
        }
    }
    let mut out = [(zero, [zero; N]); K];
    for k in 0..K {
        for l in &mut codes[k] {
            *l = (*l + lanes.splat(n)).replace(silent[k], zero);
        }
        let scale = zero.replace(sum_l2[k].gt(zero), sum_lx[k] / sum_l2[k]);
        out[k] = (scale.replace(silent[k], zero), codes[k]);
    }
    out
}
