//! The two hottest loops, compiled once for any processor and once for AVX2 with FMA.
//!
//! Without hardware FMA a fused multiply-add is a library call a lane, several times slower than everything else here.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls functions compiled for AVX2 and FMA")
)]

use crate::exec::Lanes;

macro_rules! twice {
    ($(#[$doc:meta])* $name:ident, $avx2:ident, $plain:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes) {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma")
            {
                // SAFETY: the processor has both features.
                return unsafe { $avx2(a, b, c, d) };
            }
            $plain(a, b, c, d);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $avx2(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes) {
            $plain(a, b, c, d);
        }
    };
}

twice! {
    /// `d = a · b + c` in f32 with one rounding.
    fma, fma_avx2, fma_plain
}

twice! {
    /// `d = c + Σ a[k] · b[k]` over four signed bytes, wrapping.
    dot4_signed, dot4_signed_avx2, dot4_signed_plain
}

#[inline(always)]
fn fma_plain(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes) {
    for l in 0..32 {
        let (x, y, z) = (
            f32::from_bits(a[l]),
            f32::from_bits(b[l]),
            f32::from_bits(c[l]),
        );
        let r = x.mul_add(y, z);
        let made = r.is_nan() && !(x.is_nan() || y.is_nan() || z.is_nan());
        d[l] = if made {
            crate::table::QUIET_NAN
        } else {
            r.to_bits()
        };
    }
}

#[inline(always)]
fn dot4_signed_plain(a: &Lanes, b: &Lanes, c: &Lanes, d: &mut Lanes) {
    for l in 0..32 {
        let mut sum = c[l] as i32;
        for k in 0..4 {
            let x = (a[l] << (24 - 8 * k)) as i32 >> 24;
            let y = (b[l] << (24 - 8 * k)) as i32 >> 24;
            sum = sum.wrapping_add(x * y);
        }
        d[l] = sum as u32;
    }
}
