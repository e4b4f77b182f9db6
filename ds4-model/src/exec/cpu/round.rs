//! The rounding of cached rows that the model was trained with.
//!
//! FP8 block of 64: `s = 2^⌈log2(max(amax, 1e-4) / 448)⌉`, `v ← s · rne_e4m3(v / s)`.
//! FP4 block of 32: `s = 2^⌈log2(max(amax, 6·2^-126) / 6)⌉`, `v ← s · near_e2m1(v / s)`, ties to the even code.
//! Source: antirez/ds4:ds4.c (CPU reference), checked against its routines bit for bit by the goldens' generator.

use half::f16;

use crate::graph::Rounding;

/// Round one group of values in place.
pub(super) fn round(x: &mut [f32], rounding: Rounding) {
    match rounding {
        Rounding::Kv { exact } => {
            let plain = x.len() - exact as usize;
            for block in x[..plain].chunks_mut(64) {
                round_block(block, 448.0, 1e-4, e4m3);
            }
            store_f16(x);
        }
        Rounding::Index { store } => {
            hadamard(x);
            for block in x.chunks_mut(32) {
                round_block(block, 6.0, 6.0 * f32::MIN_POSITIVE, e2m1);
            }
            if store {
                store_f16(x);
            }
        }
    }
}

fn store_f16(x: &mut [f32]) {
    for v in x {
        *v = f16::from_f32(*v).to_f32();
    }
}

fn round_block(block: &mut [f32], top: f32, floor: f32, nearest: fn(f32) -> f32) {
    let amax = block.iter().fold(floor, |m, v| m.max(v.abs()));
    let scale = power_of_two_at_least(f64::from(amax) / f64::from(top));
    for v in block {
        // The scale is a power of two: dividing and multiplying by it is exact.
        let magnitude = nearest((v.abs() / scale).min(top)) * scale;
        *v = if *v < 0.0 { -magnitude } else { magnitude };
    }
}

/// `2^⌈log2 x⌉` for a positive normal `x`.
fn power_of_two_at_least(x: f64) -> f32 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let exact = bits & ((1 << 52) - 1) == 0;
    let exponent = if exact { exponent } else { exponent + 1 };
    f64::from_bits(((exponent + 1023) as u64) << 52) as f32
}

/// Nearest OCP E4M3 magnitude, `0 ≤ a ≤ 448`, ties to the even code.
fn e4m3(a: f32) -> f32 {
    // Eight steps a binade; below 2^-6 the steps of that binade go on (subnormals).
    let exponent = ((a.to_bits() >> 23) as i32 - 127).max(-6);
    let step = f32::from_bits(((exponent - 3 + 127) as u32) << 23);
    (a / step).round_ties_even() * step
}

/// Nearest E2M1 magnitude, `0 ≤ a ≤ 6`, ties to the even code.
fn e2m1(a: f32) -> f32 {
    let step = match a {
        a if a < 2.0 => 0.5,
        a if a < 4.0 => 1.0,
        _ => 2.0,
    };
    (a / step).round_ties_even() * step
}

/// Orthonormal Hadamard transform in natural order; the length is a power of two.
fn hadamard(x: &mut [f32]) {
    let n = x.len();
    let mut half = 1;
    while half < n {
        for pair in x.chunks_mut(2 * half) {
            let (a, b) = pair.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let scale = 1.0 / (n as f32).sqrt();
    for v in x {
        *v *= scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_e4m3_value_is_its_own_nearest() {
        for code in 0..127u32 {
            let (e, m) = (code >> 3, (code & 7) as f32);
            let value = if e == 0 {
                m / 8.0 * 2f32.powi(-6)
            } else {
                (1.0 + m / 8.0) * 2f32.powi(e as i32 - 7)
            };
            assert_eq!(e4m3(value), value);
        }
    }

    #[test]
    fn ties_go_to_the_even_code() {
        assert_eq!(e2m1(0.25), 0.0);
        assert_eq!(e2m1(0.75), 1.0);
        assert_eq!(e2m1(2.5), 2.0);
        assert_eq!(e2m1(3.5), 4.0);
        assert_eq!(e2m1(5.0), 4.0);
        assert_eq!(e4m3(17.0), 16.0);
        assert_eq!(e4m3(19.0), 20.0);
    }

    #[test]
    fn scales_are_the_smallest_power_of_two_that_fits() {
        assert_eq!(power_of_two_at_least(1.0), 1.0);
        assert_eq!(power_of_two_at_least(1.0 + f64::EPSILON), 2.0);
        assert_eq!(power_of_two_at_least(0.25), 0.25);
    }

    #[test]
    fn the_hadamard_transform_is_its_own_inverse() {
        let mut x: Vec<f32> = (0..128).map(|i| ((i * 37) % 19) as f32 - 9.0).collect();
        let want = x.clone();
        hadamard(&mut x);
        hadamard(&mut x);
        // 14 additions of values up to 128·9, each rounded to f32.
        assert!(x.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}
