//! Q2_K blocks found again from the weights they decode to.
//!
//! The fit of a group finds its step and its minimum; the scales of the *block* are then fitted with the largest one
//! at 15, which a block whose largest integer is another does not survive. Here the two units are read off the
//! weights: groups in which all four codes occur show a step and a minimum each, all multiples of `d` and `dmin`.

use half::f16;

use super::two_level::{BLOCK, Block};

const GROUP: usize = 16;
const GROUPS: usize = BLOCK / GROUP;
/// Largest integer scale or minimum.
const TOP: u8 = 15;
/// Decoded weights carry the rounding of one subtraction, at most 2⁻²⁴ of the larger term; differences and quotients
/// of them a few times that.
const ROUNDING: f32 = 1e-6;

/// The different weights of a group, ascending.
#[derive(Clone, Copy, Default)]
struct Levels {
    value: [f32; 4],
    count: usize,
}

impl Levels {
    /// `None` for more than four.
    fn of(x: &[f32; GROUP]) -> Option<Self> {
        let mut levels = Self::default();
        for &x in x {
            let place = levels.get().partition_point(|&v| v < x);
            if levels.get().get(place) == Some(&x) {
                continue;
            }
            if levels.count == 4 {
                return None;
            }
            levels
                .value
                .copy_within(place..levels.count.min(3), place + 1);
            levels.value[place] = x;
            levels.count += 1;
        }
        Some(levels)
    }

    fn get(&self) -> &[f32] {
        &self.value[..self.count]
    }

    /// Step and minimum where all four codes occur.
    fn full(&self) -> Option<[f32; 2]> {
        (self.count == 4).then(|| [(self.value[3] - self.value[0]) / 3.0, -self.value[0]])
    }

    /// How far the levels are from codes 0..=3 under `scale` and `min`, at most.
    fn miss(&self, scale: f32, min: f32) -> f32 {
        let miss = |&x: &f32| {
            let q = if scale > 0.0 {
                ((x + min) / scale).round_ties_even().clamp(0.0, 3.0)
            } else {
                0.0
            };
            (scale * q - min - x).abs()
        };
        self.get().iter().map(miss).fold(0.0, f32::max)
    }
}

/// A block with a lower error than `found` for weights that some block decodes to; else `found`.
pub(super) fn better(x: &[f32; BLOCK], importance: Option<&[f32]>, found: Block) -> Block {
    match recover(x) {
        Some(block) if error(&block, x, importance) < error(&found, x, importance) => block,
        _ => found,
    }
}

fn recover(x: &[f32; BLOCK]) -> Option<Block> {
    let mut levels = [Levels::default(); GROUPS];
    for (levels, x) in levels.iter_mut().zip(x.as_chunks().0) {
        *levels = Levels::of(x)?;
    }
    let largest = x.iter().fold(0.0f32, |a, x| a.max(x.abs()));
    let full = || levels.iter().filter_map(Levels::full);
    let d = unit(full().map(|[step, _]| step), ROUNDING * largest)?;
    let dmin = unit(full().map(|[_, min]| min), ROUNDING * largest)?;
    let mut block = Block {
        d,
        dmin,
        scales: [0; GROUPS],
        mins: [0; GROUPS],
        codes: [0; BLOCK],
    };
    for (g, (levels, x)) in levels.iter().zip(x.as_chunks::<GROUP>().0).enumerate() {
        let (scale, min) = integers(levels, d.to_f32(), dmin.to_f32(), ROUNDING * largest)?;
        (block.scales[g], block.mins[g]) = (scale, min);
        let (scale, min) = (
            d.to_f32() * f32::from(scale),
            dmin.to_f32() * f32::from(min),
        );
        if scale > 0.0 {
            for (code, x) in block.codes[g * GROUP..].iter_mut().zip(x) {
                *code = ((x + min) / scale).round_ties_even().clamp(0.0, 3.0) as u8;
            }
        }
    }
    Some(block)
}

/// The largest `f16` of which all `multiples` are multiples by 0..=15; 0 where all are 0.
fn unit(multiples: impl Iterator<Item = f32> + Clone, rounding: f32) -> Option<f16> {
    let largest = multiples.clone().fold(0.0, f32::max);
    if largest == 0.0 {
        return Some(f16::ZERO);
    }
    (1..=TOP)
        .map(|k| f16::from_f32(largest / f32::from(k)))
        .find(|unit| {
            let unit = unit.to_f32();
            multiples.clone().all(|x| {
                let times = (x / unit).round_ties_even();
                times >= 0.0 && times <= f32::from(TOP) && (times * unit - x).abs() <= rounding
            })
        })
}

/// Integer scale and minimum that give the levels of a group.
fn integers(levels: &Levels, d: f32, dmin: f32, rounding: f32) -> Option<(u8, u8)> {
    let mut best = None;
    let mut least = rounding;
    for scale in 0..=TOP {
        let step = d * f32::from(scale);
        // The smallest level may have any code.
        for lowest in 0..=3u8 {
            let min = step * f32::from(lowest) - levels.value[0];
            let min = if dmin > 0.0 {
                (min / dmin).round_ties_even()
            } else {
                0.0
            };
            if !(0.0..=f32::from(TOP)).contains(&min) {
                continue;
            }
            let miss = levels.miss(step, dmin * min);
            if miss < least || best.is_none() && miss == least {
                (best, least) = (Some((scale, min as u8)), miss);
            }
        }
    }
    best
}

/// `Σ a·(x − w)²` of what a block decodes to.
fn error(block: &Block, x: &[f32; BLOCK], importance: Option<&[f32]>) -> f64 {
    let (d, dmin) = (block.d.to_f32(), block.dmin.to_f32());
    let mut sum = 0.0;
    for (i, (&x, &code)) in x.iter().zip(&block.codes).enumerate() {
        let (scale, min) = (block.scales[i / GROUP], block.mins[i / GROUP]);
        let w = d * f32::from(scale) * f32::from(code) - dmin * f32::from(min);
        let miss = f64::from(x) - f64::from(w);
        sum += importance.map_or(1.0, |a| f64::from(a[i])) * miss * miss;
    }
    sum
}
