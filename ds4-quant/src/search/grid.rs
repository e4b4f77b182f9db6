//! Code books that are lattices: which point stands for a run of weights, and at what scale.
//!
//! A point has 8 (IQ2) or 4 (IQ3) coordinates, odd numbers 1, 3, 5 (to 15 for IQ3). Rounding weights to odd numbers
//! gives a *code*, level `l` of coordinate `i` at bit `BITS · i`, value `2l + 1`. Few codes are points; every other
//! code has a list of near points, from which the one with the least weighted error is taken.

use crate::simd::lanes::{Float, Int, LANES, Lanes, Mask};

/// A lattice and, for every code, the point or the near points.
pub(crate) struct Grid {
    /// By code: the point, or the off-grid list.
    codes: Box<[Code]>,
    /// Near points as codes, lists padded to whole lanes by repeating their first point.
    near: Box<[[u16; LANES]]>,
}

#[derive(Clone, Copy)]
enum Code {
    /// The code is this point.
    Point(u16),
    /// `near[first..][..count]`.
    Near { first: u32, count: u16 },
}

impl Grid {
    /// * `points`: in the order of their indices, the values the format decodes them to
    /// * `values`: the value of each level, ascending · `shells`: how many distinct distances count as near
    pub(crate) fn new<const D: usize>(points: &[[u8; D]], values: &[u8], shells: usize) -> Self {
        let bits = if D == 8 { 2 } else { 3 };
        let code_of = |levels: &[u8; D]| {
            levels
                .iter()
                .rev()
                .fold(0, |code: u16, &level| code << bits | u16::from(level))
        };
        let level = |value: u8| values.iter().filter(|&&v| v < value).count() as u8;
        let points: Vec<[u8; D]> = points.iter().map(|point| point.map(level)).collect();
        let levels = values.len();
        let size = 1 + usize::from(code_of(&[levels as u8 - 1; D]));
        let mut codes = vec![Code::Near { first: 0, count: 0 }; size];
        for (index, point) in points.iter().enumerate() {
            codes[usize::from(code_of(point))] = Code::Point(index as u16);
        }
        let mut near = Vec::new();
        for place in 0..levels.pow(D as u32) {
            let here = std::array::from_fn(|i| (place / levels.pow(i as u32) % levels) as u8);
            let slot = &mut codes[usize::from(code_of(&here))];
            if let Code::Near { first, count } = slot {
                let list = shell(&points, &here, shells);
                *first = near.len() as u32;
                *count = list.len().div_ceil(LANES) as u16;
                for part in list.chunks(LANES) {
                    let mut eight = [code_of(&points[usize::from(list[0])]); LANES];
                    for (code, &index) in eight.iter_mut().zip(part) {
                        *code = code_of(&points[usize::from(index)]);
                    }
                    near.push(eight);
                }
            }
        }
        Self {
            codes: codes.into(),
            near: near.into(),
        }
    }

    /// The index of the point that `code` is, if it is one.
    pub(crate) fn point(&self, code: u32) -> Option<u16> {
        match self.codes[code as usize] {
            Code::Point(index) => Some(index),
            Code::Near { .. } => None,
        }
    }

    /// The index of the point that `code` is.
    ///
    /// # Panics
    /// When `code` is off the grid; codes that come from [`Self::snap`] are on it.
    pub(crate) fn index(&self, code: u32) -> u16 {
        self.point(code).expect("snap returns codes of points")
    }

