//! Weights that some block already decodes to, as floats or rounded to half precision: the block is found again.
//!
//! A search that rounds and fits comes close to such weights and no closer, because it does not know the levels of
//! the other scales. Here the scale is read off the weights instead. Whether there is such a block shows in the first
//! few weights of ordinary data, so asking costs nothing.

use half::f16;

use super::lattice::{BLOCK, Block, Rules};
use crate::search::grid::Grid;

/// Largest odd number that a group's scale is of `d`.
const LARGEST: f32 = 31.0;

/// How far a weight may be from its level, as a share of it. A half float has 11 bits, so rounding to one is off by at
/// most u / (1 + u) of the number, u = 2⁻¹¹. Each comparison has at most two such: a weight against a level made from
/// another weight, the largest of its group; a weight against a level made from the scale of the block; the unit that
/// weights show against a multiple of that scale. At worst they point away from each other: 1 + u / (1 + u) against
/// 1 − u / (1 + u) differ by 2·u of the latter.
const ROUNDING: f32 = 1.0 / 1024.0;
const _: () = assert!(ROUNDING == 2.0 / (1 << 11) as f32);

fn near(x: f32, level: f32) -> bool {
    (x - level).abs() <= level * ROUNDING
}

/// The block that decodes to `x` but for rounding: groups of `G`, runs of `D`, `w = ± d·(2s + 1)·factor·value`.
pub(super) fn lattice_block<const G: usize, const D: usize>(
    grid: &Grid,
    rules: Rules,
    x: &[f32; BLOCK],
) -> Option<Block> {
    let groups = x.as_chunks::<G>().0;
    // Where all weights of a group have one magnitude, it may be any level: several units are possible.
    let mut units = [[0.0; 8]; BLOCK / 16];
    for (units, x) in units.iter_mut().zip(groups) {
        let largest = x.iter().fold(0.0f32, |a, x| a.max(x.abs()));
        let mut any = false;
        for (unit, &value) in units.iter_mut().zip(rules.values) {
            let candidate = largest / (rules.factor * f32::from(value));
            if codes::<G, D>(grid, rules, x, candidate).is_some() {
                *unit = fitted(rules, x, candidate);
                any = true;
            }
        }
        if !any {
            return None;
        }
    }
    let units = &units[..groups.len()];
    let mut best = None;
    let mut least = f64::INFINITY;
    for &unit in units[0].iter().filter(|&&unit| unit > 0.0) {
        for s in 0..16 {
            let Some(near) = common(units, unit / (2 * s + 1) as f32) else {
                continue;
            };
            // The fit carries the rounding of the weights: a neighbour may be the one they come from.
            for bits in near.to_bits().saturating_sub(1)..=near.to_bits() + 1 {
                let d = f16::from_bits(bits);
                let error = error::<G>(rules, x, units, d);
                if error < least
                    && let Some(block) = block::<G, D>(grid, rules, x, units, d)
                {
                    (best, least) = (Some(block), error);
                }
            }
        }
    }
    best
}

/// The half float that fits all units best as odd multiples, if `guess` says which multiples they are.
fn common(units: &[[f32; 8]], guess: f32) -> Option<f16> {
    let (mut product, mut square) = (0.0, 0.0);
    for units in units {
        let (unit, times) = multiple(units, guess)?;
        product += f64::from(unit * times);
        square += f64::from(times * times);
    }
    let d = f16::from_f64(product / square);
    (d.is_finite() && d > f16::ZERO).then_some(d)
}

/// What a group's unit is by all its weights, when `unit` says which levels they are.
fn fitted<const G: usize>(rules: Rules, x: &[f32; G], unit: f32) -> f32 {
    let (mut product, mut square) = (0.0, 0.0);
    for x in x {
        let level = level(rules, x.abs(), unit * rules.factor).map_or(0, |l| rules.values[l]);
        let level = rules.factor * f32::from(level);
        product += f64::from(level * x.abs());
        square += f64::from(level * level);
    }
    (product / square) as f32
}

/// `Σ (x − w)²` of the block with scale `d`.
fn error<const G: usize>(rules: Rules, x: &[f32; BLOCK], units: &[[f32; 8]], d: f16) -> f64 {
    let mut sum = 0.0;
    for (x, units) in x.as_chunks::<G>().0.iter().zip(units) {
        let Some((_, times)) = multiple(units, d.to_f32()) else {
            return f64::INFINITY;
        };
        let step = d.to_f32() * times * rules.factor;
        for x in x {
            let level = level(rules, x.abs(), step).map_or(0, |l| rules.values[l]);
            sum += f64::from(x.abs() - step * f32::from(level)).powi(2);
        }
    }
    sum
}

fn block<const G: usize, const D: usize>(
    grid: &Grid,
    rules: Rules,
    x: &[f32; BLOCK],
    units: &[[f32; 8]],
    d: f16,
) -> Option<Block> {
    let mut block = Block {
        d,
        scales: [0; 16],
        points: [0; 64],
        signs: [0; BLOCK / 8],
    };
    for (g, (x, units)) in x.as_chunks::<G>().0.iter().zip(units).enumerate() {
        let (_, scale) = multiple(units, d.to_f32())?;
        block.scales[g] = (scale as u8 - 1) / 2;
        let points = codes::<G, D>(grid, rules, x, d.to_f32() * scale)?;
        block.points[g * (G / D)..][..G / D].copy_from_slice(&points[..G / D]);
    }
    for (signs, x) in block.signs.iter_mut().zip(x.as_chunks::<8>().0) {
        *signs = x
            .iter()
            .rev()
            .fold(0, |bits, x| bits << 1 | u8::from(*x < 0.0));
        if rules.even_signs && signs.count_ones() % 2 == 1 {
            return None;
        }
    }
    Some(block)
}

/// The unit that is an odd number 1..=31 times `d`, and the number.
fn multiple(units: &[f32; 8], d: f32) -> Option<(f32, f32)> {
    units.iter().filter(|&&unit| unit > 0.0).find_map(|&unit| {
        let times = (unit / d).round_ties_even();
        (times % 2.0 == 1.0 && times <= LARGEST && near(unit, times * d)).then_some((unit, times))
    })
}

/// The level that a magnitude is a multiple of `step` by.
fn level(rules: Rules, x: f32, step: f32) -> Option<usize> {
    rules
        .values
        .iter()
        .position(|&v| near(x, step * f32::from(v)))
}

/// The points of a group, if every weight is a level times `unit` and every run a point.
fn codes<const G: usize, const D: usize>(
    grid: &Grid,
    rules: Rules,
    x: &[f32; G],
    unit: f32,
) -> Option<[u16; 8]> {
    let bits = if D == 8 { 2 } else { 3 };
    let mut points = [0; 8];
    for (point, run) in points.iter_mut().zip(x.as_chunks::<D>().0) {
        let mut code = 0;
        for x in run.iter().rev() {
            let level = level(rules, x.abs(), unit * rules.factor)?;
            code = code << bits | level as u32;
        }
        *point = grid.point(code)?;
    }
    (unit > 0.0).then_some(points)
}
