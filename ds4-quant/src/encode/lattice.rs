//! The search shared by the lattice formats IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S.
//!
//! A group of 16 or 32 weights is split into runs of 8 or 4; each run becomes signs and a lattice point, the group a
//! scale. Trial scales around a first guess round the magnitudes to codes, codes snap to points, and the trial with
//! the largest `(Σwvq)² / Σwq²` wins; then points are snapped once more with its scale. `v` are magnitudes, except
//! that where a format stores seven signs and derives the eighth, one `v` of a run may be negative.

use half::f16;

use super::recover;
use crate::search::grid::Grid;
use crate::search::{SILENT, Tile, energies, nearest_in, positive, tile, untile_floats};
use crate::simd::lanes::{Float, Int, LANES, Lanes, Mask};

/// Weights in a block.
pub(crate) const BLOCK: usize = 256;
const MOST_GROUPS: usize = 16;

/// How a format is searched.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// What the levels decode to, times `d · (2s + 1) · factor`.
    pub(crate) values: &'static [u8],
    /// See `values`.
    pub(crate) factor: f32,
    /// Trials run from `−trials` to `trials`.
    pub(crate) trials: i8,
    /// The inverse scale of trial `k` is `(largest odd level + step · k) / guess`.
    pub(crate) step: f32,
    /// First guess: a fit with codes 0..=4 (times 3), or the largest magnitude.
    pub(crate) fitted_guess: bool,
    /// The number of minus signs of eight weights is even.
    pub(crate) even_signs: bool,
    /// Which groups are snapped again with the best scale.
    pub(crate) again: Again,
    /// Groups whose largest magnitude is below this get scale 0.
    pub(crate) silent: f32,
    /// Factor on the mean square of the block in the weights.
    pub(crate) energy: f32,
    /// Share of the energy in the weights without importance.
    pub(crate) base: f32,
    /// Factor on the stored `d`, a correction for what the levels leave out.
    pub(crate) correction: f32,
}

/// Which runs of a group are snapped again with the scale of its best trial.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Again {
    /// All.
    All,
    /// All, if one of them had no point of its own.
    AllIfOff,
    /// Those without a point of their own.
    Off,
}

/// What a block of 256 came to.
pub(crate) struct Block {
    /// The stored scale.
    pub(crate) d: f16,
    /// Four bits a group.
    pub(crate) scales: [u8; MOST_GROUPS],
    /// Grid indices, one a run.
    pub(crate) points: [u16; 64],
    /// Sign bits, one byte of eight weights.
    pub(crate) signs: [u8; 32],
}

/// Eight groups of a block.
struct Groups {
    scale: [f32; LANES],
    /// Codes of points, `[run][lane]`.
    points: [[u32; LANES]; 8],
    /// Sign bytes, `[eight][lane]`.
    signs: [[u32; LANES]; 4],
}

/// Encode a row in groups of `G` and runs of `D`; `put` packs the blocks, in order.
///
/// Without importance the weights are `base · σ² + x²`, with it `a · sqrt(σ² + x²)`, where
/// `σ² = energy · mean x²` of the block.
#[inline(always)]
pub(crate) fn encode<L: Lanes, const G: usize, const D: usize>(
    lanes: L,
    grid: &Grid,
    rules: Rules,
    row: &[f32],
    importance: Option<&[f32]>,
    mut put: impl FnMut(usize, &Block),
) {
    let mut at = 0;
    while at < row.len() {
        let chunk = &row[at..row.len().min(at + LANES * BLOCK)];
        let energy = energies(lanes, chunk);
        for (x, energy) in chunk.chunks_exact(BLOCK).zip(energy) {
            if let Some(block) = x
                .first_chunk()
                .and_then(|x| recover::lattice_block::<G, D>(grid, rules, x))
            {
                put(at / BLOCK, &block);
                at += BLOCK;
                continue;
            }
            let energy = lanes.splat(rules.energy * energy / BLOCK as f32);
            let mut scales = [0.0; MOST_GROUPS];
            let mut block = Block {
                d: f16::ZERO,
                scales: [0; MOST_GROUPS],
                points: [0; 64],
                signs: [0; 32],
            };
            for first in (0..BLOCK / G).step_by(LANES) {
                let x = tile::<L, G>(lanes, &x[first * G..]);
                let mut w = x;
                match importance {
                    Some(a) => {
                        let a = tile::<L, G>(lanes, &a[at + first * G..]);
                        for i in 0..G {
                            w[i] = a[i] * (energy + x[i] * x[i]).sqrt();
                        }
                    }
                    None => {
                        let base = lanes.splat(rules.base) * energy;
                        for w in &mut w {
                            *w = base + *w * *w;
                        }
                    }
                }
                let groups = search::<L, G, D>(lanes, grid, rules, &x, &w);
                block.take::<G, D>(grid, first, &groups);
                scales[first..first + LANES].copy_from_slice(&groups.scale);
            }
            block.quantize_scales(scales, rules.correction);
            put(at / BLOCK, &block);
            at += BLOCK;
        }
    }
}