    /// The code of the point that stands for values `v` rounded to `code`, and whether `code` itself was one.
    ///
    /// Of the near points the one with the least `Σ w·(scale · point − v)²`, the first on a tie.
    /// * `v`, `w`: `[D]`
    #[inline(always)]
    pub(crate) fn snap<L: Lanes, const D: usize>(
        &self,
        lanes: L,
        code: u32,
        v: &[f32],
        w: &[f32],
        scale: f32,
    ) -> (u32, bool) {
        let (first, count) = match self.codes[code as usize] {
            Code::Point(_) => return (code, true),
            Code::Near { first, count } => (first as usize, usize::from(count)),
        };
        // What each level of each coordinate would cost; in halves of four for the two-bit levels.
        let odd = if D == 8 {
            lanes.load(&[1.0, 3.0, 5.0, 7.0, 1.0, 3.0, 5.0, 7.0])
        } else {
            lanes.load(&[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0])
        };
        let at = lanes.splat(scale) * odd;
        let mut cost = [at; D];
        for i in 0..D {
            let miss = at - lanes.splat(v[i]);
            cost[i] = lanes.splat(w[i]) * miss * miss;
        }
        let mut best = lanes.splat(f32::MAX);
        let mut point = lanes.load_words(&self.near[first]);
        let mut place = lanes.splat_int(0);
        let mut here = lanes.load_int(&[0, 1, 2, 3, 4, 5, 6, 7]);
        for eight in &self.near[first..first + count] {
            let codes = lanes.load_words(eight);
            let mut sum = lanes.splat(0.0);
            for (i, cost) in cost.iter().enumerate() {
                let term = if D == 8 {
                    cost.lookup4(codes.shr(2 * i as u32))
                } else {
                    cost.lookup8(codes.shr(3 * i as u32))
                };
                sum = sum + term;
            }
            let better = sum.lt(best);
            best = best.replace(better, sum);
            point = point.replace(better, codes);
            place = place.replace(better, here);
            here = here + lanes.splat_int(LANES as u32);
        }
        let mut ties = best.same(lanes.splat(best.smallest())).bits();
        let point = point.to_array();
        let mut winner = ties.trailing_zeros() as usize % LANES;
        // Places of one part are in the order of the lanes.
        if count > 1 && !ties.is_power_of_two() {
            let place = place.to_array();
            while ties != 0 {
                let lane = ties.trailing_zeros() as usize % LANES;
                if place[lane] < place[winner] {
                    winner = lane;
                }
                ties &= ties - 1;
            }
        }
        (point[winner], false)
    }
}

/// Indices of the points at the `shells` smallest distances from `here`, by distance and then index.
fn shell<const D: usize>(points: &[[u8; D]], here: &[u8; D], shells: usize) -> Vec<u16> {
    let distance = |point: &[u8; D]| -> u32 {
        point
            .iter()
            .zip(here)
            .map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2))
            .sum()
    };
    let distances: Vec<u32> = points.iter().map(distance).collect();
    let mut limit = 0;
    for _ in 0..shells {
        limit = distances
            .iter()
            .copied()
            .filter(|&d| d > limit)
            .min()
            .unwrap_or(limit);
    }
    let mut list: Vec<u16> = (0..points.len() as u16)
        .filter(|&i| distances[usize::from(i)] <= limit)
        .collect();
    list.sort_by_key(|&i| (distances[usize::from(i)], i));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::lanes::Portable;

    #[test]
    fn the_shell_of_an_off_grid_code_is_ordered_by_distance_then_index() {
        let points = [[0, 0], [2, 0], [1, 1], [0, 2]];
        assert_eq!(shell(&points, &[1, 0], 1), [0, 1, 2]);
        assert_eq!(shell(&points, &[0, 1], 2), [0, 2, 3, 1]);
    }

    #[test]
    fn snapping_keeps_points_and_gives_other_codes_the_cheapest_near_point() {
        let points = [[4, 4, 4, 4], [4, 4, 4, 12], [20, 20, 20, 20]];
        let grid = Grid::new(&points, &[4, 12, 20, 28, 36, 44, 52, 62], 1);
        assert_eq!(grid.point(1 << 9), Some(1));
        assert_eq!(grid.point(1 << 6), None);
        let v = [1.0, 1.0, 1.0, 3.0];
        assert_eq!(
            grid.snap::<_, 4>(Portable, 1 << 9, &v, &[1.0; 4], 1.0),
            (1 << 9, true)
        );
        // One level off both of the first two points: distance decides nothing, the weighted error does.
        let both = 1 << 6;
        assert_eq!(
            grid.snap::<_, 4>(Portable, both, &v, &[1.0; 4], 1.0),
            (0, false)
        );
        assert_eq!(
            grid.snap::<_, 4>(Portable, both, &[5.0; 4], &[1.0; 4], 1.0),
            (0, false)
        );
    }
}
