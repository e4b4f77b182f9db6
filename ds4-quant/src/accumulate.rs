//! How a packed row meets a row of signed bytes: exact integers inside a block, then one fixed `f32` chain.
//!
//! This file is the specification; the SIMD kernels give the same bits. Inside a block every product and sum is an
//! exact `i32`, so lanes, tiles and instruction sets may order them as they like. Each block b then yields one
//! number `t(b)` on the weight's side, and the row is
//!
//! ```text
//! acc[b mod L] = fma(dx(b), t(b), acc[b mod L])         b = 0, 1, …; L accumulators, all starting at +0
//! y            = acc folded in halves: acc[l] + acc[l + L/2], then L/4, …
//!
//! 256 weights, L = 4:   t = fma(−dmin, M, d·S)          S = Σ_g scale_g · Σ_{i in g} q_i·x_i,   g: 16 groups of 16
//!                                                       M = Σ_g min_g · Σ_{i in g} x_i
//!  32 weights, L = 8:   t = d·S                         one scale
//!                       t = fma(d1, S1, d0·S0)          a scale for each half
//!                       t = fma(−o, Σx, d·S)            scale and offset
//! ```
//! Integers become `f32` by rounding to nearest even. Formats without minimum leave out the outer `fma`.
//! Rows of plain floats, and every row under [`crate::Precision::Exact`]: L = 16, `acc[i mod 16] = fma(w_i, x_i, …)`.

use crate::activations::QuantizedRow;

/// Accumulators of a row of 256-weight blocks.
pub(crate) const SUPER_CHAINS: usize = 4;
/// Accumulators of a row of 32-weight blocks.
pub(crate) const SMALL_CHAINS: usize = 8;
/// Accumulators of a row of floats.
pub(crate) const FLOAT_CHAINS: usize = 16;

/// 256 weights as integers: `w[i] = d · scale[i/16] · q[i] − dmin · min[i/16]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuperBlock {
    pub(crate) d: f32,
    pub(crate) dmin: f32,
    pub(crate) scale: [i16; 16],
    pub(crate) min: [i16; 16],
    pub(crate) q: [i8; 256],
}

/// What stands before the integers of a 32-weight block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scale {
    /// `w[i] = d · q[i]`
    One(f32),
    /// `w[i] = d[i/16] · q[i]`
    Halves([f32; 2]),
    /// `w[i] = d · q[i] − offset`
    Affine { d: f32, offset: f32 },
}

/// 32 weights as integers and their scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallBlock {
    pub(crate) scale: Scale,
    pub(crate) q: [i8; 32],
}

/// `Σ q·x` of 16 bytes: exact, so an instruction set may bring its own form.
pub(crate) trait Products {
    fn sum(q: &[i8; 16], x: &[i8; 16]) -> i32;
}

/// [`Products`] in plain code.
pub(crate) struct Plain;

impl Products for Plain {
    #[inline]
    fn sum(q: &[i8; 16], x: &[i8; 16]) -> i32 {
        q.iter()
            .zip(x)
            .map(|(&q, &x)| i32::from(q) * i32::from(x))
            .sum()
    }
}

/// `t` of one block of 256: x `[256]`, sums `[16]`. `with_min` is a property of the format.
#[inline]
pub(crate) fn super_term<P: Products>(
    w: &SuperBlock,
    x: &[i8],
    sums: &[i16],
    with_min: bool,
) -> f32 {
    let (mut s, mut m) = (0i32, 0i32);
    let (q, x) = (w.q.as_chunks().0, x.as_chunks().0);
    for (g, (q, x)) in q.iter().zip(x).enumerate() {
        s += i32::from(w.scale[g]) * P::sum(q, x);
        m += i32::from(w.min[g]) * i32::from(sums[g]);
    }
    let t = w.d * s as f32;
    if with_min {
        (-w.dmin).mul_add(m as f32, t)
    } else {
        t
    }
}

/// `t` of one block of 32: x `[32]`, sums `[2]`.
#[inline]
pub(crate) fn small_term<P: Products>(w: &SmallBlock, x: &[i8], sums: &[i16]) -> f32 {
    let (q, x) = (w.q.as_chunks().0, x.as_chunks().0);
    let halves = [P::sum(&q[0], &x[0]), P::sum(&q[1], &x[1])];
    let all = (halves[0] + halves[1]) as f32;
    match w.scale {
        Scale::One(d) => d * all,
        Scale::Halves(d) => d[1].mul_add(halves[1] as f32, d[0] * halves[0] as f32),
        Scale::Affine { d, offset } => {
            let x = i32::from(sums[0]) + i32::from(sums[1]);
            (-offset).mul_add(x as f32, d * all)
        }
    }
}

/// One row of 256-weight blocks.
pub(crate) fn super_row(
    blocks: impl Iterator<Item = SuperBlock>,
    x: QuantizedRow<'_>,
    with_min: bool,
) -> f32 {
    let mut acc = [0.0f32; SUPER_CHAINS];
    for (b, w) in blocks.enumerate() {
        let t = super_term::<Plain>(
            &w,
            &x.codes[256 * b..][..256],
            &x.sums[16 * b..][..16],
            with_min,
        );
        let acc = &mut acc[b % SUPER_CHAINS];
        *acc = x.scales[b].mul_add(t, *acc);
    }
    fold(acc)
}

/// One row of 32-weight blocks.
pub(crate) fn small_row(blocks: impl Iterator<Item = SmallBlock>, x: QuantizedRow<'_>) -> f32 {
    let mut acc = [0.0f32; SMALL_CHAINS];
    for (b, w) in blocks.enumerate() {
        let t = small_term::<Plain>(&w, &x.codes[32 * b..][..32], &x.sums[2 * b..][..2]);
        let acc = &mut acc[b % SMALL_CHAINS];
        *acc = x.scales[b].mul_add(t, *acc);
    }
    fold(acc)
}

/// Sum of all accumulators by halves.
pub(crate) fn fold<const N: usize>(mut acc: [f32; N]) -> f32 {
    let mut n = N;
    while n > 1 {
        n /= 2;
        for l in 0..n {
            acc[l] += acc[l + n];
        }
    }
    acc[0]
}

/// Running float accumulators, for rows that arrive in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatChains([f32; FLOAT_CHAINS]);

impl FloatChains {
    pub(crate) fn new() -> Self {
        Self([0.0; FLOAT_CHAINS])
    }

    /// Add `Σ w·x`. Every piece but the last is a multiple of 16 long.
    pub(crate) fn add(&mut self, w: &[f32], x: &[f32]) {
        for (w, x) in w.chunks(FLOAT_CHAINS).zip(x.chunks(FLOAT_CHAINS)) {
            for ((acc, &w), &x) in self.0.iter_mut().zip(w).zip(x) {
                *acc = w.mul_add(x, *acc);
            }
        }
    }

    pub(crate) fn sum(self) -> f32 {
        fold(self.0)
    }
}
