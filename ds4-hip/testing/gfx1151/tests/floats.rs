//! Floats, one instruction at a time: rounding, NaN, infinities, zeros, denormals, modifiers.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::float_cases::{Case, Want, check, half, half_value};

/// IEEE minimum: a NaN loses, -0 is below +0.
fn least(a: f32, b: f32) -> f32 {
    if signals(a) || signals(b) || a.is_nan() && b.is_nan() {
        f32::NAN
    } else if a.is_nan() {
        b
    } else if b.is_nan() || a.total_cmp(&b).is_lt() {
        a
    } else {
        b
    }
}

fn greatest(a: f32, b: f32) -> f32 {
    -least(-a, -b)
}

fn signals(x: f32) -> bool {
    x.is_nan() && x.to_bits() & 0x40_0000 == 0
}

fn unit(x: f32) -> f32 {
    if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) }
}

/// Denormals read as zeros.
fn flushed(x: f32) -> f64 {
    if x.is_subnormal() {
        f64::from(0f32.copysign(x))
    } else {
        x.into()
    }
}

#[test]
fn single_precision() {
    check(&[
        Case("v_add_f32 v8, v2, v3", |a, b, _| Want::F(a + b)),
        Case("v_sub_f32 v8, v2, v3", |a, b, _| Want::F(a - b)),
        Case("v_subrev_f32 v8, v2, v3", |a, b, _| Want::F(b - a)),
        Case("v_mul_f32 v8, v2, v3", |a, b, _| Want::F(a * b)),
        Case("v_fma_f32 v8, v2, v3, v4", |a, b, c| {
            Want::F(a.mul_add(b, c))
        }),
        Case("v_fma_f32 v8, -v2, |v3|, -|v4|", |a, b, c| {
            Want::F((-a).mul_add(b.abs(), -c.abs()))
        }),
        Case("v_mov_b32 v8, v4\nv_fmac_f32 v8, v2, v3", |a, b, c| {
            Want::F(a.mul_add(b, c))
        }),
        Case("v_fmamk_f32 v8, v2, 0x40490fdb, v3", |a, b, _| {
            Want::F(a.mul_add(std::f32::consts::PI, b))
        }),
        Case("v_fmaak_f32 v8, v2, v3, 0x40490fdb", |a, b, _| {
            Want::F(a.mul_add(b, std::f32::consts::PI))
        }),
        Case("v_add_f32 v8, v2, v3 clamp", |a, b, _| Want::F(unit(a + b))),
        Case("v_mul_f32 v8, v2, v3 mul:2", |a, b, _| Want::F(a * b * 2.0)),
        Case("v_mul_f32 v8, v2, v3 div:2", |a, b, _| Want::F(a * b * 0.5)),
        Case("v_mul_f32 v8, 0.15915494, v3", |_, b, _| {
            Want::F(f32::from_bits(0x3e22_f983) * b)
        }),
        Case("v_add_f32 v8, 1, v3", |_, b, _| Want::F(1e-45 + b)),
        Case("v_min_f32 v8, v2, v3", |a, b, _| Want::F(least(a, b))),
        Case("v_max_f32 v8, v2, v3", |a, b, _| Want::F(greatest(a, b))),
        Case("v_min3_f32 v8, v2, v3, v4", |a, b, c| {
            Want::F(least(least(a, b), c))
        }),
        Case("v_max3_f32 v8, v2, v3, v4", |a, b, c| {
            Want::F(greatest(greatest(a, b), c))
        }),
        Case("v_minmax_f32 v8, v2, v3, v4", |a, b, c| {
            Want::F(greatest(least(a, b), c))
        }),
        Case("v_med3_f32 v8, v2, v3, v4", |a, b, c| {
            if a.is_nan() || b.is_nan() || c.is_nan() {
                return Want::F(least(least(a, b), c));
            }
            let mut x = [a, b, c];
            x.sort_by(f32::total_cmp);
            // Which of two zeros is the middle one is the order of comparison of the instruction.
            if x[1] == 0.0 {
                Want::Near(0.0)
            } else {
                Want::F(x[1])
            }
        }),
        Case("v_trunc_f32 v8, v2", |a, _, _| Want::F(a.trunc())),
        Case("v_ceil_f32 v8, v2", |a, _, _| Want::F(a.ceil())),
        Case("v_floor_f32 v8, v2", |a, _, _| Want::F(a.floor())),
        Case("v_rndne_f32 v8, v2", |a, _, _| Want::F(a.round_ties_even())),
        Case("v_fract_f32 v8, v2", |a, _, _| {
            Want::F(if a.is_finite() {
                (a - a.floor()).min(0.99999994)
            } else {
                f32::NAN
            })
        }),
        Case("v_ldexp_f32 v8, v2, 3", |a, _, _| Want::F(a * 8.0)),
        Case("v_ldexp_f32 v8, v2, -5", |a, _, _| {
            Want::F((f64::from(a) / 32.0) as f32)
        }),
        Case(
            "v_frexp_mant_f32 v8, v2\nv_frexp_exp_i32_f32 v9, v2\nv_ldexp_f32 v8, v8, v9",
            |a, _, _| Want::F(a),
        ),
        Case(
            "s_mov_b32 s10, -1\nv_cndmask_b32 v8, v2, -v3, s10",
            |_, b, _| Want::Bits(b.to_bits() ^ 0x8000_0000),
        ),
        Case(
            "v_cmp_class_f32 s10, v2, 0x1f8\nv_cndmask_b32 v8, 0, 1, s10",
            |a, _, _| Want::Bits(u32::from(a.is_finite())),
        ),
        Case(
            "v_cmp_class_f32 s10, v2, 3\nv_cndmask_b32 v8, 0, 1, s10",
            |a, _, _| Want::Bits(u32::from(a.is_nan())),
        ),
        Case(
            "v_cmp_lt_f32 s10, v2, v3\nv_cndmask_b32 v8, 0, 1, s10",
            |a, b, _| Want::Bits(u32::from(a < b)),
        ),
        Case(
            "v_cmp_nlt_f32 s10, v2, v3\nv_cndmask_b32 v8, 0, 1, s10",
            |a, b, _| Want::Bits(u32::from(a >= b || a.is_nan() || b.is_nan())),
        ),
        Case(
            "v_cmp_lg_f32 s10, v2, |v3|\nv_cndmask_b32 v8, 0, 1, s10",
            |a, b, _| Want::Bits(u32::from(a < b.abs() || a > b.abs())),
        ),
        Case(
            "v_cmp_u_f32 s10, v2, v3\nv_cndmask_b32 v8, 0, 1, s10",
            |a, b, _| Want::Bits(u32::from(a.is_nan() || b.is_nan())),
        ),
        Case("v_rcp_f32 v8, v2", |a, _, _| Want::Near(1.0 / flushed(a))),
        Case("v_rsq_f32 v8, v2", |a, _, _| {
            Want::Near(1.0 / flushed(a).sqrt())
        }),
        Case("v_sqrt_f32 v8, v2", |a, _, _| Want::Near(flushed(a).sqrt())),
        Case("v_exp_f32 v8, v2", |a, _, _| {
            Want::Near(2f64.powf(flushed(a)))
        }),
        Case("v_log_f32 v8, v2", |a, _, _| {
            Want::Near(flushed(a).ln() / std::f64::consts::LN_2)
        }),
        Case("v_fract_f32 v2, v2\nv_sin_f32 v8, v2", |a, _, _| {
            let x = if a.is_finite() {
                (a - a.floor()).min(0.99999994)
            } else {
                f32::NAN
            };
            // Exact at quarters, where the plain formula is not.
            match x {
                0.0 | 0.5 => Want::Near(0.0),
                _ => Want::Near((flushed(x) * std::f64::consts::TAU).sin()),
            }
        }),
        Case(
            "s_denorm_mode 12\nv_add_f32 v8, v2, v3\ns_denorm_mode 15",
            |a, b, _| {
                let r = flushed(a) as f32 + flushed(b) as f32;
                Want::F(flushed(r) as f32)
            },
        ),
    ]);
}

