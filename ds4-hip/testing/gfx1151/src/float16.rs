//! f16 and bf16 as bit patterns in the low half of a word.
//!
//! Branch-free where the lane loops use it, so that they vectorise.

/// f16 to f32, exact; NaN becomes quiet.
#[inline(always)]
pub(crate) fn to_f32(h: u32) -> f32 {
    const NORMAL: f32 = f32::from_bits((254 - 15) << 23);
    let magnitude = (h & 0x7fff) << 13;
    // The exponent's bias differs by 112: one multiplication repairs it, denormals included.
    let scaled = (f32::from_bits(magnitude) * NORMAL).to_bits();
    let special = magnitude | 0xff << 23;
    let quiet = u32::from(h & 0x7fff > 0x7c00) << 22;
    let bits = if h & 0x7c00 == 0x7c00 {
        special | quiet
    } else {
        scaled
    };
    f32::from_bits(bits | (h & 0x8000) << 16)
}

/// f32 to f16, rounded to nearest even.
#[inline(always)]
pub(crate) fn from_f32(x: f32) -> u32 {
    let bits = x.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    // Denormal results: adding 1/2 puts their last bit at the last place of the sum.
    let small = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    let finite = if magnitude < 113 << 23 { small } else { normal };
    let large = if magnitude > 0x7f80_0000 {
        0x7e00 | magnitude >> 13 & 0x1ff
    } else {
        0x7c00
    };
    sign | if magnitude >= 0x477f_f000 {
        large
    } else {
        finite
    }
}

/// f32 to f16, toward zero.
pub(crate) fn from_f32_toward_zero(x: f32) -> u32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    let nearest = from_f32(x);
    let infinite_by_rounding = nearest & 0x7fff == 0x7c00 && magnitude < 0x7f80_0000;
    if infinite_by_rounding || to_f32(nearest).abs() > x.abs() {
        nearest - 1
    } else {
        nearest
    }
}

/// f64 to f16, rounded once to nearest even.
pub(crate) fn from_f64(x: f64) -> u32 {
    from_f32(to_odd_f32(x))
}

/// f64 to f32 so that a second rounding to f16 is the only one that counts: an inexact result gets an odd last bit.
fn to_odd_f32(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || !near.is_finite() || near == 0.0 {
        return near;
    }
    let bits = near.to_bits();
    let toward_zero = if f64::from(near).abs() > x.abs() {
        bits - 1
    } else {
        bits
    };
    f32::from_bits(toward_zero | 1)
}

/// `a · b + c` of three f16 values with one rounding.
pub(crate) fn fma(a: f32, b: f32, c: f32) -> u32 {
    // The product of two 11-bit significands is exact in f64; only the sum can round.
    from_f64(sum_to_odd(f64::from(a) * f64::from(b), c.into()))
}

/// `a + b` with an odd last bit when it is not exact, so that rounding it again to fewer bits is rounding once.
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let back = sum - a;
    to_odd(sum, (a - (sum - back)) + (b - back))
}

/// `near`, moved to the neighbour in the direction of `error` when its last bit is even.
pub(crate) fn to_odd(near: f64, error: f64) -> f64 {
    let bits = near.to_bits();
    if error == 0.0 || bits & 1 == 1 {
        near
    } else if (error > 0.0) == (near > 0.0) {
        f64::from_bits(bits + 1)
    } else {
        f64::from_bits(bits.wrapping_sub(1))
    }
}

/// bf16 to f32, exact.
#[inline(always)]
pub(crate) fn bf16_to_f32(h: u32) -> f32 {
    f32::from_bits(h << 16)
}

/// f32 to bf16, rounded to nearest even.
pub(crate) fn bf16_from_f32(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() {
        return bits >> 16 | 0x40;
    }
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of an f16 by its definition.
    fn value(h: u32) -> f64 {
        let (e, m) = ((h >> 10 & 31) as i32, f64::from(h & 1023));
        let magnitude = match e {
            0 => m * 2f64.powi(-24),
            31 => f64::INFINITY,
            _ => (1024.0 + m) * 2f64.powi(e - 25),
        };
        if h & 0x8000 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    #[test]
    fn every_f16_has_its_value_and_comes_back() {
        for h in 0..0x1_0000 {
            if h & 0x7fff > 0x7c00 {
                assert!(to_f32(h).is_nan());
                assert_eq!(from_f32(to_f32(h)), h | 0x200);
            } else {
                assert_eq!(f64::from(to_f32(h)), value(h));
                assert_eq!(from_f32(to_f32(h)), h);
                assert_eq!(from_f32_toward_zero(to_f32(h)), h);
            }
        }
    }

    /// Between each two neighbours: the middle goes to the even one, anything else to the nearer one.
    #[test]
    fn rounding_is_to_nearest_even() {
        for h in 0..0x7bff_u32 {
            let (low, high) = (value(h), value(h + 1));
            let middle = (low + high) / 2.0;
            let even = h + (h & 1);
            for (x, want) in [
                (middle, even),
                (middle.next_up(), h + 1),
                (middle.next_down(), h),
            ] {
                assert_eq!(from_f64(x), want, "{x:e}");
                assert_eq!(from_f64(-x), want | 0x8000);
            }
            assert_eq!(from_f32(middle as f32), even);
            assert_eq!(from_f32_toward_zero((middle as f32).next_up()), h);
        }
        assert_eq!(from_f32(65519.996), 0x7bff);
        assert_eq!(from_f32(65520.0), 0x7c00);
        assert_eq!(from_f32_toward_zero(1e30), 0x7bff);
        assert_eq!(from_f32_toward_zero(f32::INFINITY), 0x7c00);
        assert_eq!(from_f64(1e300), 0x7c00);
        assert_eq!(from_f64(2f64.powi(-25)), 0);
        assert_eq!(from_f64(2f64.powi(-25).next_up()), 1);
    }

    /// 1 + 2^-10 times itself is 1 + 2^-9 + 2^-20; a tiny addend decides what happens at a tie.
    #[test]
    fn fma_rounds_once() {
        let x = 1.0 + 2f32.powi(-10);
        // (1 + 2^-10)(1.5) = 1.5 + 1.5·2^-10: a tie between two f16 values.
        let tie = fma(x, 1.5, 0.0);
        assert_eq!(tie, 0x3e02);
        assert_eq!(fma(x, 1.5, -2f32.powi(-24)), 0x3e01);
        assert_eq!(fma(x, 1.5, 2f32.powi(-24)), 0x3e02);
        // 2^-48 is far below the last place of f64 next to 65504.
        assert_eq!(fma(2f32.powi(-24), 2f32.powi(-24), 65504.0), 0x7bff);
    }
}
