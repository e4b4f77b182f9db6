//! Memory and LDS: widths, addresses, atomics; scalar instructions; matrix products of every format.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, have_llvm, load, one, run};
use ds4_hip_gfx1151::{Class, Options};

const START: &str = "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 2, v0\nv_lshlrev_b32 v10, 4, v0\nv_mov_b32 v11, 0\n\
                     v_mov_b32 v20, 0x11111111\nv_mov_b32 v21, 0x22222222\nv_mov_b32 v22, 0x33333333\nv_mov_b32 v23, 0x44444444\n\
                     s_waitcnt lgkmcnt(0)\n";
const END: &str = "\nglobal_store_b128 v10, v[20:23], s[6:7]";

/// Input word k; lane l looks at words from 4·l.
fn word(k: usize) -> u32 {
    0x8182_8384_u32.wrapping_add(0x0907_0b05_u32.wrapping_mul(k as u32))
}

/// Run each text between [`START`] and [`END`] with 32 lanes; v[20:23] of each lane.
fn results(texts: &[String], lds: u32) -> Vec<Vec<[u32; 4]>> {
    let names: Vec<String> = (0..texts.len()).map(|k| format!("k{k}")).collect();
    let bodies: Vec<String> = texts.iter().map(|t| format!("{START}{t}{END}")).collect();
    let kernels: Vec<Asm<'_>> = names
        .iter()
        .zip(&bodies)
        .map(|(name, body)| Asm {
            name,
            body,
            lds,
            kernarg: 16,
        })
        .collect();
    let module = load(&assemble(&asm(&kernels)));
    let input: Vec<u32> = (0..140).map(word).collect();
    names
        .iter()
        .zip(texts)
        .map(|(name, text)| {
            let (out, _) = run(
                module.kernel(name).unwrap(),
                1,
                32,
                &input,
                128,
                &Options::default(),
            )
            .unwrap_or_else(|f| panic!("{text}: {f}"));
            out.chunks_exact(4)
                .map(|c| [c[0], c[1], c[2], c[3]])
                .collect()
        })
        .collect()
}

const OLD: [u32; 4] = [0x1111_1111, 0x2222_2222, 0x3333_3333, 0x4444_4444];

