//! Memory and LDS: widths, addresses, atomics.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, have_llvm, load, run};
use ds4_hip_gfx1151::Options;

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
