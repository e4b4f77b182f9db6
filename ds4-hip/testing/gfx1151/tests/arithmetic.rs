//! Vector arithmetic, one instruction at a time, against formulas in Rust on edge values.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, have_llvm, load, run};
use ds4_hip_gfx1151::Options;

/// Operands of one lane, 64 bits each; 32-bit instructions see the low words. `d` is the destination's old value.
#[derive(Clone, Copy, Debug)]
struct In {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

/// An instruction and what it must leave in v[8:9] and in the lane's bit of s10.
struct Case {
    text: &'static str,
    want: fn(In) -> (u64, bool),
    /// The bits of v[8:9] that are compared.
    mask: u64,
}

/// Operands in v[2:3], v[4:5], v[6:7]; old destination in v[8:9]; s10 and VCC hold the lanes with odd number.
fn body(text: &str) -> String {
    format!(
        "s_load_b128 s[4:7], s[0:1], 0x0\ns_lshl_b32 s3, s2, 5\nv_add_nc_u32 v1, s3, v0\nv_lshlrev_b32 v20, 5, v1\n\
         s_waitcnt lgkmcnt(0)\nglobal_load_b128 v[2:5], v20, s[4:5]\nglobal_load_b128 v[6:9], v20, s[4:5] offset:16\n\
         s_mov_b32 s10, 0xaaaaaaaa\ns_mov_b32 vcc_lo, s10\ns_waitcnt vmcnt(0)\n{text}\n\
         v_mov_b32 v10, s10\nv_lshlrev_b32 v20, 4, v1\nglobal_store_b96 v20, v[8:10], s[6:7]\n"
    )
}

const EDGES: [u64; 24] = [
    0,
    1,
    0xffff_ffff,
    0x8000_0000,
    0x7fff_ffff,
    0x8000_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0001,
    0x7f80_0001,
    0x0080_0000,
    0x0000_0021,
    0x007f_ffff,
    0x7f7f_ffff,
    0x3eaa_aaab,
    0x4049_0fdb,
    0xc2f6_e979,
    0x4b80_0001,
    0x3c00_7bff,
    0x8001_fc00,
    0x0102_0304,
    0x807f_ff80,
];

/// All pairs of edges with a third that wanders, then random words.
fn inputs(wide: bool) -> Vec<In> {
    let mut state = 0x1234_5678_9abc_def0_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let spread = |x: u64| {
        if !wide {
            return x | x << 32;
        }
        // f64 edges from f32 edges: the same classes.
        let f = f32::from_bits(x as u32);
        if x < 64 || f.is_nan() {
            x << 32 | x
        } else {
            f64::from(f).to_bits()
        }
    };
    let mut all = Vec::new();
    for (i, &a) in EDGES.iter().enumerate() {
        for (j, &b) in EDGES.iter().enumerate() {
            let c = EDGES[(i * 7 + j * 5) % EDGES.len()];
            all.push(In {
                a: spread(a),
                b: spread(b),
                c: spread(c),
                d: random(),
            });
        }
    }
    for _ in 0..448 {
        all.push(In {
            a: random(),
            b: random(),
            c: random(),
            d: random(),
        });
    }
    all
}

fn check(cases: &[Case], wide: bool) {
    if !have_llvm() {
        return;
    }
    let names: Vec<String> = (0..cases.len()).map(|k| format!("k{k}")).collect();
    let bodies: Vec<String> = cases.iter().map(|c| body(c.text)).collect();
    let kernels: Vec<Asm<'_>> = names
        .iter()
        .zip(&bodies)
        .map(|(name, body)| Asm {
            name,
            body,
            lds: 0,
            kernarg: 16,
        })
        .collect();
    let module = load(&assemble(&asm(&kernels)));
    let all = inputs(wide);
    assert_eq!(all.len() % 32, 0);
    let input: Vec<u32> = all
        .iter()
        .flat_map(|i| [i.a, i.b, i.c, i.d])
        .flat_map(|x| [x as u32, (x >> 32) as u32])
        .collect();
    let mut wrong = Vec::new();
    for (name, case) in names.iter().zip(cases) {
        let kernel = module.kernel(name).unwrap();
        let blocks = all.len() as u32 / 32;
        let (out, _) = run(
            kernel,
            blocks,
            32,
            &input,
            4 * all.len(),
            &Options::default(),
        )
        .unwrap_or_else(|fault| panic!("{}: {fault}", case.text));
        for (k, i) in all.iter().enumerate() {
            let got = u64::from(out[4 * k]) | u64::from(out[4 * k + 1]) << 32;
            let flag = out[4 * k + 2] >> (k % 32) & 1 == 1;
            let (value, want_flag) = (case.want)(*i);
            let want_flag = if case.text.contains("s10") {
                want_flag
            } else {
                k % 2 == 1
            };
            if (got ^ value) & case.mask != 0 || flag != want_flag {
                wrong.push(format!(
                    "{}: {i:x?} gives {got:#x} {flag}, expected {value:#x} {want_flag}",
                    case.text
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The low word; the high one must keep its value.
fn word(x: u32, i: In) -> (u64, bool) {
    (u64::from(x) | i.d & !0xffff_ffff, false)
}

macro_rules! word_cases {
    ($($text:literal => |$i:ident| $e:expr;)*) => {
        &[$(Case { text: $text, want: |$i| word($e, $i), mask: u64::MAX }),*]
    };
}

fn w(x: u64) -> u32 {
    x as u32
}

fn s(x: u64) -> i32 {
    x as u32 as i32
}

#[test]
fn integers() {
    check(
        word_cases! {
            "v_mov_b32 v8, v2" => |i| w(i.a);
            "v_not_b32 v8, v2" => |i| !w(i.a);
            "v_bfrev_b32 v8, v2" => |i| (0..32).fold(0, |r, k| r | (w(i.a) >> k & 1) << (31 - k));
            "v_clz_i32_u32 v8, v2" => |i| (0..32).find(|k| w(i.a) >> (31 - k) & 1 == 1).unwrap_or(u32::MAX);
            "v_ctz_i32_b32 v8, v2" => |i| (0..32).find(|k| w(i.a) >> k & 1 == 1).unwrap_or(u32::MAX);
            "v_cls_i32 v8, v2" => |i| (1..32).find(|k| w(i.a) >> (31 - k) & 1 != w(i.a) >> 31).unwrap_or(u32::MAX);
            "v_add_nc_u32 v8, v2, v4" => |i| (i128::from(w(i.a)) + i128::from(w(i.b))) as u32;
            "v_add_nc_u32 v8, v2, v4 clamp" => |i| (i128::from(w(i.a)) + i128::from(w(i.b))).min(0xffff_ffff) as u32;
            "v_sub_nc_u32 v8, v2, v4" => |i| (i128::from(w(i.a)) - i128::from(w(i.b))) as u32;
            "v_sub_nc_u32 v8, v2, v4 clamp" => |i| (i128::from(w(i.a)) - i128::from(w(i.b))).max(0) as u32;
            "v_subrev_nc_u32 v8, v2, v4" => |i| (i128::from(w(i.b)) - i128::from(w(i.a))) as u32;
            "v_add_nc_i32 v8, v2, v4 clamp" => |i| (i128::from(s(i.a)) + i128::from(s(i.b))).clamp(-(1 << 31), (1 << 31) - 1) as u32;
            "v_sub_nc_i32 v8, v2, v4 clamp" => |i| (i128::from(s(i.a)) - i128::from(s(i.b))).clamp(-(1 << 31), (1 << 31) - 1) as u32;
            "v_mul_lo_u32 v8, v2, v4" => |i| (i128::from(w(i.a)) * i128::from(w(i.b))) as u32;
            "v_mul_hi_u32 v8, v2, v4" => |i| ((i128::from(w(i.a)) * i128::from(w(i.b))) >> 32) as u32;
            "v_mul_hi_i32 v8, v2, v4" => |i| ((i128::from(s(i.a)) * i128::from(s(i.b))) >> 32) as u32;
            "v_mul_i32_i24 v8, v2, v4" => |i| (i128::from(s(i.a << 8) >> 8) * i128::from(s(i.b << 8) >> 8)) as u32;
            "v_mul_hi_i32_i24 v8, v2, v4" => |i| ((i128::from(s(i.a << 8) >> 8) * i128::from(s(i.b << 8) >> 8)) >> 32) as u32;
            "v_mul_u32_u24 v8, v2, v4" => |i| ((i.a & 0xff_ffff) as u128 * (i.b & 0xff_ffff) as u128) as u32;
            "v_mul_hi_u32_u24 v8, v2, v4" => |i| (((i.a & 0xff_ffff) as u128 * (i.b & 0xff_ffff) as u128) >> 32) as u32;
            "v_mad_u32_u24 v8, v2, v4, v6" => |i| ((i.a & 0xff_ffff) as u128 * (i.b & 0xff_ffff) as u128 + i.c as u128) as u32;
            "v_mad_i32_i24 v8, v2, v4, v6" => |i| (i128::from(s(i.a << 8) >> 8) * i128::from(s(i.b << 8) >> 8) + i128::from(s(i.c))) as u32;
            "v_min_i32 v8, v2, v4" => |i| if s(i.a) < s(i.b) { w(i.a) } else { w(i.b) };
            "v_max_i32 v8, v2, v4" => |i| if s(i.a) > s(i.b) { w(i.a) } else { w(i.b) };
            "v_min_u32 v8, v2, v4" => |i| if w(i.a) < w(i.b) { w(i.a) } else { w(i.b) };
            "v_max_u32 v8, v2, v4" => |i| if w(i.a) > w(i.b) { w(i.a) } else { w(i.b) };
            "v_min3_i32 v8, v2, v4, v6" => |i| [s(i.a), s(i.b), s(i.c)].into_iter().min().unwrap() as u32;
            "v_max3_u32 v8, v2, v4, v6" => |i| [w(i.a), w(i.b), w(i.c)].into_iter().max().unwrap();
            "v_med3_i32 v8, v2, v4, v6" => |i| { let mut x = [s(i.a), s(i.b), s(i.c)]; x.sort(); x[1] as u32 };
            "v_med3_u32 v8, v2, v4, v6" => |i| { let mut x = [w(i.a), w(i.b), w(i.c)]; x.sort(); x[1] };
            "v_minmax_i32 v8, v2, v4, v6" => |i| s(i.a).min(s(i.b)).max(s(i.c)) as u32;
            "v_maxmin_u32 v8, v2, v4, v6" => |i| w(i.a).max(w(i.b)).min(w(i.c));
            "v_lshlrev_b32 v8, v2, v4" => |i| w(i.b).wrapping_shl(w(i.a));
            "v_lshrrev_b32 v8, v2, v4" => |i| w(i.b).wrapping_shr(w(i.a));
            "v_ashrrev_i32 v8, v2, v4" => |i| s(i.b).wrapping_shr(w(i.a)) as u32;
            "v_and_b32 v8, v2, v4" => |i| w(i.a & i.b);
            "v_or_b32 v8, v2, v4" => |i| w(i.a | i.b);
            "v_xor_b32 v8, v2, v4" => |i| w(i.a ^ i.b);
            "v_xnor_b32 v8, v2, v4" => |i| w(!(i.a ^ i.b));
            "v_and_or_b32 v8, v2, v4, v6" => |i| w((i.a & i.b) | i.c);
            "v_or3_b32 v8, v2, v4, v6" => |i| w(i.a | i.b | i.c);
            "v_xor3_b32 v8, v2, v4, v6" => |i| w(i.a ^ i.b ^ i.c);
            "v_xad_u32 v8, v2, v4, v6" => |i| (w(i.a ^ i.b)).wrapping_add(w(i.c));
            "v_add3_u32 v8, v2, v4, v6" => |i| (i.a as u128 + i.b as u128 + i.c as u128) as u32;
            "v_lshl_add_u32 v8, v2, v4, v6" => |i| w(i.a).wrapping_shl(w(i.b)).wrapping_add(w(i.c));
            "v_add_lshl_u32 v8, v2, v4, v6" => |i| w(i.a).wrapping_add(w(i.b)).wrapping_shl(w(i.c));
            "v_lshl_or_b32 v8, v2, v4, v6" => |i| w(i.a).wrapping_shl(w(i.b)) | w(i.c);
            "v_bfe_u32 v8, v2, v4, v6" => |i| ((u64::from(w(i.a)) >> (i.b & 31)) & ((1 << (i.c & 31)) - 1)) as u32;
            "v_bfe_i32 v8, v2, v4, v6" => |i| {
                let n = i.c & 31;
                let x = (i64::from(s(i.a)) >> (i.b & 31)) as i128 & ((1 << n) - 1);
                (if n > 0 && x >> (n - 1) & 1 == 1 { x - (1 << n) } else { x }) as u32
            };
            "v_bfi_b32 v8, v2, v4, v6" => |i| w((i.b & i.a) | (i.c & !i.a));
            "v_bfm_b32 v8, v2, v4" => |i| (((1_u64 << (i.a & 31)) - 1) << (i.b & 31)) as u32;
            "v_bcnt_u32_b32 v8, v2, v4" => |i| (0..32).map(|k| w(i.a) >> k & 1).sum::<u32>().wrapping_add(w(i.b));
            "v_alignbit_b32 v8, v2, v4, v6" => |i| (((u128::from(w(i.a)) << 32) | u128::from(w(i.b))) >> (i.c & 31)) as u32;
            "v_alignbyte_b32 v8, v2, v4, v6" => |i| (((u128::from(w(i.a)) << 32) | u128::from(w(i.b))) >> (8 * (i.c & 3))) as u32;
            "v_lerp_u8 v8, v2, v4, v6" => |i| u32::from_le_bytes(std::array::from_fn(|k| {
                let at = |x: u64| (x >> (8 * k) & 255) as u32;
                ((at(i.a) + at(i.b) + (at(i.c) & 1)) / 2) as u8
            }));
            "v_sad_u8 v8, v2, v4, v6" => |i| (0..4).fold(w(i.c), |r, k| {
                let at = |x: u64| (x >> (8 * k) & 255) as i32;
                r.wrapping_add((at(i.a) - at(i.b)).unsigned_abs())
            });
            "v_sad_u16 v8, v2, v4, v6" => |i| (0..2).fold(w(i.c), |r, k| {
                let at = |x: u64| (x >> (16 * k) & 0xffff) as i32;
                r.wrapping_add((at(i.a) - at(i.b)).unsigned_abs())
            });
            "v_sad_u32 v8, v2, v4, v6" => |i| ((i64::from(w(i.a)) - i64::from(w(i.b))).unsigned_abs() as u32).wrapping_add(w(i.c));
            "v_add_nc_u16 v8, v2, v4" => |i| w(i.d) & 0xffff_0000 | w(i.a).wrapping_add(w(i.b)) & 0xffff;
            "v_add_nc_u16 v8, v2, v4 op_sel:[1,0,1]" => |i| w(i.d) & 0xffff | (w(i.a) >> 16).wrapping_add(w(i.b)) << 16;
            "v_mul_lo_u16 v8, v2, v4" => |i| w(i.d) & 0xffff_0000 | ((w(i.a) & 0xffff) * (w(i.b) & 0xffff)) & 0xffff;
            "v_min_i16 v8, v2, v4" => |i| w(i.d) & 0xffff_0000 | (i.a as i16).min(i.b as i16) as u16 as u32;
            "v_mad_u32_u16 v8, v2, v4, v6" => |i| (w(i.a) & 0xffff).wrapping_mul(w(i.b) & 0xffff).wrapping_add(w(i.c));
            "v_mad_i32_i16 v8, v2, v4, v6 op_sel:[1,0,0,0]" => |i| {
                (i32::from((i.a >> 16) as i16) * i32::from(i.b as i16)).wrapping_add(s(i.c)) as u32
            };
            "v_pk_add_u16 v8, v2, v4" => |i| (w(i.a) & 0xffff).wrapping_add(w(i.b)) & 0xffff | (w(i.a) >> 16).wrapping_add(w(i.b) >> 16) << 16;
            "v_pk_add_u16 v8, v2, v4 op_sel:[1,0] op_sel_hi:[0,1]" => |i| (w(i.a) >> 16).wrapping_add(w(i.b)) & 0xffff | (w(i.a) & 0xffff).wrapping_add(w(i.b) >> 16) << 16;
            "v_pk_lshlrev_b16 v8, 4, v4 op_sel_hi:[0,1]" => |i| w(i.b) << 4 & 0xffff & 0xfff0 | (w(i.b) >> 16) << 20;
            "v_pk_sub_i16 v8, v2, v4 clamp" => |i| {
                let one = |k: u32| (i32::from((i.a >> k) as i16) - i32::from((i.b >> k) as i16)).clamp(-32768, 32767) as u16;
                u32::from(one(0)) | u32::from(one(16)) << 16
            };
            "v_pack_b32_f16 v8, v2, v4 op_sel:[1,0,0]" => |i| w(i.a) >> 16 | w(i.b) << 16;
        },
        false,
    );
}

/// Each selector value in each place.
#[test]
fn byte_permutation() {
    fn pick(i: In) -> u32 {
        let data = (i.a << 32 | i.b & 0xffff_ffff).to_le_bytes();
        u32::from_le_bytes((i.c as u32).to_le_bytes().map(|sel| match sel {
            0..=7 => data[usize::from(sel)],
            8 => 0_u8.wrapping_sub(data[1] >> 7),
            9 => 0_u8.wrapping_sub(data[3] >> 7),
            10 => 0_u8.wrapping_sub(data[5] >> 7),
            11 => 0_u8.wrapping_sub(data[7] >> 7),
            12 => 0,
            _ => 255,
        }))
    }
    check(
        word_cases! { "v_perm_b32 v8, v2, v4, v6" => |i| pick(i); },
        false,
    );
    // Selectors of 0 to 15 in all places.
    check(
        word_cases! {
            "v_and_b32 v6, 0x0f0f0f0f, v6\nv_perm_b32 v8, v2, v4, v6" => |i| pick(In { c: i.c & 0x0f0f_0f0f, ..i });
            "v_perm_b32 v8, v2, v4, 0x0c0b0a09" => |i| pick(In { c: 0x0c0b_0a09, ..i });
            "v_perm_b32 v8, v2, v4, 0x0d080700" => |i| pick(In { c: 0x0d08_0700, ..i });
        },
        false,
    );
}

/// Bytes and nibbles, all choices of signedness.
#[test]
fn dot_products() {
    fn dot<const BITS: usize>(i: In, sa: bool, sb: bool) -> i64 {
        (0..32 / BITS).fold(i64::from(s(i.c)), |sum, k| {
            let field = |x: u64, signed: bool| {
                let v = (x >> (BITS * k) & ((1 << BITS) - 1)) as i64;
                if signed && v >> (BITS - 1) == 1 {
                    v - (1 << BITS)
                } else {
                    v
                }
            };
            sum + field(i.a, sa) * field(i.b, sb)
        })
    }
    check(
        word_cases! {
            "v_dot4_i32_iu8 v8, v2, v4, v6 neg_lo:[1,1,0]" => |i| dot::<8>(i, true, true) as u32;
            "v_dot4_i32_iu8 v8, v2, v4, v6 neg_lo:[1,0,0]" => |i| dot::<8>(i, true, false) as u32;
            "v_dot4_i32_iu8 v8, v2, v4, v6 neg_lo:[0,1,0]" => |i| dot::<8>(i, false, true) as u32;
            "v_dot4_i32_iu8 v8, v2, v4, v6" => |i| dot::<8>(i, false, false) as u32;
            "v_dot4_i32_iu8 v8, v2, v4, v6 neg_lo:[1,1,0] clamp" => |i| dot::<8>(i, true, true).clamp(-(1 << 31), (1 << 31) - 1) as u32;
            "v_dot4_u32_u8 v8, v2, v4, v6" => |i| dot::<8>(i, false, false) as u32;
            "v_dot8_i32_iu4 v8, v2, v4, v6 neg_lo:[1,1,0]" => |i| dot::<4>(i, true, true) as u32;
            "v_dot8_i32_iu4 v8, v2, v4, v6 neg_lo:[0,1,0]" => |i| dot::<4>(i, false, true) as u32;
            "v_dot8_u32_u4 v8, v2, v4, v6" => |i| dot::<4>(i, false, false) as u32;
        },
        false,
    );
}

#[test]
fn carries_and_wide_integers() {
    fn carry(i: In, sum: i128) -> (u64, bool) {
        (
            u64::from(sum as u32) | i.d & !0xffff_ffff,
            !(0..1 << 32).contains(&sum),
        )
    }
    check(
        &[
            Case {
                text: "v_add_co_u32 v8, s10, v2, v4",
                want: |i| carry(i, i128::from(w(i.a)) + i128::from(w(i.b))),
                mask: u64::MAX,
            },
            Case {
                text: "v_sub_co_u32 v8, s10, v2, v4",
                want: |i| carry(i, i128::from(w(i.a)) - i128::from(w(i.b))),
                mask: u64::MAX,
            },
            Case {
                text: "v_subrev_co_u32 v8, s10, v2, v4",
                want: |i| carry(i, i128::from(w(i.b)) - i128::from(w(i.a))),
                mask: u64::MAX,
            },
            Case {
                text: "s_mov_b32 s10, -1\nv_add_co_ci_u32_e64 v8, s10, v2, v4, s10",
                want: |i| carry(i, i128::from(w(i.a)) + i128::from(w(i.b)) + 1),
                mask: u64::MAX,
            },
            Case {
                text: "s_mov_b32 s10, -1\nv_sub_co_ci_u32_e64 v8, s10, v2, v4, s10",
                want: |i| carry(i, i128::from(w(i.a)) - i128::from(w(i.b)) - 1),
                mask: u64::MAX,
            },
            Case {
                text: "v_mad_u64_u32 v[8:9], s10, v2, v4, v[6:7]",
                want: |i| {
                    let sum = u128::from(w(i.a)) * u128::from(w(i.b)) + u128::from(i.c);
                    (sum as u64, sum >> 64 != 0)
                },
                mask: u64::MAX,
            },
            Case {
                text: "v_mad_i64_i32 v[8:9], null, v2, v4, v[6:7]",
                want: |i| {
                    (
                        (i128::from(s(i.a)) * i128::from(s(i.b)) + i128::from(i.c as i64)) as u64,
                        false,
                    )
                },
                mask: u64::MAX,
            },
            Case {
                text: "v_lshlrev_b64 v[8:9], v2, v[4:5]",
                want: |i| (i.b << (i.a & 63), false),
                mask: u64::MAX,
            },
            Case {
                text: "v_lshrrev_b64 v[8:9], v2, v[4:5]",
                want: |i| (i.b >> (i.a & 63), false),
                mask: u64::MAX,
            },
            Case {
                text: "v_ashrrev_i64 v[8:9], v2, v[4:5]",
                want: |i| ((i.b as i64 >> (i.a & 63)) as u64, false),
                mask: u64::MAX,
            },
            Case {
                text: "v_cmp_lt_u32 s10, v2, v4",
                want: |i| (i.d, w(i.a) < w(i.b)),
                mask: u64::MAX,
            },
            Case {
                text: "v_cmp_ge_i32 s10, v2, v4",
                want: |i| (i.d, s(i.a) >= s(i.b)),
                mask: u64::MAX,
            },
            Case {
                text: "v_cmp_ne_u64 s10, v[2:3], v[4:5]",
                want: |i| (i.d, i.a != i.b),
                mask: u64::MAX,
            },
            Case {
                text: "v_cmp_lt_i64 s10, v[2:3], v[4:5]",
                want: |i| (i.d, (i.a as i64) < i.b as i64),
                mask: u64::MAX,
            },
            Case {
                text: "v_cmp_gt_i16 s10, v2, v4",
                want: |i| (i.d, i.a as i16 > i.b as i16),
                mask: u64::MAX,
            },
        ],
        true,
    );
}
