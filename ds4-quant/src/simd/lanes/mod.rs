//! Eight lanes of `f32`, written once and run on whatever the processor has.
//!
//! A search over scales is a long chain of small decisions inside one group of weights, and its order of
//! operations is part of its result. What is independent is the *groups*: eight of them ride in the eight
//! lanes, each lane doing exactly what a plain loop over its own group would do. So every lane carries the
//! bits of the scalar loop, whichever [`Lanes`] computes it: only single correctly rounded operations are
//! offered here, never a fused one.
//!
//! [`Portable`] is arrays and loops and is the specification; [`Avx2`] is one instruction an operation.
//! A computation is a [`Work`]; [`run`] gives it the widest [`Lanes`] of this processor.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Sub};

use super::Isa;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
pub(crate) use portable::Portable;

/// How many groups ride together.
pub(crate) const LANES: usize = 8;

/// Proof that a set of instructions may be used, and the source of lane values.
pub(crate) trait Lanes: Copy {
    /// Eight `f32`.
    type F: Float<Mask = Self::M, Int = Self::U>;
    /// Eight answers to a comparison.
    type M: Mask<Int = Self::U>;
    /// Eight `u32`.
    type U: Int<Float = Self::F, Mask = Self::M>;

    /// The same value in every lane.
    fn splat(self, x: f32) -> Self::F;
    /// Lane `i` is `x[i]`.
    fn load(self, x: &[f32; LANES]) -> Self::F;
    /// The same value in every lane.
    fn splat_int(self, x: u32) -> Self::U;
    /// Lane `i` is `x[i]`.
    fn load_int(self, x: &[u32; LANES]) -> Self::U;
    /// Lane `i` is `x[i]`.
    fn load_words(self, x: &[u16; LANES]) -> Self::U;
    /// Rows become columns: lane `j` of `out[i]` is lane `i` of `rows[j]`.
    fn transpose(self, rows: [Self::F; LANES]) -> [Self::F; LANES];
    /// Four times eight signed integers as bytes in order, saturated to 0..=255.
    fn bytes(self, q: [Self::U; 4]) -> [u8; 4 * LANES];
    /// Four times eight signed integers as signed bytes in order, saturated to -128..=127.
    fn signed_bytes(self, q: [Self::U; 4]) -> [i8; 4 * LANES];
}

/// Eight `f32`; operators work lane by lane, each correctly rounded.
pub(crate) trait Float:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The answer to a comparison of two values.
    type Mask: Mask<Int = Self::Int>;
    /// Integers of the same shape.
    type Int: Int<Float = Self, Mask = Self::Mask>;

    /// `a < b ? a : b`, so `b` where either is not a number.
    fn min(self, b: Self) -> Self;
    /// `a > b ? a : b`, so `b` where either is not a number.
    fn max(self, b: Self) -> Self;
    /// Without its sign bit.
    fn abs(self) -> Self;
    /// With the sign bit of `sign` in place of its own.
    fn copysign(self, sign: Self) -> Self;
    /// Correctly rounded square root.
    fn sqrt(self) -> Self;
    /// Nearest integer, halves to even.
    fn round(self) -> Self;
    /// Towards zero.
    fn trunc(self) -> Self;
    /// Towards minus infinity.
    fn floor(self) -> Self;
    /// Towards plus infinity.
    fn ceil(self) -> Self;
    /// `a < b`; false where either is not a number, as are the other comparisons.
    fn lt(self, b: Self) -> Self::Mask;
    /// `a > b`
    fn gt(self, b: Self) -> Self::Mask;
    /// `a ≥ b`
    fn ge(self, b: Self) -> Self::Mask;
    /// `a = b`
    fn same(self, b: Self) -> Self::Mask;
    /// `yes` where `mask`, else `self`.
    fn replace(self, mask: Self::Mask, yes: Self) -> Self;
    /// The integer value of a lane that holds an integer of magnitude below 2³¹, in two's complement.
    fn to_int(self) -> Self::Int;
    /// The integers of the lanes as bytes, saturated to 0..=255.
    fn to_bytes(self) -> [u8; LANES];
    /// The bits of the nearest half floats, halves to even; the lanes are numbers.
    fn to_halves(self) -> [u16; LANES];
    /// The smallest lane; all are numbers.
    fn smallest(self) -> f32;
    /// Lane `i` is lane `pick[i] & 3` of its own half, `i / 4`, of `self`.
    fn lookup4(self, pick: Self::Int) -> Self;
    /// Lane `i` is `self` at index `pick[i] & 7`.
    fn lookup8(self, pick: Self::Int) -> Self;
    /// The lanes in order.
    fn to_array(self) -> [f32; LANES];
}

