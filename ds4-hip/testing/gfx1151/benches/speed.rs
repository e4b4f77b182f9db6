//! Wave instructions a second: arithmetic alone, and a kernel with memory, LDS and barriers.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]
#![allow(missing_docs, reason = "criterion's macros make functions without")]

#[path = "../tests/device/mod.rs"]
mod device;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use device::{bytes, compile, have_llvm, load, one, source};
use ds4_hip_gfx1151::{Arena, Kernel, Options};

fn launch(kernel: &Kernel, grid: u32, block: u32, args: &[u8], memory: &Arena) -> u64 {
    let stats = kernel
        .launch(
            [grid, 1, 1],
            [block, 1, 1],
            args,
            memory,
            &Options::default(),
        )
        .unwrap_or_else(|fault| panic!("{fault}"));
    stats.total()
}

/// A loop of 16 vector instructions of common kinds, 1000 times, in 8 waves.
fn arithmetic(c: &mut Criterion) {
    let mut body = "v_mov_b32 v1, 1.0\nv_mov_b32 v2, 0.5\nv_mov_b32 v3, 3\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_mov_b32 v6, 1\n\
                    s_movk_i32 s4, 0x3e8\n.Lagain:\n"
        .to_owned();
    for _ in 0..2 {
        body.push_str(
            "v_fma_f32 v1, v1, v2, v1\nv_mul_f32 v2, v2, v1\nv_dot4_i32_iu8 v4, v3, v6, v4 neg_lo:[1,1,0]\nv_add_nc_u32 v5, v4, v5\n\
             v_lshlrev_b32 v6, 1, v5\nv_and_or_b32 v3, v6, v5, v3\nv_perm_b32 v6, v5, v3, 0x03020100\nv_cvt_f32_i32 v7, v6\n",
        );
    }
    body.push_str("s_sub_u32 s4, s4, 1\ns_cmp_lg_u32 s4, 0\ns_cbranch_scc1 .Lagain");
    let module = one(&body, 0);
    let kernel = module.kernel("k").unwrap();
    let memory = Arena::new();
    let mut group = c.benchmark_group("wave instructions");
    group.throughput(Throughput::Elements(launch(
        kernel, 1, 256, &[0; 16], &memory,
    )));
    group.bench_function("arithmetic", |b| {
        b.iter(|| launch(kernel, 1, 256, &[0; 16], &memory))
    });
    group.finish();
}

/// 64 rows of 2048 weights in blocks of 32, two rows a block of threads.
fn matvec(c: &mut Criterion) {
    let module = load(&compile(&source("kernels.hip"), &[]));
    let kernel = module.kernel("matvec").unwrap();
    let memory = Arena::new();
    let (rows, blocks) = (64_u32, 64_u32);
    let w = memory.alloc(&bytes(&vec![0x3c01_0203; (rows * blocks * 9) as usize]));
    let x = memory.alloc(&bytes(&vec![0x3c01_0203; (blocks * 9) as usize]));
    let y = memory.alloc(&bytes(&vec![0; rows as usize]));
    let mut args: Vec<u8> = [w, x, y].iter().flat_map(|p| p.to_le_bytes()).collect();
    args.extend([rows, blocks].iter().flat_map(|n| n.to_le_bytes()));
    let mut group = c.benchmark_group("wave instructions");
    group.throughput(Throughput::Elements(launch(
        kernel,
        rows / 2,
        64,
        &args,
        &memory,
    )));
    group.bench_function("matvec", |b| {
        b.iter(|| launch(kernel, rows / 2, 64, &args, &memory))
    });
    group.finish();
}

fn all(c: &mut Criterion) {
    if have_llvm() {
        arithmetic(c);
        matvec(c);
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
