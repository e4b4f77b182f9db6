//! Exchanges between lanes: every DPP control on data that differs in every lane, permutations, lane reads, inactive lanes.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, have_llvm, load, run};
use ds4_hip_gfx1151::{Options, Trouble};

/// What lane `l` holds in the source, and in the destination before.
fn held(l: usize) -> u32 {
    1000 + 37 * l as u32
}
const OLD: u32 = 7;

/// Run `text`, which makes v3 from v2; EXEC is `exec` meanwhile. All 32 values of v3.
fn lanes_of(cases: &[(String, u32)]) -> Vec<Vec<u32>> {
    let names: Vec<String> = (0..cases.len()).map(|k| format!("k{k}")).collect();
    let bodies: Vec<String> = cases
        .iter()
        .map(|(text, exec)| {
            format!(
                "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 2, v0\nv_mul_u32_u24 v2, 37, v0\n\
                 v_add_nc_u32 v2, 1000, v2\nv_mov_b32 v3, {OLD}\ns_mov_b32 s20, 0x76543210\ns_mov_b32 s21, 0xfedcba98\n\
                 s_mov_b32 exec_lo, {exec:#x}\n{text}\ns_mov_b32 exec_lo, -1\ns_waitcnt lgkmcnt(0)\nglobal_store_b32 v9, v3, s[6:7]"
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
    names
        .iter()
        .zip(cases)
        .map(|(name, (text, _))| {
            run(
                module.kernel(name).unwrap(),
                1,
                32,
                &[0],
                32,
                &Options::default(),
            )
            .unwrap_or_else(|f| panic!("{text}: {f}"))
            .0
        })
        .collect()
}

/// A pattern: for each lane the lane it reads, none outside the row.
type Pick = Box<dyn Fn(usize) -> Option<usize>>;

fn patterns() -> Vec<(String, Pick)> {
    let mut all: Vec<(String, Pick)> = Vec::new();
    for n in 1..16 {
        all.push((
            format!("row_shl:{n}"),
            Box::new(move |l| (l % 16 + n < 16).then_some(l + n)),
        ));
        all.push((
            format!("row_shr:{n}"),
            Box::new(move |l| (l % 16 >= n).then(|| l - n)),
        ));
        all.push((
            format!("row_ror:{n}"),
            Box::new(move |l| Some(l / 16 * 16 + (l + 16 - n) % 16)),
        ));
    }
    for n in 0..16 {
        all.push((
            format!("row_share:{n}"),
            Box::new(move |l| Some(l / 16 * 16 + n)),
        ));
        all.push((format!("row_xmask:{n}"), Box::new(move |l| Some(l ^ n))));
    }
    all.push((
        "row_mirror".into(),
        Box::new(|l| Some(l / 16 * 16 + 15 - l % 16)),
    ));
    all.push((
        "row_half_mirror".into(),
        Box::new(|l| Some(l / 8 * 8 + 7 - l % 8)),
    ));
    for q in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 3, 0], [2, 3, 0, 2]] {
        let [a, b, c, d] = q;
        all.push((
            format!("quad_perm:[{a},{b},{c},{d}]"),
            Box::new(move |l| Some(l / 4 * 4 + q[l % 4])),
        ));
    }
    all
}

#[test]
fn every_dpp_control_moves_what_it_says() {
    if !have_llvm() {
        return;
    }
    // All lanes; some off; masks of rows and banks; a bound that gives 0; inactive lanes read.
    let settings = [
        (u32::MAX, 0xf_u8, 0xf_u8, false, false),
        (u32::MAX, 0xf, 0xf, true, false),
        (0x5a3c_f00f, 0xf, 0xf, false, false),
        (0x5a3c_f00f, 0xf, 0xf, true, false),
        (0x5a3c_f00f, 0xf, 0xf, false, true),
        (u32::MAX, 0x2, 0x5, true, false),
        (u32::MAX, 0x1, 0xa, false, false),
    ];
    for (exec, rows, banks, zero, fetch) in settings {
        let all = patterns();
        let cases: Vec<(String, u32)> = all
            .iter()
            .map(|(control, _)| {
                let (bound, fi) = (if zero { " bound_ctrl:1" } else { "" }, if fetch { " fi:1" } else { "" });
                (format!("v_mov_b32_dpp v3, v2 {control} row_mask:{rows:#x} bank_mask:{banks:#x}{bound}{fi}"), exec)
            })
            .collect();
        for ((got, (_, pick)), (text, _)) in lanes_of(&cases).iter().zip(&all).zip(&cases) {
            let want: Vec<u32> = (0..32)
                .map(|l| {
                    let writes = exec >> l & 1 == 1
                        && rows >> (l / 16) & 1 == 1
                        && banks >> (l / 4 % 4) & 1 == 1;
                    match pick(l).filter(|&s| fetch || exec >> s & 1 == 1) {
                        _ if !writes => OLD,
                        Some(s) => held(s),
                        None if zero => 0,
                        None => OLD,
                    }
                })
                .collect();
            assert_eq!(*got, want, "{text}");
        }
    }
}

#[test]
fn groups_of_eight_and_permutations_move_what_they_say() {
    if !have_llvm() {
        return;
    }
    let exec = 0xf0f0_3333_u32;
    let half = move |s: usize| if exec >> s & 1 == 1 { held(s) } else { 0 };
    let kept = move |s: usize| if exec >> s & 1 == 1 { held(s) } else { OLD };
    let off = move |l: usize, x: u32| if exec >> l & 1 == 1 { x } else { OLD };
    let address = "v_lshlrev_b32 v4, 2, v0\nv_xor_b32 v4, 20, v4\n";
    type Want = Box<dyn Fn(usize) -> u32>;
    let cases: Vec<(&str, u32, Want)> = vec![
        (
            "v_mov_b32_dpp v3, v2 dpp8:[7,0,6,1,5,2,4,3]",
            u32::MAX,
            Box::new(|l| held(l / 8 * 8 + [7, 0, 6, 1, 5, 2, 4, 3][l % 8])),
        ),
        (
            "v_mov_b32_dpp v3, v2 dpp8:[7,0,6,1,5,2,4,3]",
            exec,
            Box::new(move |l| off(l, half(l / 8 * 8 + [7, 0, 6, 1, 5, 2, 4, 3][l % 8]))),
        ),
        (
            "v_mov_b32_dpp v3, v2 dpp8:[7,0,6,1,5,2,4,3] fi:1",
            exec,
            Box::new(move |l| off(l, held(l / 8 * 8 + [7, 0, 6, 1, 5, 2, 4, 3][l % 8]))),
        ),
        (
            "v_permlane16_b32 v3, v2, s20, s21",
            u32::MAX,
            Box::new(held),
        ),
        (
            "v_permlanex16_b32 v3, v2, s20, s21",
            u32::MAX,
            Box::new(|l| held(l ^ 16)),
        ),
        (
            "v_permlane16_b32 v3, v2, s21, s20",
            u32::MAX,
            Box::new(|l| held(l ^ 8)),
        ),
        (
            "v_permlanex16_b32 v3, v2, 0, 0xfedcba98",
            u32::MAX,
            Box::new(|l| held(16 - l / 16 * 16 + if l % 16 < 8 { 0 } else { l % 16 })),
        ),
        (
            "v_permlanex16_b32 v3, v2, s20, s21 op_sel:[1,0]",
            exec,
            Box::new(move |l| off(l, held(l ^ 16))),
        ),
        (
            "v_permlanex16_b32 v3, v2, s20, s21 op_sel:[0,1]",
            exec,
            Box::new(move |l| off(l, half(l ^ 16))),
        ),
        (
            "v_permlanex16_b32 v3, v2, s20, s21",
            exec,
            Box::new(move |l| off(l, kept(l ^ 16))),
        ),
        (
            "ds_swizzle_b32 v3, v2 offset:swizzle(SWAP,16)",
            u32::MAX,
            Box::new(|l| held(l ^ 16)),
        ),
        (
            "ds_swizzle_b32 v3, v2 offset:swizzle(REVERSE,8)",
            u32::MAX,
            Box::new(|l| held(l ^ 7)),
        ),
        (
            "ds_swizzle_b32 v3, v2 offset:swizzle(BROADCAST,8,3)",
            u32::MAX,
            Box::new(|l| held(l / 8 * 8 + 3)),
        ),
        (
            "ds_swizzle_b32 v3, v2 offset:swizzle(BITMASK_PERM,\"01pip\")",
            u32::MAX,
            Box::new(|l| held((l & 7 | 8) ^ 2)),
        ),
        (
            "ds_swizzle_b32 v3, v2 offset:swizzle(QUAD_PERM,1,0,3,2)",
            exec,
            Box::new(move |l| off(l, half(l ^ 1))),
        ),
        (
            "v_readlane_b32 s30, v2, 13\nv_mov_b32 v3, s30",
            u32::MAX,
            Box::new(|_| held(13)),
        ),
        (
            "v_readlane_b32 s30, v2, 31\nv_mov_b32 v3, s30",
            exec & 0x7fff_ffff,
            Box::new(move |l| if l < 31 { off(l, held(31)) } else { OLD }),
        ),
        (
            "v_readfirstlane_b32 s30, v2\nv_mov_b32 v3, s30",
            exec & !3,
            Box::new(move |l| if l > 1 { off(l, held(4)) } else { OLD }),
        ),
        (
            "s_movk_i32 s30, 99\nv_writelane_b32 v3, s30, 2",
            exec,
            Box::new(|l| if l == 2 { 99 } else { OLD }),
        ),
        (
            "s_mov_b32 m0, 2\nv_mov_b32 v5, v2\nv_mov_b32 v2, 0\nv_movrels_b32 v3, v3",
            exec,
            Box::new(move |l| off(l, held(l))),
        ),
        (
            "s_mov_b32 m0, 1\nv_movreld_b32 v2, v2",
            exec,
            Box::new(move |l| off(l, held(l))),
        ),
        (
            "v_swap_b32 v3, v2",
            exec,
            Box::new(move |l| off(l, held(l))),
        ),
        (
            "v_mbcnt_lo_u32_b32 v3, 0x0f0f, v2",
            u32::MAX,
            Box::new(|l| held(l) + (0x0f0f_u32 & ((1_u64 << l) - 1) as u32).count_ones()),
        ),
        ("v_mbcnt_hi_u32_b32 v3, -1, v2", u32::MAX, Box::new(held)),
        (
            "v_add_nc_u32_dpp v3, v2, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
            u32::MAX,
            Box::new(|l| {
                if l % 16 == 0 {
                    OLD
                } else {
                    held(l - 1) + held(l)
                }
            }),
        ),
        (
            "v_cmp_lt_u32_e64 s30, v2, v3\nv_cndmask_b32 v3, 1, 2, s30",
            u32::MAX,
            Box::new(|_| 1),
        ),
    ];
    let mut texts: Vec<(String, u32)> = cases
        .iter()
        .map(|(t, e, _)| ((*t).to_owned(), *e))
        .collect();
    texts.push((format!("{address}ds_bpermute_b32 v3, v4, v2"), u32::MAX));
    texts.push((
        format!("{address}ds_bpermute_b32 v3, v4, v2 offset:4"),
        exec,
    ));
    texts.push((format!("{address}ds_permute_b32 v3, v4, v2"), exec));
    let mut all = lanes_of(&texts);
    let push = all.pop().unwrap();
    let pull_offset = all.pop().unwrap();
    let pull = all.pop().unwrap();
    for (got, (text, exec, want)) in all.iter().zip(&cases) {
        let want: Vec<u32> = (0..32).map(want).collect();
        assert_eq!(*got, want, "{text} under {exec:#x}");
    }
    assert_eq!(pull, (0..32).map(|l| held(l ^ 5)).collect::<Vec<_>>());
    assert_eq!(
        pull_offset,
        (0..32)
            .map(|l| off(l, half(((l ^ 5) + 1) % 32)))
            .collect::<Vec<_>>()
    );
    let sent = |l: usize| {
        (0..32)
            .filter(|s| exec >> s & 1 == 1 && s ^ 5 == l)
            .map(held)
            .next_back()
            .unwrap_or(0)
    };
    assert_eq!(push, (0..32).map(|l| off(l, sent(l))).collect::<Vec<_>>());
}

/// A lane that never wrote its register is not read by others unnoticed.
#[test]
fn exchanges_see_what_was_never_written() {
    if !have_llvm() {
        return;
    }
    for text in [
        "v_mov_b32_dpp v3, v2 row_xmask:1 row_mask:0xf bank_mask:0xf fi:1",
        "v_permlanex16_b32 v3, v2, 0, 0 op_sel:[1,0]",
        "v_readlane_b32 s4, v2, 9",
    ] {
        let body =
            format!("s_mov_b32 exec_lo, 0xff\nv_mov_b32 v2, 1\ns_mov_b32 exec_lo, 0x1ff\n{text}");
        let module = device::one(&body, 0);
        let fault = run(
            module.kernel("k").unwrap(),
            1,
            32,
            &[0],
            1,
            &Options::default(),
        )
        .unwrap_err();
        assert!(
            matches!(fault.trouble, Trouble::UndefinedVgpr { register: 2 }),
            "{fault}"
        );
    }
}
