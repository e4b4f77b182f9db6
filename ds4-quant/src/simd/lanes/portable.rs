//! Lanes as arrays: the specification of [`Lanes`](super::Lanes), and what runs where nothing better does.

use std::array::from_fn;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Sub};

use half::f16;

use super::{Float, Int, LANES, Lanes, Mask};

/// Plain arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// Eight `f32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F([f32; LANES]);

/// Eight `u32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct U([u32; LANES]);

/// Eight answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct M([bool; LANES]);

impl Lanes for Portable {
    type F = F;
    type M = M;
    type U = U;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        F([x; LANES])
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> F {
        F(*x)
    }

    #[inline(always)]
    fn splat_int(self, x: u32) -> U {
        U([x; LANES])
    }

    #[inline(always)]
    fn load_int(self, x: &[u32; LANES]) -> U {
        U(*x)
    }

    #[inline(always)]
    fn load_words(self, x: &[u16; LANES]) -> U {
        U(x.map(u32::from))
    }

    #[inline(always)]
    fn transpose(self, rows: [F; LANES]) -> [F; LANES] {
        from_fn(|i| F(from_fn(|j| rows[j].0[i])))
    }

    #[inline(always)]
    fn bytes(self, q: [U; 4]) -> [u8; 4 * LANES] {
        from_fn(|i| (q[i / LANES].0[i % LANES] as i32).clamp(0, 255) as u8)
    }

    #[inline(always)]
    fn signed_bytes(self, q: [U; 4]) -> [i8; 4 * LANES] {
        from_fn(|i| (q[i / LANES].0[i % LANES] as i32).clamp(-128, 127) as i8)
    }
}

impl F {
    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(from_fn(|i| f(self.0[i])))
    }

    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(from_fn(|i| f(self.0[i], b.0[i])))
    }

    #[inline(always)]
    fn compare(self, b: Self, f: impl Fn(&f32, &f32) -> bool) -> M {
        M(from_fn(|i| f(&self.0[i], &b.0[i])))
    }
}

impl Add for F {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        self.zip(b, |a, b| a + b)
    }
}

impl Sub for F {
    type Output = Self;
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        self.zip(b, |a, b| a - b)
    }
}

impl Mul for F {
    type Output = Self;
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        self.zip(b, |a, b| a * b)
    }
}

impl Div for F {
    type Output = Self;
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        self.zip(b, |a, b| a / b)
    }
}

impl Float for F {
    type Mask = M;
    type Int = U;

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        self.zip(b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        self.zip(b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.map(f32::abs)
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        self.zip(sign, f32::copysign)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(f32::sqrt)
    }

    #[inline(always)]
    fn round(self) -> Self {
        self.map(f32::round_ties_even)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        self.map(f32::trunc)
    }

    #[inline(always)]
    fn floor(self) -> Self {
        self.map(f32::floor)
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        self.map(f32::ceil)
    }

    #[inline(always)]
    fn lt(self, b: Self) -> M {
        self.compare(b, |a, b| a < b)
    }

    #[inline(always)]
    fn gt(self, b: Self) -> M {
        self.compare(b, |a, b| a > b)
    }

    #[inline(always)]
    fn ge(self, b: Self) -> M {
        self.compare(b, |a, b| a >= b)
    }

    #[inline(always)]
    fn same(self, b: Self) -> M {
        self.compare(b, |a, b| a == b)
    }

    #[inline(always)]
    fn replace(self, mask: M, yes: Self) -> Self {
        Self(from_fn(|i| if mask.0[i] { yes.0[i] } else { self.0[i] }))
    }

    #[inline(always)]
    fn to_int(self) -> U {
        U(self.0.map(|x| x as i32 as u32))
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; LANES] {
        self.0.map(|x| x as u8)
    }

    #[inline(always)]
    fn to_halves(self) -> [u16; LANES] {
        self.0.map(|x| f16::from_f32(x).to_bits())
    }

    #[inline(always)]
    fn smallest(self) -> f32 {
        self.0[1..]
            .iter()
            .fold(self.0[0], |a, &b| if b < a { b } else { a })
    }

    #[inline(always)]
    fn lookup4(self, pick: U) -> Self {
        Self(from_fn(|i| self.0[(i & 4) + (pick.0[i] & 3) as usize]))
    }

    #[inline(always)]
    fn lookup8(self, pick: U) -> Self {
        Self(pick.0.map(|p| self.0[(p & 7) as usize]))
    }

    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        self.0
    }
}

impl BitAnd for M {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i] & b.0[i]))
    }
}

impl BitOr for M {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i] | b.0[i]))
    }
}

impl Mask for M {
    type Int = U;

    #[inline(always)]
    fn bit(self) -> U {
        U(self.0.map(u32::from))
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        (0..LANES).fold(0, |bits, i| bits | u32::from(self.0[i]) << i)
    }

    #[inline(always)]
    fn any(self) -> bool {
        self.0.contains(&true)
    }
}

impl Add for U {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i].wrapping_add(b.0[i])))
    }
}

impl BitAnd for U {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i] & b.0[i]))
    }
}

impl BitOr for U {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i] | b.0[i]))
    }
}

impl BitXor for U {
    type Output = Self;
    #[inline(always)]
    fn bitxor(self, b: Self) -> Self {
        Self(from_fn(|i| self.0[i] ^ b.0[i]))
    }
}

impl Int for U {
    type Float = F;
    type Mask = M;

    #[inline(always)]
    fn replace(self, mask: M, yes: Self) -> Self {
        Self(from_fn(|i| if mask.0[i] { yes.0[i] } else { self.0[i] }))
    }

    #[inline(always)]
    fn more(self, mask: M) -> Self {
        self + mask.bit()
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        Self(self.0.map(|x| x << bits))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        Self(self.0.map(|x| x >> bits))
    }

    #[inline(always)]
    fn to_float(self) -> F {
        F(self.0.map(|x| x as i32 as f32))
    }

    #[inline(always)]
    fn as_float_bits(self) -> F {
        F(self.0.map(f32::from_bits))
    }

    #[inline(always)]
    fn to_array(self) -> [u32; LANES] {
        self.0
    }
}
