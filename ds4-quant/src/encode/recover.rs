//! Weights that some block already decodes to: the block is found again, without loss.
//!
//! A search that rounds and fits comes close to such weights and no closer, because it does not know the levels of
//! the other scales. Here the scale is read off the weights instead. Whether there is such a block shows in the first
//! few weights of ordinary data, so asking costs nothing.

use half::f16;

use super::lattice::{BLOCK, Block, Rules};
use crate::search::grid::Grid;

/// Largest odd number that a group's scale is of `d`.
const LARGEST: f32 = 31.0;

/// The block that decodes to exactly `x`: groups of `G`, runs of `D`, `w = ± d·(2s + 1)·factor·value`.
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
                *unit = candidate;
                any = true;
            }
        }
        if !any {
            return None;
        }
    }
    let units = &units[..groups.len()];
    let d = units[0]
        .iter()
        .filter(|&&unit| unit > 0.0)
        .find_map(|unit| {
            (0..16).map(|s| unit / (2 * s + 1) as f32).find(|&d| {
                f16::from_f32(d).to_f32() == d
                    && units.iter().all(|units| multiple(units, d).is_some())
            })
        })?;

    let mut block = Block {
        d: f16::from_f32(d),
        scales: [0; 16],
        points: [0; 64],
        signs: [0; BLOCK / 8],
    };
    for (g, (x, units)) in groups.iter().zip(units).enumerate() {
        let scale = multiple(units, d)?;
        block.scales[g] = (scale as u8 - 1) / 2;
        let points = codes::<G, D>(grid, rules, x, d * scale)?;
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

/// The odd number 1..=31 times `d` that one of the units is.
fn multiple(units: &[f32; 8], d: f32) -> Option<f32> {
    units.iter().filter(|&&unit| unit > 0.0).find_map(|unit| {
        let times = (unit / d).round_ties_even();
        (times % 2.0 == 1.0 && times <= LARGEST && times * d == *unit).then_some(times)
    })
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
            let step = unit * rules.factor;
            let level = rules
                .values
                .iter()
                .position(|&v| step * f32::from(v) == x.abs())?;
            code = code << bits | level as u32;
        }
        *point = grid.point(code)?;
    }
    (unit > 0.0).then_some(points)
}