impl Block {
    fn take<const G: usize, const D: usize>(&mut self, grid: &Grid, first: usize, groups: &Groups) {
        for lane in 0..LANES {
            let group = first + lane;
            for run in 0..G / D {
                self.points[group * (G / D) + run] = grid.index(groups.points[run][lane]);
            }
            for eight in 0..G / 8 {
                self.signs[group * (G / 8) + eight] = groups.signs[eight][lane] as u8;
            }
        }
    }

    fn quantize_scales(&mut self, scales: [f32; MOST_GROUPS], correction: f32) {
        let largest = scales
            .iter()
            .fold(0.0f32, |a, &b| if a > b { a } else { b });
        if largest == 0.0 {
            return;
        }
        let d = largest / 31.0;
        self.d = f16::from_f32(d * correction);
        let inverse = 1.0 / d;
        for (code, scale) in self.scales.iter_mut().zip(scales) {
            *code = (0.5 * (inverse * scale - 1.0))
                .round_ties_even()
                .clamp(0.0, 15.0) as u8;
        }
    }
}

#[inline(always)]
fn search<L: Lanes, const G: usize, const D: usize>(
    lanes: L,
    grid: &Grid,
    rules: Rules,
    x: &Tile<L, G>,
    w: &Tile<L, G>,
) -> Groups {
    let (zero, one) = (lanes.splat(0.0), lanes.splat(1.0));
    let mut v = *x;
    let mut signs = [lanes.splat_int(0); 4];
    for (eight, signs) in signs.iter_mut().enumerate().take(G / 8) {
        let run = eight * 8..eight * 8 + 8;
        *signs = split_signs(lanes, rules.even_signs, &mut v[run.clone()], &w[run]);
    }
    let mut largest = v[0];
    for &v in &v[1..] {
        largest = largest.max(v);
    }
    let mut silent = largest.lt(lanes.splat(rules.silent));

    let (mut scale, guess);
    let top = if D == 8 { 5.0 } else { 15.0 };
    if rules.fitted_guess {
        scale = positive::fit(lanes, 3.0 + 1.0, &v, w).0;
        guess = scale * lanes.splat(3.0);
        silent = silent | zero.ge(guess);
    } else {
        scale = largest / lanes.splat(top);
        guess = largest;
    }

    let mut root = *w;
    let mut wv = *w;
    for i in 0..G {
        root[i] = w[i].sqrt();
        wv[i] = w[i] * v[i];
    }
    let (mut flat_v, mut flat_root) = ([0.0; 8 * 32], [0.0; 8 * 32]);
    untile_floats::<L, G>(lanes, &v, &mut flat_v);
    untile_floats::<L, G>(lanes, &root, &mut flat_root);
    let lattice = Lattice {
        grid,
        flat_v: &flat_v,
        flat_root: &flat_root,
    };

    let all = lanes
        .splat_int(u32::MAX)
        .replace(silent, lanes.splat_int(0));
    let mut best = zero;
    let mut points = [lanes.splat_int(0); 8];
    // 1 for every run whose code was off the grid, in the bit of the run.
    let mut off = lanes.splat_int(0);
    for k in -rules.trials..=rules.trials {
        let inverse = lanes.splat(top + rules.step * f32::from(k)) / guess;
        let (try_points, try_off) =
            lattice.snap_all::<L, G, D>(lanes, &v, inverse, one / inverse, &points, all);
        let (sum_qx, sum_q2) = sums::<L, G, D>(lanes, &try_points, &wv, w);
        let better = sum_q2.gt(zero) & (sum_qx * sum_qx).gt(best * sum_q2);
        let try_scale = sum_qx / sum_q2;
        scale = scale.replace(better, try_scale);
        best = best.replace(better, try_scale * sum_qx);
        off = off.replace(better, try_off);
        for (point, try_point) in points.iter_mut().zip(try_points) {
            *point = point.replace(better, try_point);
        }
    }

    let some_off = off.to_float().gt(zero);
    let refit = match rules.again {
        Again::All => scale.gt(zero),
        Again::AllIfOff | Again::Off => scale.gt(zero) & some_off,
    };
    if refit.any() {
        let which = if rules.again == Again::Off { off } else { all };
        let (again, _) = lattice.snap_all::<L, G, D>(lanes, &v, one / scale, scale, &points, which);
        for (point, again) in points.iter_mut().zip(again) {
            *point = point.replace(refit, again);
        }
        let (sum_qx, sum_q2) = sums::<L, G, D>(lanes, &points, &wv, w);
        scale = scale.replace(refit & sum_q2.gt(zero), sum_qx / sum_q2);
    }

    let negative = scale.lt(zero);
    let flip = lanes.splat_int(0).replace(negative, lanes.splat_int(255));
    let mut out = Groups {
        scale: scale.abs().replace(silent, zero).to_array(),
        points: [[0; LANES]; 8],
        signs: [[0; LANES]; 4],
    };
    let none = lanes.splat_int(0);
    for (out, point) in out.points.iter_mut().zip(points) {
        *out = point.replace(silent, none).to_array();
    }
    for (out, signs) in out.signs.iter_mut().zip(signs) {
        *out = (signs ^ flip).replace(silent, none).to_array();
    }
    out
}

