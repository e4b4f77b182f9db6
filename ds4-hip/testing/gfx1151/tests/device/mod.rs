//! What the tests of this folder stand on: code objects made by LLVM 19, launches with buffers.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::print_stderr, reason = "a test that cannot run here says so")]
#![allow(
    clippy::unwrap_used,
    reason = "these are parts of tests, in functions of their own"
)]

pub(crate) mod float_cases;
pub(crate) mod reference;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use ds4_hip_gfx1151::{Arena, Fault, Kernel, Module, Options, Stats, Tools};

/// Whether clang, lld and llvm-objdump of LLVM 19 are there; says so when they are not.
pub(crate) fn have_llvm() -> bool {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let all = ["clang-19", "ld.lld-19", "llvm-objdump-19"].map(there);
    if all != [true; 3] {
        // Straight to the stream: what the macros print is held back for tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: this test needs clang-19, lld-19 and llvm-19"
        );
        return false;
    }
    true
}

fn clang(args: &[&str], source: &str, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join(name), folder.path().join("object"));
    std::fs::write(&from, source).unwrap();
    let run = Command::new("clang-19")
        .args(args)
        .args([from.as_os_str(), "-o".as_ref(), to.as_os_str()])
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    std::fs::read(to).unwrap()
}

/// A code object from assembly text.
pub(crate) fn assemble(source: &str) -> Vec<u8> {
    let target = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx1151"];
    clang(&[&target[..], &["-x", "assembler"]].concat(), source, "k.s")
}

/// A code object from a kernel source of this folder, with the flags of the product.
pub(crate) fn compile(source: &str, defines: &[&str]) -> Vec<u8> {
    let flags = [
        "-x",
        "hip",
        "--offload-arch=gfx1151",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpuinc",
        "-nogpulib",
        "-O3",
        "-std=c++17",
        "-ffp-contract=off",
        "-mcode-object-version=5",
    ];
    clang(&[&flags[..], defines].concat(), source, "k.hip")
}

/// The text of a file of this folder.
pub(crate) fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn load(object: &[u8]) -> Module {
    match Module::load(object, &Tools::default()) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

/// A kernel in assembly: body, LDS bytes, bytes of arguments. `s[0:1]` has the arguments, s2 the block, v0 the work-item.
pub(crate) struct Asm<'a> {
    pub(crate) name: &'a str,
    pub(crate) body: &'a str,
    pub(crate) lds: u32,
    pub(crate) kernarg: u32,
}

/// An assembly file with these kernels.
pub(crate) fn asm(kernels: &[Asm<'_>]) -> String {
    let mut text =
        ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1151\"\n.amdhsa_code_object_version 5\n".to_owned();
    let mut notes = String::new();
    for Asm {
        name,
        body,
        lds,
        kernarg,
    } in kernels
    {
        text.push_str(&format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\ns_endpgm\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_next_free_vgpr 128\n.amdhsa_next_free_sgpr 64\n.amdhsa_float_denorm_mode_32 3\n\
             .amdhsa_wavefront_size32 1\n.amdhsa_group_segment_fixed_size {lds}\n.end_amdhsa_kernel\n"
        ));
        let args: String = (0..kernarg / 8)
            .map(|k| {
                format!(
                    "      - {{.offset: {}, .size: 8, .value_kind: by_value}}\n",
                    8 * k
                )
            })
            .collect();
        notes.push_str(&format!(
            "  - .name: {name}\n    .symbol: {name}.kd\n    .kernarg_segment_size: {kernarg}\n    .kernarg_segment_align: 8\n    \
             .group_segment_fixed_size: {lds}\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    .sgpr_count: 64\n    \
             .vgpr_count: 128\n    .max_flat_workgroup_size: 1024\n    .args:\n{args}"
        ));
    }
    text.push_str(&format!(
        ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n{notes}...\n.end_amdgpu_metadata\n"
    ));
    text
}

/// One kernel from assembly.
pub(crate) fn one(body: &str, lds: u32) -> Module {
    let kernel = Asm {
        name: "k",
        body,
        lds,
        kernarg: 16,
    };
    load(&assemble(&asm(&[kernel])))
}

pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Launch with the addresses of `input` and of an output of `out` words; the output.
pub(crate) fn run(
    kernel: &Kernel,
    blocks: u32,
    block: u32,
    input: &[u32],
    out: usize,
    options: &Options,
) -> Result<(Vec<u32>, Stats), Box<Fault>> {
    let memory = Arena::new();
    let (a, b) = (memory.alloc(&bytes(input)), memory.alloc(&vec![0; 4 * out]));
    let args: Vec<u8> = [a, b].iter().flat_map(|p| p.to_le_bytes()).collect();
    let stats = kernel.launch([blocks, 1, 1], [block, 1, 1], &args, &memory, options)?;
    Ok((words(&memory.read(b).unwrap()), stats))
}
