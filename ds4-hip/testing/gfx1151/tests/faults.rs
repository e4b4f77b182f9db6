//! What must stop a launch or a load, and what the message names.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{Asm, asm, assemble, bytes, have_llvm, load, one, run};
use ds4_hip_gfx1151::{Access, Arena, Class, Error, Fault, Module, Options, Tools, Trouble};

const START: &str = "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 2, v0\nv_mov_b32 v1, 1\n";

fn fault_of(body: &str, lds: u32, block: u32) -> Fault {
    let module = one(&format!("{START}{body}"), lds);
    *run(
        module.kernel("k").unwrap(),
        1,
        block,
        &[1, 2, 3, 4],
        64,
        &Options::default(),
    )
    .unwrap_err()
}

#[test]
fn each_fault_names_place_and_cause() {
    if !have_llvm() {
        return;
    }
    let fault = fault_of("global_load_b32 v2, v9, s[4:5]", 0, 32);
    let Trouble::OutOfBounds {
        access: Access::Read,
        bytes: 4,
        nearest: Some(near),
        ..
    } = fault.trouble
    else {
        panic!("{fault}");
    };
    assert_eq!((fault.lane, fault.wave, near.bytes), (Some(4), 0, 16));
    assert_eq!(fault.instruction, "global_load_b32 v2, v9, s[4:5]");
    assert!(fault.to_string().contains("ends 0 bytes before"), "{fault}");
    assert!(matches!(
        fault_of("global_store_b64 v9, v[1:2], s[6:7] offset:252", 0, 1).trouble,
        Trouble::UndefinedVgpr { register: 2 }
    ));
    assert!(matches!(
        fault_of(
            "v_mov_b32 v2, 0\nglobal_store_b64 v9, v[1:2], s[6:7] offset:252",
            0,
            1
        )
        .trouble,
        Trouble::OutOfBounds {
            access: Access::Write,
            ..
        }
    ));
    assert!(matches!(
        fault_of("v_not_b32 v3, v50", 0, 32).trouble,
        Trouble::UndefinedVgpr { register: 50 }
    ));
    assert!(matches!(
        fault_of("s_not_b32 s3, s50", 0, 32).trouble,
        Trouble::UndefinedSgpr { register: 50 }
    ));
    assert!(matches!(
        fault_of("v_mov_b32 v3, vcc_lo", 0, 32).trouble,
        Trouble::UndefinedSgpr { register: 106 }
    ));
    assert!(matches!(
        fault_of("ds_load_b32 v2, v9", 256, 32).trouble,
        Trouble::UndefinedLds { offset: 0 }
    ));
    assert!(matches!(
        fault_of("ds_store_b32 v9, v1 offset:252", 256, 32).trouble,
        Trouble::LdsOutOfBounds { offset: 256, .. }
    ));
    assert!(matches!(
        fault_of(
            "v_add_nc_u32 v9, 2, v9\nglobal_atomic_add_u32 v9, v1, s[6:7]",
            0,
            1
        )
        .trouble,
        Trouble::Misaligned { need: 4, .. }
    ));
    assert!(matches!(
        fault_of("s_mov_b32 exec_lo, 1\ns_barrier", 0, 32).trouble,
        Trouble::BarrierDivergence { .. }
    ));
    assert!(matches!(fault_of("s_trap 2", 0, 32).trouble, Trouble::Trap));
    assert!(matches!(
        fault_of("s_round_mode 1", 0, 32).trouble,
        Trouble::NotModelled { .. }
    ));
    assert!(matches!(
        fault_of("s_mov_b64 s[8:9], 0\ns_setpc_b64 s[8:9]", 0, 32).trouble,
        Trouble::Jump { .. }
    ));
    assert!(matches!(
        fault_of(
            "s_mov_b32 exec_lo, 1\nv_wmma_i32_16x16x16_iu4 v[8:15], v[2:3], v[4:5], 0",
            0,
            32
        )
        .trouble,
        Trouble::MatrixLanesOff { exec: 1 }
    ));
}