/// Eight weights to magnitudes; the sign bits of each lane. With an odd number of minus signs the sign of the weight
/// that matters least is turned, and its magnitude becomes negative.
#[inline(always)]
fn split_signs<L: Lanes>(lanes: L, even: bool, v: &mut [L::F], w: &[L::F]) -> L::U {
    let zero = lanes.splat(0.0);
    let mut signs = lanes.splat_int(0);
    let mut count = lanes.splat_int(0);
    let mut least = w[0] * v[0] * v[0];
    let mut place = zero;
    for i in 0..8 {
        let negative = v[i].lt(zero);
        signs = signs | negative.bit().shl(i as u32);
        count = count + negative.bit();
        let matters = w[i] * v[i] * v[i];
        let less = matters.lt(least);
        least = least.replace(less, matters);
        place = place.replace(less, lanes.splat(i as f32));
        v[i] = v[i].abs();
    }
    if even {
        let odd = (count & lanes.splat_int(1)).to_float().gt(zero);
        for (i, v) in v.iter_mut().enumerate() {
            let turn = odd & place.same(lanes.splat(i as f32));
            *v = v.replace(turn, zero - *v);
            signs = signs ^ turn.bit().shl(i as u32);
        }
    }
    signs
}

/// What snapping needs besides codes: the grid, and the magnitudes with the roots of their weights, group by group.
struct Lattice<'a> {
    grid: &'a Grid,
    flat_v: &'a [f32; 8 * 32],
    flat_root: &'a [f32; 8 * 32],
}

impl Lattice<'_> {
    /// Round to codes, snap the runs whose bit is in `which`, keep `points` for the others.
    ///
    /// Gives the points and a bit for every snapped run that had been off the grid.
    #[inline(always)]
    fn snap_all<L: Lanes, const G: usize, const D: usize>(
        &self,
        lanes: L,
        v: &Tile<L, G>,
        inverse: L::F,
        scale: L::F,
        points: &[L::U; 8],
        which: L::U,
    ) -> ([L::U; 8], L::U) {
        let (half, one) = (lanes.splat(0.5), lanes.splat(1.0));
        let (zero, high) = (
            lanes.splat(0.0),
            lanes.splat(if D == 8 { 2.0 } else { 7.0 }),
        );
        let bits = if D == 8 { 2 } else { 3 };
        let (scale, which) = (scale.to_array(), which.to_array());
        let mut out = *points;
        let mut off = [0; LANES];
        for run in 0..G / D {
            let mut codes = lanes.splat_int(0);
            for i in 0..D {
                let level = nearest_in(half * (inverse * v[run * D + i] - one), zero, high);
                codes = codes | level.to_int().shl(bits * i as u32);
            }
            let mut codes = codes.to_array();
            let kept = points[run].to_array();
            for lane in 0..LANES {
                if which[lane] >> run & 1 == 0 {
                    codes[lane] = kept[lane];
                    continue;
                }
                let at = lane * G + run * D;
                let (v, w) = (&self.flat_v[at..at + D], &self.flat_root[at..at + D]);
                let (point, on) = self
                    .grid
                    .snap::<L, D>(lanes, codes[lane], v, w, scale[lane]);
                codes[lane] = point;
                off[lane] |= u32::from(!on) << run;
            }
            out[run] = lanes.load_int(&codes);
        }
        (out, lanes.load_int(&off))
    }
}

/// `Σ w·v·q` and `Σ w·q²` over a group.
#[inline(always)]
fn sums<L: Lanes, const G: usize, const D: usize>(
    lanes: L,
    points: &[L::U; 8],
    wv: &Tile<L, G>,
    w: &Tile<L, G>,
) -> (L::F, L::F) {
    let one = lanes.splat(1.0);
    let (bits, mask) = if D == 8 {
        (2, lanes.splat_int(3))
    } else {
        (3, lanes.splat_int(7))
    };
    let (mut sum_qx, mut sum_q2) = (lanes.splat(0.0), lanes.splat(0.0));
    for (run, point) in points.iter().enumerate().take(G / D) {
        for i in 0..D {
            let level = (point.shr(bits * i as u32) & mask).to_float();
            let q = level + level + one;
            let at = run * D + i;
            sum_qx = sum_qx + wv[at] * q;
            sum_q2 = sum_q2 + w[at] * q * q;
        }
    }
    (sum_qx, sum_q2)
}

/// The first guess and trials that several formats share.
pub(crate) const COMMON: Rules = Rules {
    values: &[8, 25, 43],
    factor: 0.125,
    trials: 9,
    step: 0.1,
    fitted_guess: false,
    even_signs: true,
    again: Again::Off,
    silent: SILENT,
    energy: 1.0,
    base: 0.0,
    correction: 1.0,
};