#[test]
fn conversions() {
    fn int(x: f32) -> u32 {
        x as i32 as u32
    }
    check(&[
        Case("v_cvt_i32_f32 v8, v2", |a, _, _| Want::Bits(int(a))),
        Case("v_cvt_u32_f32 v8, v2", |a, _, _| Want::Bits(a as u32)),
        Case("v_cvt_floor_i32_f32 v8, v2", |a, _, _| {
            Want::Bits(int(a.floor()))
        }),
        Case("v_cvt_f32_i32 v8, v2", |a, _, _| {
            Want::F(f64::from(a.to_bits() as i32) as f32)
        }),
        Case("v_cvt_f32_u32 v8, v2", |a, _, _| {
            Want::F(f64::from(a.to_bits()) as f32)
        }),
        Case("v_cvt_f32_ubyte2 v8, v2", |a, _, _| {
            Want::F((a.to_bits() >> 16 & 255) as f32)
        }),
        Case("v_cvt_f16_f32 v8, v2", |a, _, _| Want::H(a)),
        Case(
            "v_cvt_f16_f32 v8, v2\nv_cvt_f32_f16 v9, v8\nv_cvt_f16_f32 v8, v9",
            |a, _, _| Want::H(a),
        ),
        Case(
            "v_cvt_f32_i32 v5, v2\nv_cvt_off_f32_i4 v8, v2",
            |a, _, _| {
                let x = (a.to_bits() & 15) as i32;
                Want::F((if x > 7 { x - 16 } else { x }) as f32 / 16.0)
            },
        ),
        Case("v_cvt_pk_i16_i32 v8, v2, v3", |a, b, _| {
            let one = |x: f32| u32::from((x.to_bits() as i32).clamp(-32768, 32767) as u16);
            Want::Bits(one(a) | one(b) << 16)
        }),
        Case("v_cvt_pk_u8_f32 v8, v2, 2, v3", |a, b, _| {
            let byte = u32::from(a.round_ties_even() as u8);
            Want::Bits(b.to_bits() & 0xff00_ffff | byte << 16)
        }),
        Case("v_cvt_pk_rtz_f16_f32 v8, v2, 0", |a, _, _| {
            let near = half(a);
            let up = near & 0x7fff != 0 && near & 0x7fff <= 0x7c00 && {
                let back = half_value(near);
                back.abs() > f64::from(a.abs()) && a.is_finite()
            };
            let up = up || a.is_finite() && near & 0x7fff == 0x7c00;
            if a.is_nan() {
                Want::H(a)
            } else {
                Want::Bits(near - u32::from(up))
            }
        }),
        Case("v_cvt_f32_f64 v8, v[6:7]", |a, _, _| Want::F(a)),
        Case("v_cvt_i32_f64 v8, v[6:7]", |a, _, _| Want::Bits(int(a))),
        Case("v_cvt_u32_f64 v8, v[6:7]", |a, _, _| Want::Bits(a as u32)),
    ]);
}