#[test]
fn loads_of_all_widths_and_addresses() {
    if !have_llvm() {
        return;
    }
    type Want = fn(usize) -> [u32; 4];
    let cases: [(&str, Want); 16] = [
        ("global_load_b32 v20, v10, s[4:5]", |l| {
            [word(4 * l), OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_b64 v[20:21], v10, s[4:5] offset:8", |l| {
            [word(4 * l + 2), word(4 * l + 3), OLD[2], OLD[3]]
        }),
        ("global_load_b96 v[20:22], v10, s[4:5] offset:4", |l| {
            [word(4 * l + 1), word(4 * l + 2), word(4 * l + 3), OLD[3]]
        }),
        ("global_load_b128 v[20:23], v10, s[4:5]", |l| {
            [
                word(4 * l),
                word(4 * l + 1),
                word(4 * l + 2),
                word(4 * l + 3),
            ]
        }),
        ("global_load_u8 v20, v10, s[4:5] offset:1", |l| {
            [word(4 * l) >> 8 & 255, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_i8 v20, v10, s[4:5] offset:3", |l| {
            [(word(4 * l) as i32 >> 24) as u32, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_u16 v20, v10, s[4:5] offset:2", |l| {
            [word(4 * l) >> 16, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_i16 v20, v10, s[4:5] offset:2", |l| {
            [(word(4 * l) as i32 >> 16) as u32, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_d16_b16 v20, v10, s[4:5]", |l| {
            [word(4 * l) & 0xffff | 0x1111_0000, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_d16_hi_b16 v20, v10, s[4:5]", |l| {
            [word(4 * l) << 16 | 0x1111, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_d16_hi_u8 v20, v10, s[4:5]", |l| {
            [(word(4 * l) & 255) << 16 | 0x1111, OLD[1], OLD[2], OLD[3]]
        }),
        ("global_load_d16_i8 v20, v10, s[4:5]", |l| {
            [
                word(4 * l) as i8 as u32 & 0xffff | 0x1111_0000,
                OLD[1],
                OLD[2],
                OLD[3],
            ]
        }),
        // Any alignment.
        ("global_load_b32 v20, v10, s[4:5] offset:3", |l| {
            [
                word(4 * l) >> 24 | word(4 * l + 1) << 8,
                OLD[1],
                OLD[2],
                OLD[3],
            ]
        }),
        (
            "v_mov_b32 v12, s4\nv_mov_b32 v13, s5\nglobal_load_b32 v20, v[12:13], off offset:12",
            |_| [word(3), OLD[1], OLD[2], OLD[3]],
        ),
        (
            "v_add_co_u32 v12, vcc_lo, s4, v10\nv_add_co_ci_u32 v13, vcc_lo, s5, v11, vcc_lo\nflat_load_b64 v[20:21], v[12:13] offset:4",
            |l| [word(4 * l + 1), word(4 * l + 2), OLD[2], OLD[3]],
        ),
        (
            "s_load_b256 s[16:23], s[4:5], 0x8\ns_movk_i32 s24, 0x10\ns_load_b32 s25, s[4:5], s24 offset:0x4\ns_waitcnt lgkmcnt(0)\n\
             v_mov_b32 v20, s16\nv_mov_b32 v21, s23\nv_mov_b32 v22, s25",
            |_| [word(2), word(9), word(5), OLD[3]],
        ),
    ];
    let texts: Vec<String> = cases.iter().map(|c| c.0.to_owned()).collect();
    for (got, (text, want)) in results(&texts, 0).iter().zip(cases) {
        for (l, got) in got.iter().enumerate() {
            assert_eq!(*got, want(l), "{text}, lane {l}");
        }
    }
}

#[test]
fn lds_of_all_widths_and_forms() {
    if !have_llvm() {
        return;
    }
    let fill = "global_load_b128 v[30:33], v10, s[4:5]\nds_store_b128 v10, v[30:33]\n";
    type Want = fn(usize) -> [u32; 4];
    let cases: [(&str, Want); 14] = [
        ("ds_load_b32 v20, v10 offset:8", |l| {
            [word(4 * l + 2), OLD[1], OLD[2], OLD[3]]
        }),
        ("ds_load_b64 v[20:21], v10 offset:8", |l| {
            [word(4 * l + 2), word(4 * l + 3), OLD[2], OLD[3]]
        }),
        ("ds_load_b96 v[20:22], v10", |l| {
            [word(4 * l), word(4 * l + 1), word(4 * l + 2), OLD[3]]
        }),
        ("ds_load_2addr_b32 v[20:21], v10 offset0:3 offset1:1", |l| {
            [word(4 * l + 3), word(4 * l + 1), OLD[2], OLD[3]]
        }),
        ("ds_load_2addr_b64 v[20:23], v10 offset0:1", |l| {
            [
                word(4 * l + 2),
                word(4 * l + 3),
                word(4 * l),
                word(4 * l + 1),
            ]
        }),
        ("ds_load_2addr_stride64_b32 v[20:21], v11 offset0:1", |_| {
            [word(64), word(0), OLD[2], OLD[3]]
        }),
        ("ds_load_u8 v20, v10 offset:5", |l| {
            [word(4 * l + 1) >> 8 & 255, OLD[1], OLD[2], OLD[3]]
        }),
        ("ds_load_i16 v20, v10 offset:2", |l| {
            [(word(4 * l) as i32 >> 16) as u32, OLD[1], OLD[2], OLD[3]]
        }),
        ("ds_load_u16_d16_hi v20, v10", |l| {
            [word(4 * l) << 16 | 0x1111, OLD[1], OLD[2], OLD[3]]
        }),
        ("ds_store_b16_d16_hi v10, v21\nds_load_b32 v20, v10", |l| {
            [word(4 * l) & 0xffff_0000 | 0x2222, OLD[1], OLD[2], OLD[3]]
        }),
        (
            "ds_store_2addr_b32 v10, v21, v22 offset0:1 offset1:2\nds_load_b128 v[20:23], v10",
            |l| [word(4 * l), OLD[1], OLD[2], word(4 * l + 3)],
        ),
        ("ds_store_b8 v10, v21 offset:1\nds_load_b32 v20, v10", |l| {
            [word(4 * l) & 0xffff_00ff | 0x2200, OLD[1], OLD[2], OLD[3]]
        }),
        (
            "ds_store_b64 v10, v[22:23] offset:4\nds_load_b128 v[20:23], v10",
            |l| [word(4 * l), OLD[2], OLD[3], word(4 * l + 3)],
        ),
        ("ds_load_b32 v20, v10 offset:1", |l| {
            [
                word(4 * l) >> 8 | word(4 * l + 1) << 24,
                OLD[1],
                OLD[2],
                OLD[3],
            ]
        }),
    ];
    let texts: Vec<String> = cases.iter().map(|c| format!("{fill}{}", c.0)).collect();
    for (got, (text, want)) in results(&texts, 512).iter().zip(cases) {
        for (l, got) in got.iter().enumerate() {
            assert_eq!(*got, want(l), "{text}, lane {l}");
        }
    }
}

/// All lanes on one word, in LDS and in memory: the final value, and the old values in the order of lanes.
#[test]
fn atomics_update_one_word_lane_by_lane() {
    if !have_llvm() {
        return;
    }
    type Step = fn(u32, u32) -> u32;
    let cases: [(&str, u32, Step); 14] = [
        ("add_u32", 5, |old, x| old.wrapping_add(x)),
        ("sub_u32", 5, |old, x| old.wrapping_sub(x)),
        ("min_i32", 3, |old, x| (old as i32).min(x as i32) as u32),
        ("max_i32", 3, |old, x| (old as i32).max(x as i32) as u32),
        ("min_u32", 0xffff_0000, u32::min),
        ("max_u32", 3, u32::max),
        ("and_b32", 0xffff_ffff, |old, x| old & x),
        ("or_b32", 0, |old, x| old | x),
        ("xor_b32", 9, |old, x| old ^ x),
        ("inc_u32", 2, |old, x| if old >= x { 0 } else { old + 1 }),
        (
            "dec_u32",
            2,
            |old, x| if old == 0 || old > x { x } else { old - 1 },
        ),
        ("add_f32", 0x3f80_0000, |old, x| {
            (f32::from_bits(old) + f32::from_bits(x)).to_bits()
        }),
        ("min_f32", 0x4180_0000, |old, x| {
            f32::from_bits(old).min(f32::from_bits(x)).to_bits()
        }),
        ("swap", 9, |_, x| x),
    ];
    let data = "v_mul_u32_u24 v24, 0x10101, v0\nv_add_nc_u32 v24, 0x3f000000, v24\n";
    let mut texts = Vec::new();
    for (op, start, _) in cases {
        let (lds, global) = match op {
            "swap" => ("ds_storexchg_rtn_b32".to_owned(), "swap_b32"),
            _ => (format!("ds_{}", op.replacen('_', "_rtn_", 1)), op),
        };
        texts.push(format!("{data}v_mov_b32 v25, {start:#x}\nds_store_b32 v11, v25\n{lds} v20, v11, v24\nds_load_b32 v21, v11"));
        texts.push(format!(
            "{data}v_mov_b32 v25, {start:#x}\nglobal_store_b32 v11, v25, s[4:5]\nglobal_atomic_{global} v20, v11, v24, s[4:5] glc\n\
             global_load_b32 v21, v11, s[4:5]"
        ));
    }
    for (k, got) in results(&texts, 64).iter().enumerate() {
        let (op, start, step) = cases[k / 2];
        let mut value = start;
        for (l, got) in got.iter().enumerate() {
            assert_eq!(got[0], value, "{op} old value, lane {l}");
            value = step(value, (0x10101 * l as u32).wrapping_add(0x3f00_0000));
        }
        assert_eq!(got[0][1], value, "{op}, final value");
    }
    // Compare and swap: only the lane that finds the value changes it.
    let texts = [
        "v_mov_b32 v25, 3\nds_store_b32 v11, v25\nv_add_nc_u32 v24, 1, v0\nds_cmpstore_rtn_b32 v20, v11, v24, v0\nds_load_b32 v21, v11".to_owned(),
        "v_mov_b32 v25, 3\nglobal_store_b32 v11, v25, s[4:5]\nv_add_nc_u32 v24, 1, v0\nv_mov_b32 v25, v0\n\
         global_atomic_cmpswap_b32 v20, v11, v[24:25], s[4:5] glc\nglobal_load_b32 v21, v11, s[4:5]"
            .to_owned(),
        "v_mov_b32 v24, 1\nv_mov_b32 v25, 1\nv_mov_b32 v26, 0\nv_mov_b32 v27, 0\nglobal_store_b64 v11, v[26:27], s[4:5]\n\
         global_atomic_add_u64 v11, v[24:25], s[4:5]\nglobal_load_b64 v[20:21], v11, s[4:5]"
            .to_owned(),
    ];
    let got = results(&texts, 64);
    for got in &got[..2] {
        assert_eq!(got[0][1], 32);
        assert_eq!(got[9][0], 9);
    }
    assert_eq!(got[2][0][..2], [32, 32]);
}

/// Scalar instructions: the result in s16 (and s17), the condition code after.
#[test]
fn scalar_arithmetic() {
    if !have_llvm() {
        return;
    }
    // s10 = 0xf0000001, s11 = 0x7fffffff, s[12:13] = 0x80000000_00000010, s14 = 40; SCC = 1 before.
    let cases: [(&str, u32, u32, bool); 44] = [
        ("s_add_u32 s16, s10, s11", 0x7000_0000, 0, true),
        ("s_sub_u32 s16, s11, s10", 0x8fff_fffe, 0, true),
        ("s_add_i32 s16, s11, 1", 0x8000_0000, 0, true),
        ("s_sub_i32 s16, s10, s11", 0x7000_0002, 0, true),
        ("s_addc_u32 s16, s11, 0", 0x8000_0000, 0, false),
        ("s_subb_u32 s16, 0, 0", 0xffff_ffff, 0, true),
        ("s_absdiff_i32 s16, 3, 10", 7, 0, true),
        ("s_lshl_b32 s16, s10, s14", 0x0000_0100, 0, true),
        ("s_lshr_b32 s16, s10, 28", 15, 0, true),
        ("s_ashr_i32 s16, s10, 28", 0xffff_ffff, 0, true),
        ("s_lshl_b64 s[16:17], s[12:13], 60", 0, 0, false),
        ("s_lshr_b64 s[16:17], s[12:13], s14", 0x0080_0000, 0, true),
        (
            "s_ashr_i64 s[16:17], s[12:13], s14",
            0xff80_0000,
            0xffff_ffff,
            true,
        ),
        ("s_lshl3_add_u32 s16, s10, 1", 0x8000_0009, 0, true),
        ("s_min_i32 s16, s10, s11", 0xf000_0001, 0, true),
        ("s_max_u32 s16, s11, s10", 0xf000_0001, 0, false),
        ("s_and_b32 s16, s10, 2", 0, 0, false),
        ("s_or_b64 s[16:17], s[12:13], 1", 0x11, 0x8000_0000, true),
        ("s_xor_b32 s16, s10, -1", 0x0fff_fffe, 0, true),
        ("s_and_not1_b32 s16, s10, 1", 0xf000_0000, 0, true),
        ("s_or_not1_b32 s16, 0, s10", 0x0fff_fffe, 0, true),
        ("s_nand_b32 s16, s10, s11", 0x8fff_fffe, 0, true),
        ("s_xnor_b32 s16, s10, s10", 0xffff_ffff, 0, true),
        ("s_bfe_u32 s16, s10, 0x4001c", 15, 0, true),
        ("s_bfe_i32 s16, s10, 0x4001c", 0xffff_ffff, 0, true),
        ("s_bfe_u64 s[16:17], s[12:13], 0x50004", 1, 0, true),
        ("s_bfm_b32 s16, 4, 8", 0xf00, 0, true),
        ("s_mul_i32 s16, s10, 3", 0xd000_0003, 0, true),
        ("s_mul_hi_u32 s16, s10, 16", 15, 0, true),
        ("s_mul_hi_i32 s16, s10, 16", 0xffff_ffff, 0, true),
        ("s_cselect_b32 s16, 5, 6", 5, 0, true),
        ("s_pack_lh_b32_b16 s16, s10, s11", 0x7fff_0001, 0, true),
        ("s_pack_hl_b32_b16 s16, s10, s11", 0xffff_f000, 0, true),
        ("s_brev_b32 s16, s10", 0x8000_000f, 0, true),
        ("s_ctz_i32_b32 s16, 0", 0xffff_ffff, 0, true),
        ("s_clz_i32_u64 s16, s[12:13]", 0, 0, true),
        ("s_bcnt1_i32_b64 s16, s[12:13]", 2, 0, true),
        ("s_sext_i32_i8 s16, 0x80", 0xffff_ff80, 0, true),
        ("s_abs_i32 s16, s10", 0x0fff_ffff, 0, true),
        ("s_bitset1_b32 s16, 5", 0x20, 0, true),
        ("s_movk_i32 s16, 0xff80", 0xffff_ff80, 0, true),
        (
            "s_movk_i32 s16, 7\ns_addk_i32 s16, 0xfff8",
            0xffff_ffff,
            0,
            false,
        ),
        ("s_cmpk_lt_i32 s10, 0x8000", 0, 0, true),
        ("s_mov_b64 s[16:17], 0x80000000", 0x8000_0000, 0, true),
    ];
    let names: Vec<String> = (0..cases.len()).map(|k| format!("k{k}")).collect();
    let bodies: Vec<String> = cases
        .iter()
        .map(|(text, ..)| {
            format!(
                "s_load_b128 s[4:7], s[0:1], 0x0\ns_mov_b32 s10, 0xf0000001\ns_mov_b32 s11, 0x7fffffff\ns_mov_b32 s12, 16\n\
                 s_brev_b32 s13, 1\ns_movk_i32 s14, 40\ns_mov_b64 s[16:17], 0\ns_cmp_eq_u32 s12, 16\n{text}\n\
                 s_cselect_b32 s18, 1, 0\nv_mov_b32 v1, s16\nv_mov_b32 v2, s17\nv_mov_b32 v3, s18\nv_mov_b32 v4, 0\n\
                 global_store_b96 v4, v[1:3], s[6:7]"
            )
        })
        .collect();
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
    for (name, (text, low, high, scc)) in names.iter().zip(cases) {
        let (out, _) = run(
            module.kernel(name).unwrap(),
            1,
            32,
            &[0],
            3,
            &Options::default(),
        )
        .unwrap_or_else(|f| panic!("{text}: {f}"));
        assert_eq!((out[0], out[1], out[2] == 1), (low, high, scc), "{text}");
    }
}

/// Branches, saved masks, jumps through registers.
#[test]
fn control_flow() {
    if !have_llvm() {
        return;
    }
    let body = "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 2, v0\nv_mov_b32 v2, 0\nv_mov_b32 v3, v0\n\
        loop:\nv_cmp_ne_u32 vcc_lo, 0, v3\ns_and_saveexec_b32 s10, vcc_lo\ns_cbranch_execz done\n\
        v_add_nc_u32 v2, v2, v3\nv_add_nc_u32 v3, -1, v3\ns_branch loop\ndone:\ns_mov_b32 exec_lo, -1\n\
        s_getpc_b64 s[12:13]\nafter:\ns_add_u32 s12, s12, sub-after\ns_addc_u32 s13, s13, 0\ns_swappc_b64 s[14:15], s[12:13]\n\
        global_store_b32 v9, v2, s[6:7]\ns_endpgm\nsub:\nv_add_nc_u32 v2, 1000, v2\ns_setpc_b64 s[14:15]";
    let (out, stats) = run(
        one(body, 0).kernel("k").unwrap(),
        1,
        32,
        &[0],
        32,
        &Options::default(),
    )
    .unwrap_or_else(|f| panic!("{f}"));
    assert_eq!(
        out,
        (0..32)
            .map(|l| 1000 + l * (l + 1) / 2)
            .collect::<Vec<u32>>()
    );
    assert!(stats.of(Class::Branch) > 32);
}

/// 16x16 products of every format against sums over k, the layout as AMD draws it.
#[test]
fn matrix_products_of_every_format() {
    if !have_llvm() {
        return;
    }
    let regs = |n: u32, at: u32| -> String {
        (0..n)
            .map(|k| {
                format!(
                    "global_load_b32 v{}, v12, s[4:5] offset:{}\n",
                    at + k,
                    4 * (at - 32 + k)
                )
            })
            .collect()
    };
    let store: String = (0..8)
        .map(|i| {
            format!(
                "global_store_b32 v12, v{}, s[6:7] offset:{}\n",
                64 + i,
                4 * i
            )
        })
        .collect();
    // Each lane has 32 input words: A at 0, B at 8, C at 16. Outputs: 32 words a lane, of which 8 count.
    let text = |op: &str, a: u32, c: &str| {
        let tail = if a == 8 { "" } else { " neg_lo:[1,0,0]" };
        format!(
            "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v12, 7, v0\n{}{}{}{op} v[64:71], v[32:{}], v[40:{}], {c}{tail}\n{store}",
            regs(8, 32),
            regs(8, 40),
            (0..8)
                .map(|k| format!(
                    "global_load_b32 v{}, v12, s[4:5] offset:{}\n",
                    64 + k,
                    64 + 4 * k
                ))
                .collect::<String>(),
            32 + a - 1,
            40 + a - 1
        )
    };
    let formats = [
        ("v_wmma_f32_16x16x16_f16", 8_u32, 16_u32),
        ("v_wmma_f32_16x16x16_bf16", 8, 16),
        ("v_wmma_f16_16x16x16_f16", 8, 16),
        ("v_wmma_i32_16x16x16_iu8", 4, 8),
        ("v_wmma_i32_16x16x16_iu4", 2, 4),
    ];
    for (op, registers, bits) in formats {
        let value = |row: usize, k: usize, salt: usize| {
            ((row * 5 + k * 3 + salt * 7) % 8) as i32 - if bits < 16 && salt == 1 { 0 } else { 3 }
        };
        let float = |x: i32| -> u32 {
            let f = x as f32;
            if op.ends_with("bf16") {
                f.to_bits() >> 16
            } else {
                half_of(x)
            }
        };
        let encode = |x: i32| {
            if bits == 16 {
                float(x)
            } else {
                x as u32 & ((1 << bits) - 1)
            }
        };
        let mut input = vec![0_u32; 32 * 32];
        for l in 0..32 {
            for k in 0..16 {
                let (at, shift) = (k * bits as usize / 32, k * bits as usize % 32);
                input[l * 32 + at] |= encode(value(l & 15, k, 0)) << shift;
                input[l * 32 + 8 + at] |= encode(value(l & 15, k, 1)) << shift;
            }
            for i in 0..8 {
                let c = i as i32 - l as i32;
                input[l * 32 + 16 + i] = match op {
                    "v_wmma_f16_16x16x16_f16" => 0xabcd_0000 | half_of(c),
                    _ if bits == 16 => (c as f32).to_bits(),
                    _ => c as u32,
                };
            }
        }
        let module = one(&text(op, registers, "v[64:71]"), 0);
        let (out, _) = run(
            module.kernel("k").unwrap(),
            1,
            32,
            &input,
            1024,
            &Options::default(),
        )
        .unwrap_or_else(|f| panic!("{op}: {f}"));
        for l in 0..32 {
            for i in 0..8 {
                let (row, column) = (2 * i + l / 16, l % 16);
                let sum: i32 = (0..16)
                    .map(|k| value(row, k, 0) * value(column, k, 1))
                    .sum::<i32>()
                    + i as i32
                    - l as i32;
                let want = match op {
                    "v_wmma_f16_16x16x16_f16" => 0xabcd_0000 | half_of(sum),
                    _ if bits == 16 => (sum as f32).to_bits(),
                    _ => sum as u32,
                };
                assert_eq!(out[l * 32 + i], want, "{op} lane {l} element {i}");
            }
        }
    }
}

/// A whole number below 2048 as f16.
fn half_of(x: i32) -> u32 {
    let magnitude = x.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let e = 31 - magnitude.leading_zeros();
    u32::from(x < 0) << 15 | (15 + e) << 10 | (magnitude << (10 - e)) & 0x3ff
}
