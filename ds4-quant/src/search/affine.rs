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
#[derive(Clone, Copy)]
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

/// The best trial by weighted error; the earlier one on a tie. `K` times eight groups.
///
/// A trial is a chain of sums and divisions, and the next one waits for its minimum: tiles go side by side so that one
/// works while the other waits.
#[inline(always)]
pub(crate) fn fit<L: Lanes, const N: usize, const K: usize>(
    lanes: L,
    trials: Trials,
    x: &[Tile<L, N>; K],
    w: &[Tile<L, N>; K],
) -> [Fit<L::F>; K] {
    let zero = lanes.splat(0.0);
    let n = lanes.splat(trials.n);
    let (mut smallest, mut largest) = ([zero; K], [zero; K]);
    let (mut sum_w, mut sum_x) = ([zero; K], [zero; K]);
    let mut inverse = [zero; K];
    let mut scale = [zero; K];
    let mut best = [zero; K];
    for k in 0..K {
        let (x, w) = (&x[k], &w[k]);
        (smallest[k], largest[k]) = (x[0], x[0]);
        (sum_w[k], sum_x[k]) = (w[0], w[0] * x[0]);
        for i in 1..N {
            smallest[k] = smallest[k].replace(x[i].lt(smallest[k]), x[i]);
            largest[k] = largest[k].replace(x[i].gt(largest[k]), x[i]);
            sum_w[k] = sum_w[k] + w[i];
            sum_x[k] = sum_x[k] + w[i] * x[i];
        }
        smallest[k] = smallest[k].replace(smallest[k].gt(zero), zero);
        inverse[k] = n / (largest[k] - smallest[k]);
        scale[k] = lanes.splat(1.0) / inverse[k];
        for i in 0..N {
            let l = nearest_in(inverse[k] * (x[i] - smallest[k]), zero, n);
            let miss = scale[k] * l + smallest[k] - x[i];
            best[k] = best[k] + w[i] * loss(miss, trials.absolute);
        }
    }
    let (mut min, mut from) = (smallest, smallest);

    for step in 0..=trials.steps {
        let steps = lanes.splat(trials.first + trials.step * f32::from(step) + trials.n);
        let mut try_inverse = [zero; K];
        for k in 0..K {
            try_inverse[k] = steps / (largest[k] - min[k]);
        }
        let (mut sum_l, mut sum_l2, mut sum_xl) = ([zero; K], [zero; K], [zero; K]);
        let mut codes = [[zero; N]; K];
        for i in 0..N {
            for k in 0..K {
                let l = nearest_in(try_inverse[k] * (x[k][i] - min[k]), zero, n);
                codes[k][i] = l;
                let wl = w[k][i] * l;
                sum_l[k] = sum_l[k] + wl;
                sum_l2[k] = sum_l2[k] + wl * l;
                sum_xl[k] = sum_xl[k] + wl * x[k][i];
            }
        }
        let (mut try_scale, mut try_min) = ([zero; K], [zero; K]);
        let mut determinant = [zero; K];
        for k in 0..K {
            determinant[k] = sum_w[k] * sum_l2[k] - sum_l[k] * sum_l[k];
            let fitted = (sum_w[k] * sum_xl[k] - sum_x[k] * sum_l[k]) / determinant[k];
            let fitted_min = (sum_l2[k] * sum_x[k] - sum_l[k] * sum_xl[k]) / determinant[k];
            let above = fitted_min.gt(zero);
            try_scale[k] = fitted.replace(above, sum_xl[k] / sum_l2[k]);
            try_min[k] = fitted_min.replace(above, zero);
        }
        let mut error = [zero; K];
        for i in 0..N {
            for k in 0..K {
                let miss = try_scale[k] * codes[k][i] + try_min[k] - x[k][i];
                error[k] = error[k] + w[k][i] * loss(miss, trials.absolute);
            }
        }
        for k in 0..K {
            let better = determinant[k].gt(zero) & error[k].lt(best[k]);
            from[k] = from[k].replace(better, min[k]);
            inverse[k] = inverse[k].replace(better, try_inverse[k]);
            best[k] = best[k].replace(better, error[k]);
            scale[k] = scale[k].replace(better, try_scale[k]);
            min[k] = min[k].replace(better, try_min[k]);
        }
    }
    let mut out = [Fit {
        scale: zero,
        min: zero,
        inverse: zero,
        from: zero,
    }; K];
    for (k, out) in out.iter_mut().enumerate() {
        let flat = smallest[k].ge(largest[k]);
        *out = Fit {
            scale: scale[k].replace(flat, zero),
            min: zero - min[k].replace(flat, smallest[k]),
            inverse: inverse[k].replace(flat, zero),
            from: from[k].replace(flat, smallest[k]),
        };
    }
    out
}

#[inline(always)]
fn loss<F: Float>(miss: F, absolute: bool) -> F {
    if absolute { miss.abs() } else { miss * miss }
}