/// Eight yes or no.
pub(crate) trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> {
    /// Integers of the same shape.
    type Int;
    /// 1 where yes, 0 where no.
    fn bit(self) -> Self::Int;
    /// Bit `i` is lane `i`.
    fn bits(self) -> u32;
    /// Whether any lane says yes.
    fn any(self) -> bool;
}

/// Eight `u32`, wrapping.
pub(crate) trait Int:
    Copy + Add<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// Floats of the same shape.
    type Float;
    /// Answers of the same shape.
    type Mask;
    /// `yes` where `mask`, else `self`.
    fn replace(self, mask: Self::Mask, yes: Self) -> Self;
    /// One more where `mask`.
    fn more(self, mask: Self::Mask) -> Self;
    /// Shift left by a count below 32.
    fn shl(self, bits: u32) -> Self;
    /// Shift right by a count below 32, zeros come in.
    fn shr(self, bits: u32) -> Self;
    /// The value of a lane read as a signed integer.
    fn to_float(self) -> Self::Float;
    /// The same 32 bits, read as `f32`.
    fn as_float_bits(self) -> Self::Float;
    /// The lanes in order.
    fn to_array(self) -> [u32; LANES];
}

/// A computation over lanes. `run` and all it calls must be `#[inline(always)]`, or the instructions of
/// the [`Lanes`] are not available where they are used and every lane operation becomes a call.
pub(crate) trait Work {
    /// What it gives.
    type Out;
    /// Do it.
    fn run<L: Lanes>(self, lanes: L) -> Self::Out;
}

