//! Scale and minimum, codes 0..=n: `x ≈ scale · l − min` with `min ≥ 0`.
//!
//! Codes come from a rounding of `inverse · (x − from)`; for those codes scale and minimum are the weighted
//! least squares, and their error decides. Each trial spans and rounds from the best minimum found *so far*.

use super::{Tile, nearest_in};
use crate::simd::lanes::{Float, Lanes};

/// What to try: `inverse = (first + step · k + n) / (max − min)` for `k` in `0..=steps`.
#[derive(Clone, Copy)]
pub(crate) struct Trials {
    /// Largest code.
    pub(crate) n: f32,
    /// Change of `n` in the first trial.
    pub(crate) first: f32,
    /// Change from one trial to the next.
    pub(crate) step: f32,
    /// Trials after the first.
    pub(crate) steps: u8,
    /// Judge by `Σ w·|error|` in place of `Σ w·error²`.
    pub(crate) absolute: bool,
}

/// The result for eight groups; the codes are `clamp(round(inverse · (x − from)), 0, n)`.
pub(crate) struct Fit<F> {
    /// Best scale; 0 where the group has a single value that is not positive.
    pub(crate) scale: F,
    /// What is subtracted, not negative.
    pub(crate) min: F,
    /// See above; 0 where `scale` is 0.
    pub(crate) inverse: F,
    /// See above.
    pub(crate) from: F,
}

/// The best trial by weighted error; the earlier one on a tie.
#[inline(always)]
pub(crate) fn fit<L: Lanes, const N: usize>(
    lanes: L,
    trials: Trials,
    x: &Tile<L, N>,
    w: &Tile<L, N>,
) -> Fit<L::F> {
    let zero = lanes.splat(0.0);
    let n = lanes.splat(trials.n);
    let (mut smallest, mut largest) = (x[0], x[0]);
    let (mut sum_w, mut sum_x) = (w[0], w[0] * x[0]);
    for i in 1..N {
        smallest = smallest.replace(x[i].lt(smallest), x[i]);
        largest = largest.replace(x[i].gt(largest), x[i]);
        sum_w = sum_w + w[i];
        sum_x = sum_x + w[i] * x[i];
    }
    smallest = smallest.replace(smallest.gt(zero), zero);
    let flat = smallest.ge(largest);

    let mut min = smallest;
    let mut inverse = n / (largest - smallest);
    let mut scale = lanes.splat(1.0) / inverse;
    let mut from = smallest;
    let mut best = zero;
    for i in 0..N {
        let l = nearest_in(inverse * (x[i] - min), zero, n);
        best = best + w[i] * loss(scale * l + min - x[i], trials.absolute);
    }

    for k in 0..=trials.steps {
        let steps = lanes.splat(trials.first + trials.step * f32::from(k) + trials.n);
        let try_inverse = steps / (largest - min);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (zero, zero, zero);
        let mut codes = [zero; N];
        for i in 0..N {
            let l = nearest_in(try_inverse * (x[i] - min), zero, n);
            codes[i] = l;
            let wl = w[i] * l;
            sum_l = sum_l + wl;
            sum_l2 = sum_l2 + wl * l;
            sum_xl = sum_xl + wl * x[i];
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        let mut try_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
        let mut try_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
        let above = try_min.gt(zero);
        try_scale = try_scale.replace(above, sum_xl / sum_l2);
        try_min = try_min.replace(above, zero);
        let mut error = zero;
        for i in 0..N {
            let miss = try_scale * codes[i] + try_min - x[i];
            error = error + w[i] * loss(miss, trials.absolute);
        }
        let better = determinant.gt(zero) & error.lt(best);
        from = from.replace(better, min);
        inverse = inverse.replace(better, try_inverse);
        best = best.replace(better, error);
        scale = scale.replace(better, try_scale);
        min = min.replace(better, try_min);
    }
    Fit {
        scale: scale.replace(flat, zero),
        min: zero - min.replace(flat, smallest),
        inverse: inverse.replace(flat, zero),
        from: from.replace(flat, smallest),
    }
}

#[inline(always)]
fn loss<F: Float>(miss: F, absolute: bool) -> F {
    if absolute { miss.abs() } else { miss * miss }
}
