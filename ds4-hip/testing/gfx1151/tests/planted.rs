//! Faults planted in compiled kernels are caught: by the result, or by the record of accesses.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use std::sync::OnceLock;

use device::reference::{
    Random, as_f32, block_sum_reference, codebook_reference, floats, launch, module, signed_bytes,
    tile_inputs, tile_reference,
};
use device::{assemble, compile, have_llvm, load, one, source};
use ds4_hip_gfx1151::{Fault, Module, Options, Order, Trouble};

/// The assembly of the kernels with `from` replaced by `to` everywhere in `kernel`.
fn planted(kernel: &str, from: &str, to: &str) -> Module {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text =
        TEXT.get_or_init(|| String::from_utf8(compile(&source("kernels.hip"), &["-S"])).unwrap());
    let start = text.find(&format!("\n{kernel}:")).unwrap();
    let end = start + text[start..].find("s_endpgm").unwrap();
    assert!(text[start..end].contains(from), "{kernel} has no `{from}`");
    let body = text[start..end].replace(from, to);
    load(&assemble(&[&text[..start], &body, &text[end..]].concat()))
}

fn sum_of(module: &Module, options: &Options) -> Result<Vec<u32>, Box<Fault>> {
    let x = floats(&mut Random(1), 3 * 200);
    launch(module, "block_sum", 3, 128, &[&x], 3, &[200], options).map(|(out, _)| out)
}

#[test]
fn planted_lane_patterns_change_the_result() {
    if !have_llvm() {
        return;
    }
    let x = floats(&mut Random(1), 3 * 200);
    let want = block_sum_reference(&as_f32(&x), 200);
    let options = Options::default();
    let clean = planted("block_sum", "row_xmask:8", "row_xmask:8");
    assert_eq!(sum_of(&clean, &options).unwrap(), want);
    for (from, to) in [
        ("row_xmask:8", "row_xmask:4"),
        ("row_xmask:1 ", "row_shr:1 "),
        ("0x76543210", "0x76543211"),
        ("0xfedcba98", "0xfedcba89"),
        ("permlanex16", "permlane16"),
    ] {
        assert_ne!(
            sum_of(&planted("block_sum", from, to), &options).unwrap(),
            want,
            "{from} -> {to}"
        );
    }
}

#[test]
fn a_missing_barrier_is_a_race() {
    if !have_llvm() {
        return;
    }
    let module = planted("block_sum", "s_barrier", "s_nop 0");
    for order in [Order::Forward, Order::Reverse] {
        let mut options = Options::default();
        options.order = order;
        let fault = sum_of(&module, &options).unwrap_err();
        let seen = matches!(
            fault.trouble,
            Trouble::LdsRace { .. } | Trouble::UndefinedLds { .. }
        );
        assert!(seen, "{fault}");
    }
    // In the order 3, 2, 1, 0 everything has been written when wave 0 reads: only the record of accesses shows the fault.
    let mut options = Options::default();
    options.order = Order::Reverse;
    assert!(matches!(
        sum_of(&module, &options).unwrap_err().trouble,
        Trouble::LdsRace { .. }
    ));
    options.check_races = false;
    assert!(sum_of(&module, &options).is_ok());
}

#[test]
fn planted_selectors_and_fragments_change_the_result() {
    if !have_llvm() {
        return;
    }
    let codes: Vec<u32> = (0..32).map(|k| k * 0x0103_0507).collect();
    let run = |m: &Module| {
        launch(
            m,
            "codebook",
            1,
            32,
            &[&codes],
            32,
            &[32],
            &Options::default(),
        )
        .unwrap()
        .0
    };
    assert_eq!(
        run(&planted("codebook", "0x7070707", "0x7070707")),
        codebook_reference(&codes)
    );
    assert_ne!(
        run(&planted("codebook", "0x7070707", "0x7070703")),
        codebook_reference(&codes)
    );
    let (a, b) = tile_inputs();
    let want = tile_reference(&signed_bytes(&a), &signed_bytes(&b));
    let wrong_row = module(&["-DPLANT_ROW"]);
    let (got, _) = launch(
        &wrong_row,
        "tile_i8",
        1,
        32,
        &[&a, &b],
        256,
        &[],
        &Options::default(),
    )
    .unwrap();
    assert_ne!(got, want);
}

/// The order of halves matters in pairs: each must read before the other writes.
#[test]
fn pairs_read_before_they_write() {
    if !have_llvm() {
        return;
    }
    let module = one(
        "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 3, v0\nv_mov_b32 v2, 5\nv_mov_b32 v3, 7\n\
         v_dual_mov_b32 v2, v3 :: v_dual_mov_b32 v3, v2\nglobal_store_b64 v9, v[2:3], s[6:7]",
        0,
    );
    let (got, stats) = device::run(
        module.kernel("k").unwrap(),
        1,
        32,
        &[0],
        64,
        &Options::default(),
    )
    .unwrap();
    assert_eq!(got[..2], [7, 5]);
    assert_eq!(stats.total(), 7);
}