#[test]
fn waves_must_meet_at_one_barrier() {
    if !have_llvm() {
        return;
    }
    let ended =
        "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 over\ns_barrier\nover:";
    assert!(matches!(
        fault_of(ended, 0, 64).trouble,
        Trouble::BarrierDivergence { .. }
    ));
    let two = "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 other\ns_barrier\ns_endpgm\nother:\ns_barrier";
    let fault = fault_of(two, 0, 64);
    assert!(matches!(fault.trouble, Trouble::BarrierDivergence { .. }));
    assert_eq!(fault.instruction, "s_barrier");
    // As the hardware does it, on request.
    let module = one(&format!("{START}{ended}"), 0);
    let mut options = Options::default();
    options.ended_waves_pass = true;
    assert!(run(module.kernel("k").unwrap(), 1, 64, &[0], 1, &options).is_ok());
}

#[test]
fn endless_kernels_and_wrong_launches_stop() {
    if !have_llvm() {
        return;
    }
    let module = one("again:\ns_branch again", 64);
    let kernel = module.kernel("k").unwrap();
    let mut options = Options::default();
    options.step_limit = 1000;
    let fault = run(kernel, 1, 32, &[0], 1, &options).unwrap_err();
    assert!(matches!(fault.trouble, Trouble::StepLimit { limit: 1000 }));
    let memory = Arena::new();
    let launch = |block, args: &[u8], options: &Options| {
        kernel
            .launch([1, 1, 1], block, args, &memory, options)
            .unwrap_err()
            .trouble
    };
    assert!(matches!(
        launch([33, 32, 1], &[0; 16], &options),
        Trouble::Launch {
            found: 1056,
            limit: 1024,
            ..
        }
    ));
    assert!(matches!(
        launch([32, 1, 1], &[0; 8], &options),
        Trouble::Arguments {
            expected: 16,
            found: 8
        }
    ));
    options.dynamic_lds_bytes = 65536;
    assert!(matches!(
        launch([32, 1, 1], &[0; 16], &options),
        Trouble::Launch { what: "LDS", .. }
    ));
    // Nothing to run is no fault, however often.
    let many = [u32::MAX; 3];
    let stats = kernel.launch(many, [0, 1, 1], &[0; 16], &memory, &Options::default());
    assert_eq!(stats.unwrap().total(), 0);
    let stats = kernel
        .launch(
            [0, 1, 1],
            [32, 1, 1],
            &[0; 16],
            &memory,
            &Options::default(),
        )
        .unwrap();
    assert_eq!(stats.total(), 0);
}

#[test]
fn read_only_memory_is_not_written() {
    if !have_llvm() {
        return;
    }
    let module = one(&format!("{START}global_store_b32 v9, v1, s[6:7]"), 0);
    let memory = Arena::new();
    let constant = memory.alloc_read_only(&bytes(&[1; 32]));
    let args: Vec<u8> = [constant, constant]
        .iter()
        .flat_map(|p| p.to_le_bytes())
        .collect();
    let fault = module
        .kernel("k")
        .unwrap()
        .launch([1, 1, 1], [32, 1, 1], &args, &memory, &Options::default())
        .unwrap_err();
    assert!(matches!(fault.trouble, Trouble::ReadOnly { .. }));
    assert_eq!(memory.read(constant).unwrap(), bytes(&[1; 32]));
}