/// f16 results of values that are exact f16s made from the operands, so that one rounding is left.
#[test]
fn half_precision() {
    fn h(x: f32) -> f32 {
        let bits = half(x);
        let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
        match bits & 0x7fff {
            m if m > 0x7c00 => f32::NAN,
            0x7c00 => sign * f32::INFINITY,
            m => sign * half_value(m) as f32,
        }
    }
    const HALVES: &str = "v_cvt_f16_f32 v2, v2\nv_cvt_f16_f32 v3, v3\nv_cvt_f16_f32 v4, v4\n";
    fn text(rest: &str) -> &'static str {
        Box::leak(format!("{HALVES}{rest}").into_boxed_str())
    }
    check(&[
        Case(text("v_add_f16 v8, v2, v3"), |a, b, _| Want::H(h(a) + h(b))),
        Case(text("v_mul_f16 v8, v2, -v3"), |a, b, _| {
            Want::H(h(a) * -h(b))
        }),
        Case(text("v_max_f16 v8, v2, v3"), |a, b, _| {
            Want::H(greatest(h(a), h(b)))
        }),
        Case(text("v_add_f16 v8, 1.0, v3"), |_, b, _| Want::H(1.0 + h(b))),
        Case(text("v_fma_f16 v8, v2, v3, 0"), |a, b, _| {
            Want::H(h(a) * h(b) + 0.0)
        }),
        Case(
            text("v_lshlrev_b32 v3, 16, v3\nv_pk_mul_f16 v8, v2, v3 op_sel:[0,1] op_sel_hi:[0,1]"),
            |a, b, _| Want::H(h(a) * h(b)),
        ),
        Case(
            text("v_pk_add_f16 v8, v2, 1.0 op_sel_hi:[1,0]"),
            |a, _, _| Want::H(h(a) + 1.0),
        ),
        Case(
            text("v_pk_fma_f16 v8, v2, v3, 0 neg_lo:[1,0,0]"),
            |a, b, _| Want::H(-h(a) * h(b) + 0.0),
        ),
        Case(
            text("v_fma_mix_f32 v8, v2, v3, 1.0 op_sel_hi:[1,1,0]"),
            |a, b, _| Want::F(h(a).mul_add(h(b), 1.0)),
        ),
        Case(
            text("v_fma_mix_f32 v8, v2, v3, -v4 op_sel_hi:[1,1,1]"),
            |a, b, c| Want::F(h(a).mul_add(h(b), -h(c))),
        ),
        Case("v_fma_mixlo_f16 v8, v2, v3, v4", |a, b, c| {
            Want::H(a.mul_add(b, c))
        }),
        Case(
            "v_fma_mixhi_f16 v8, v2, v3, v4\nv_lshrrev_b32 v8, 16, v8",
            |a, b, c| Want::H(a.mul_add(b, c)),
        ),
        Case(
            text("v_fma_mixlo_f16 v8, v2, 1.0, 0 op_sel_hi:[1,1,0]"),
            |a, _, _| Want::H(h(a) + 0.0),
        ),
        Case(
            text(
                "v_mov_b32 v9, v4\nv_perm_b32 v8, v3, v2, 0x05040100\nv_mov_b32 v9, 1.0\nv_dot2_f32_f16 v8, v8, v8, v9",
            ),
            |a, b, _| Want::F((1.0 + h(a) * h(a)) + h(b) * h(b)),
        ),
        Case(
            "v_and_b32 v9, 0xffff0000, v2\nv_lshrrev_b32 v10, 16, v3\nv_or_b32 v9, v9, v10\nv_dot2_f32_bf16 v8, v9, v9, v4",
            |a, b, c| {
                let bf = |x: f32| f32::from_bits(x.to_bits() & 0xffff_0000);
                Want::F((c + bf(b) * bf(b)) + bf(a) * bf(a))
            },
        ),
    ]);
}

