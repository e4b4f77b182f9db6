//! Scalar arithmetic and control flow.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, have_llvm, load, one, run};
use ds4_hip_gfx1151::{Class, Options};

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