#[test]
fn what_is_no_code_object_is_refused() {
    let tools = Tools::default();
    for bytes in [
        &b""[..],
        b"\x7fELF",
        b"not an elf file at all, but long enough to hold the header of one, 64 bytes",
    ] {
        assert!(matches!(
            Module::load(bytes, &tools),
            Err(Error::NotElf { .. })
        ));
    }
    if !have_llvm() {
        return;
    }
    let kernel = |body| Asm {
        name: "k",
        body,
        lds: 0,
        kernarg: 16,
    };
    let good = assemble(&asm(&[kernel("s_nop 0")]));
    let loaded = load(&good);
    let k = loaded.kernel("k").unwrap();
    assert_eq!(
        (
            k.args().count(),
            k.args_bytes(),
            k.max_block(),
            k.lds_bytes()
        ),
        (2, 16, 1024, 0)
    );
    assert!(loaded.kernel("other").is_none());
    let texts: Vec<_> = k
        .instructions()
        .map(|(_, text, class)| (text, class))
        .collect();
    assert_eq!(
        texts,
        [("s_nop 0", Class::Wait), ("s_endpgm", Class::Branch)]
    );
    let missing = Tools {
        objdump: "/nowhere/objdump".into(),
    };
    // Truncations and changed bytes, of headers and tables alike, are errors, never panics.
    for end in (0..good.len()).step_by(61) {
        assert!(Module::load(&good[..end], &missing).is_err());
    }
    for at in (0..good.len()).step_by(3) {
        for change in [0xff, 0x01] {
            let mut bad = good.clone();
            bad[at] ^= change;
            let result = Module::load(&bad, &missing);
            assert!(result.is_err(), "without a disassembler nothing loads");
        }
    }
    let mut other = good.clone();
    other[48] = 0x41;
    assert!(matches!(
        Module::load(&other, &tools),
        Err(Error::Target { found: 0x41, .. })
    ));
    assert!(matches!(
        Module::load(&good, &missing),
        Err(Error::NoDisassembler { .. })
    ));
    let unknown = assemble(&asm(&[kernel(
        "s_nop 0\nimage_load v0, v[0:1], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D",
    )]));
    let error = Module::load(&unknown, &tools).err().unwrap();
    assert!(
        matches!(&error, Error::UnknownInstruction { text, .. } if text.starts_with("image_load")),
        "{error}"
    );
    let text = asm(&[kernel("s_nop 0")]);
    let scratch = text.replace(
        ".private_segment_fixed_size: 0",
        ".private_segment_fixed_size: 16",
    );
    assert!(matches!(
        Module::load(&assemble(&scratch), &tools),
        Err(Error::Scratch { bytes: 16, .. })
    ));
    let rounding = text.replace(
        ".amdhsa_wavefront_size32 1",
        ".amdhsa_wavefront_size32 1\n.amdhsa_float_round_mode_32 1",
    );
    assert!(matches!(
        Module::load(&assemble(&rounding), &tools),
        Err(Error::Descriptor { .. })
    ));
    let wide = text.replace("wavefront_size: 32", "wavefront_size: 64");
    assert!(matches!(
        Module::load(&assemble(&wide), &tools),
        Err(Error::Wave64 { .. })
    ));
}

/// Each line of the list assembles; what the disassembler makes of it must decode.
#[test]
fn every_instruction_of_the_list_is_known() {
    if !have_llvm() {
        return;
    }
    let body = device::source("instructions.s");
    assert!(body.lines().count() > 900);
    one(&body, 0);
}

/// Copies and selections carry along that nothing was written; using it is the fault, in the lanes concerned and no others.
#[test]
fn copies_of_what_was_never_written_are_not_written() {
    if !have_llvm() {
        return;
    }
    let half = "s_movk_i32 s8, 0xff\ns_mov_b32 exec_lo, s8\nv_mov_b32 v2, 5\ns_mov_b32 exec_lo, -1\nv_mov_b32 v3, v2\n";
    let fault = fault_of(&format!("{half}v_add_nc_u32 v4, v3, v3"), 0, 32);
    assert!(matches!(
        fault.trouble,
        Trouble::UndefinedVgpr { register: 3 }
    ));
    assert_eq!(fault.lane, Some(8));
    let chosen =
        "v_cndmask_b32 v4, 7, v3, s8\ns_waitcnt lgkmcnt(0)\nglobal_store_b32 v9, v4, s[6:7]";
    let module = one(&format!("{START}{half}{chosen}"), 0);
    let (out, _) = run(
        module.kernel("k").unwrap(),
        1,
        32,
        &[0],
        32,
        &Options::default(),
    )
    .unwrap();
    assert_eq!(
        out,
        (0..32)
            .map(|l| if l < 8 { 5 } else { 7 })
            .collect::<Vec<u32>>()
    );
    let fault = fault_of(
        &format!("{half}v_cndmask_b32 v4, v3, 7, s8\nv_not_b32 v5, v4"),
        0,
        32,
    );
    assert!(matches!(
        fault.trouble,
        Trouble::UndefinedVgpr { register: 4 }
    ));
    let fault = fault_of(
        "s_mov_b32 s20, 1\ns_mov_b64 s[22:23], s[20:21]\ns_not_b32 s24, s22\ns_not_b32 s24, s23",
        0,
        32,
    );
    assert!(matches!(
        fault.trouble,
        Trouble::UndefinedSgpr { register: 23 }
    ));
}