#[test]
fn double_precision() {
    check(&[
        Case(
            "v_add_f64 v[6:7], v[6:7], v[10:11]\nv_cvt_f32_f64 v8, v[6:7]",
            |a, b, _| Want::F((f64::from(a) + f64::from(b)) as f32),
        ),
        Case(
            "v_mul_f64 v[6:7], v[6:7], -|v[10:11]|\nv_cvt_f32_f64 v8, v[6:7]",
            |a, b, _| Want::F((f64::from(a) * -f64::from(b).abs()) as f32),
        ),
        Case(
            "v_fma_f64 v[6:7], v[6:7], v[10:11], v[14:15]\nv_cvt_f32_f64 v8, v[6:7]",
            |a, b, c| Want::F(f64::from(a).mul_add(b.into(), c.into()) as f32),
        ),
        Case(
            "v_min_f64 v[6:7], v[6:7], v[10:11]\nv_cvt_f32_f64 v8, v[6:7]",
            |a, b, _| {
                let (a, b) = (quieted(a), quieted(b));
                Want::F(least(a, b))
            },
        ),
        Case(
            "v_ldexp_f64 v[6:7], v[6:7], -3\nv_cvt_f32_f64 v8, v[6:7]",
            |a, _, _| Want::F((f64::from(a) / 8.0) as f32),
        ),
        Case(
            "v_ldexp_f64 v[6:7], v[6:7], 0xfffffc00\nv_ldexp_f64 v[6:7], v[6:7], 0x400\nv_cmp_eq_f64 s10, 0, v[6:7]\nv_cndmask_b32 v8, 0, 1, s10",
            |a, _, _| {
                // 2^-1024 takes everything below 2^-51 to zero, the rest keeps some bits.
                Want::Bits(u32::from(f64::from(a).abs() <= 2f64.powi(-51)))
            },
        ),
        Case(
            "v_rndne_f64 v[6:7], v[6:7]\nv_cvt_f32_f64 v8, v[6:7]",
            |a, _, _| Want::F(a.round_ties_even()),
        ),
        Case(
            "v_add_f64 v[6:7], v[6:7], 0x40590000\nv_cvt_f32_f64 v8, v[6:7]",
            |a, _, _| Want::F((f64::from(a) + 100.0) as f32),
        ),
        Case(
            "v_cmp_gt_f64 s10, v[6:7], v[10:11]\nv_cndmask_b32 v8, 0, 1, s10",
            |a, b, _| Want::Bits(u32::from(a > b)),
        ),
        Case(
            "v_cvt_f64_i32 v[6:7], v2\nv_cvt_f32_f64 v8, v[6:7]",
            |a, _, _| Want::F(a.to_bits() as i32 as f32),
        ),
    ]);
}

/// Widening makes a NaN quiet.
fn quieted(x: f32) -> f32 {
    if x.is_nan() { f32::NAN } else { x }
}