/// Run `work` on the widest lanes of `isa`. The result does not depend on the choice.
pub(crate) fn run<W: Work>(isa: Isa, work: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    if isa != Isa::SCALAR
        && let Some(avx2) = Avx2::detect()
    {
        return avx2.run(work);
    }
    let _ = isa;
    work.run(Portable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on the same awkward values, as bits.
    struct Everything;

    impl Work for Everything {
        type Out = Vec<[u32; LANES]>;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Self::Out {
            let a = lanes.load(&[-2.5, -0.5, 0.5, 1.5, 2.5, 1e-40, 3.0e7, -0.0]);
            let b = lanes.load(&[0.1, -0.5, 2.0, 1.5, -7.25, 1e-3, f32::NAN, 0.0]);
            let pick = lanes.load_int(&[7, 3, 0, 2, 6, 1, 4, 5]);
            let floats = [
                a + b,
                a - b,
                a * b,
                a / b,
                a.min(b),
                a.max(b),
                a.abs(),
                a.copysign(b),
                a.abs().sqrt(),
                a.round(),
                a.trunc(),
                a.floor(),
                a.replace(a.lt(b), b),
                a.replace(a.gt(b), b),
                a.replace(a.ge(b), b),
                a.replace(a.same(b), b),
                a.replace(a.lt(b) | a.same(b), b),
                a.replace(a.ge(b) & a.same(b), b),
                a.lookup4(pick),
                a.lookup8(pick),
                a.round().to_int().to_float(),
                pick.shl(23).as_float_bits(),
                a.ceil(),
                lanes.splat(0.1),
            ];
            let mut out: Vec<_> = floats
                .iter()
                .map(|f| f.to_array().map(f32::to_bits))
                .collect();
            let rows: [L::F; LANES] =
                std::array::from_fn(|i| lanes.splat(i as f32) * a + lanes.splat(0.5));
            out.extend(
                lanes
                    .transpose(rows)
                    .map(|row| row.to_array().map(f32::to_bits)),
            );
            let ints = [
                pick + lanes.splat_int(u32::MAX),
                pick & lanes.splat_int(5),
                pick | lanes.splat_int(8),
                pick ^ lanes.splat_int(5),
                pick.replace(a.lt(b), lanes.splat_int(9)),
                a.lt(b).bit(),
                lanes.load_words(&[0, 1, 2, 0xffff, 0x8000, 5, 6, 7]),
                pick.shl(30),
                pick.shr(1),
                a.round().to_int(),
            ];
            out.extend(ints.map(|i| i.to_array()));
            out.push(pick.more(a.lt(b)).to_array());
            out.push([a.lt(b).bits(), b.ge(a).bits(), 0, 0, 0, 0, 0, 0]);
            out.push(a.to_halves().map(u32::from));
            out.push([a.smallest().to_bits(), 0, 0, 0, 0, 0, 0, 0]);
            let wide = [
                a.round().to_int(),
                lanes.load_int(&[0, 1, 127, 128, 255, 256, u32::MAX, 1 << 31]),
                pick,
                lanes.splat_int(-129i32 as u32),
            ];
            for part in lanes.bytes(wide).as_chunks().0 {
                out.push(part.map(u32::from));
            }
            for part in lanes.signed_bytes(wide).as_chunks().0 {
                out.push(part.map(|b| b as u32));
            }
            let whole = lanes.load(&[0.0, -3.0, 255.0, 256.0, 7.0, -128.0, 127.0, -129.0]);
            out.push(whole.to_bytes().map(u32::from));
            assert!(a.lt(b).any() && !a.lt(a).any());
            out
        }
    }

    #[test]
    fn every_operation_gives_the_bits_of_the_portable_one() {
        // NaN results may differ in sign and payload; nothing downstream looks at those.
        let clean = |rows: Vec<[u32; LANES]>| -> Vec<[u32; LANES]> {
            let quiet = |b: u32| {
                if f32::from_bits(b).is_nan() {
                    0x7fc0_0000
                } else {
                    b
                }
            };
            rows.into_iter().map(|row| row.map(quiet)).collect()
        };
        assert_eq!(
            clean(run(Isa::best(), Everything)),
            clean(run(Isa::SCALAR, Everything))
        );
    }

    #[test]
    fn portable_lanes_follow_their_definition() {
        let rows = run(Isa::SCALAR, Everything);
        let row = |i: usize| rows[i].map(f32::from_bits);
        assert_eq!(
            row(9)[..5],
            [-2.0, -0.0, 0.0, 2.0, 2.0],
            "halves go to even"
        );
        assert_eq!(row(11)[..5], [-3.0, -1.0, 0.0, 1.0, 2.0], "floor");
        assert_eq!(
            row(4)[6].to_bits(),
            f32::NAN.to_bits(),
            "min takes the second where unordered"
        );
        let last = rows.len() - 1;
        assert_eq!(rows[last], [0, 0, 255, 255, 7, 0, 127, 0], "bytes saturate");
        assert_eq!(rows[last - 7], [0, 1, 127, 128, 255, 255, 0, 0]);
        let signed = [0, 1, 127, 127, 127, 127, u32::MAX, -128i32 as u32];
        assert_eq!(rows[last - 3], signed);
        assert_eq!(
            row(19),
            [-0.0, 1.5, -2.5, 0.5, 3.0e7, -0.5, 2.5, 1e-40],
            "lookup by index"
        );
    }
}
