//! Rotary embedding of head tails: pairs `(x[2i], x[2i+1])` turn by `position · f_i`.

use std::f64::consts::PI;

use crate::config::Rope;
use crate::exec::Step;
use crate::graph::{Rows, Turn};

/// Frequencies `f_i`, `i < n/2`, of one table; YaRN blends `g_i` and `g_i / factor`, without a magnitude factor.
///
/// `k_i = 1 − clamp((i − lo) / (hi − lo), 0, 1)`, `f_i = g_i·k_i + (g_i / factor)·(1 − k_i)`.
pub(super) fn frequencies(rope: &Rope, n: usize) -> Vec<f64> {
    let plain = |i: usize| rope.base.powf(-2.0 * i as f64 / n as f64);
    let Some(yarn) = &rope.yarn else {
        return (0..n / 2).map(plain).collect();
    };
    let turn = |beta: f64| {
        n as f64 * (f64::from(yarn.original_context) / (2.0 * PI * beta)).ln()
            / (2.0 * rope.base.ln())
    };
    let lo = turn(yarn.beta_fast).floor().max(0.0);
    let hi = turn(yarn.beta_slow).ceil().min(n as f64 - 1.0);
    let blend = |i: usize| {
        let keep = 1.0 - ((i as f64 - lo) / (hi - lo).max(1e-3)).clamp(0.0, 1.0);
        plain(i) * keep + plain(i) / yarn.factor * (1.0 - keep)
    };
    (0..n / 2).map(blend).collect()
}

/// Cosines and sines of one step, made at most once for each table and row kind.
#[derive(Default)]
pub(super) struct Angles {
    step: Step,
    tables: Vec<Table>,
    frequencies: Vec<(Rope, Vec<f64>)>,
}

struct Table {
    rope: Rope,
    rope_dim: usize,
    rows: Rows,
    /// `[rows, rope_dim / 2]` of (cos, sin)
    turns: Vec<(f32, f32)>,
}

impl Angles {
    /// Forget the last step's angles.
    pub(super) fn start(&mut self, step: &Step) {
        if self.step != *step {
            self.step = *step;
            self.tables.clear();
        }
    }

    /// `[rows, rope_dim / 2]` of (cos, sin) for the rows of this step.
    pub(super) fn get(&mut self, rope: &Rope, rope_dim: usize, rows: Rows) -> &[(f32, f32)] {
        let known = |t: &Table| t.rope == *rope && t.rope_dim == rope_dim && t.rows == rows;
        let index = match self.tables.iter().position(known) {
            Some(index) => index,
            None => {
                let turns = self.turns(rope, rope_dim, rows);
                self.tables.push(Table {
                    rope: *rope,
                    rope_dim,
                    rows,
                    turns,
                });
                self.tables.len() - 1
            }
        };
        &self.tables[index].turns
    }

    fn turns(&mut self, rope: &Rope, rope_dim: usize, rows: Rows) -> Vec<(f32, f32)> {
        let known = |(r, f): &(Rope, Vec<f64>)| r == rope && f.len() == rope_dim / 2;
        let index = match self.frequencies.iter().position(known) {
            Some(index) => index,
            None => {
                self.frequencies.push((*rope, frequencies(rope, rope_dim)));
                self.frequencies.len() - 1
            }
        };
        let frequencies = &self.frequencies[index].1;
        let step = self.step;
        let row = |index: usize| {
            let position = f64::from(step.position(rows, index));
            frequencies.iter().map(move |f| {
                let (sin, cos) = (position * f).sin_cos();
                (cos as f32, sin as f32)
            })
        };
        (0..step.count(rows)).flat_map(row).collect()
    }
}

/// Turn the last `2 · turns.len()` channels of every head of one row.
///
/// * `x`: `[heads, dim]`, in place
pub(super) fn rotate(x: &mut [f32], dim: usize, turns: &[(f32, f32)], turn: Turn) {
    let sign = match turn {
        Turn::Forward => 1.0,
        Turn::Back => -1.0,
    };
    for head in x.chunks_exact_mut(dim) {
        let tail = &mut head[dim - 2 * turns.len()..];
        for (pair, &(cos, sin)) in tail.chunks_exact_mut(2).zip(turns) {
            let sin = sign * sin;
            (pair[0], pair[1]) = (pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Yarn;

    #[test]
    fn shipped_yarn_constants_blend_between_15_and_25() {
        let yarn = Yarn {
            factor: 16.0,
            original_context: 65_536,
            beta_fast: 32.0,
            beta_slow: 1.0,
        };
        let scaled = frequencies(
            &Rope {
                base: 160_000.0,
                yarn: Some(yarn),
            },
            64,
        );
        let plain = frequencies(
            &Rope {
                base: 160_000.0,
                yarn: None,
            },
            64,
        );
        assert!((0..=15).all(|i| scaled[i] == plain[i]));
        assert!((16..25).all(|i| scaled[i] < plain[i] && scaled[i] > plain[i] / 16.0));
        assert!((25..32).all(|i| scaled[i] == plain[i] / 16.0));
    }

    #[test]
    fn turning_back_undoes_turning_forward() {
        let turns = [(0.6, 0.8), (0.8, -0.6)];
        let mut x = [9.0, 1.0, 2.0, 3.0, 4.0];
        rotate(&mut x, 5, &turns, Turn::Forward);
        rotate(&mut x, 5, &turns, Turn::Back);
        assert!(
            x.iter()
                .zip([9.0, 1.0, 2.0, 3.0, 4.0])
                .all(|(a, b)| (a - b).abs() < 1e-6)
        );
    }
}
