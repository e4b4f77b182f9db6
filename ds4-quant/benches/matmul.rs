//! Products of packed weights with activations at the shapes of V4-Flash, in bytes of packed weights a second: one column is
//! a decoded token, 4 a verified draft, 64 and 512 a prompt.
//!
//! `cargo bench -p ds4-quant --bench matmul`, or with a filter: `-- 'IQ2_XXS/.*/1 '`. Every iteration takes another copy
//! of the matrix, so that weights come from memory as they do in a model. All threads of the machine take part.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ds4_gguf::TensorType;
use ds4_quant::{Activations, Matrix, Pool, Precision, encode_rows, matmul};

/// Experts' gate and up, experts' down, query, output projection: `[columns, rows]` as the model's tables have them.
const SHAPES: [[usize; 2]; 4] = [[4096, 2048], [2048, 4096], [1024, 32_768], [8192, 4096]];
const TYPES: [TensorType; 9] = [
    TensorType::Iq2Xxs,
    TensorType::Q2K,
    TensorType::Q4K,
    TensorType::Q8_0,
    TensorType::Mxfp4,
    TensorType::RocmFp2TwoScale,
    TensorType::RocmFp3,
    TensorType::RocmFp4,
    TensorType::F16,
];
const COLUMNS: [usize; 4] = [1, 4, 64, 512];
/// Larger than any cache.
const COPIES: usize = 128 << 20;
/// Rows that are really encoded; the matrix repeats them.
const ENCODED: usize = 64;

/// Numbers with a maximum in the middle, always the same.
fn numbers(len: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..len).map(|_| next() + next() + next()).collect()
}

fn products(c: &mut Criterion) {
    let pool = Pool::new(0).expect("threads start");
    let mut group = c.benchmark_group("matmul");
    group.sample_size(10);
    for ty in TYPES {
        for [cols, rows] in SHAPES {
            let mut some = vec![0; ENCODED * cols / ty.block_len() * ty.block_bytes()];
            let (x, ones) = (numbers(ENCODED * cols), vec![1.0; cols]);
            encode_rows(&pool, ty, cols, &x, Some(&ones), &mut some).expect("every type encodes");
            let copies = COPIES.div_ceil(some.len() * rows / ENCODED);
            let bytes = some.repeat(copies * rows / ENCODED);
            let matrices: Vec<_> = bytes
                .chunks_exact(bytes.len() / copies)
                .map(|bytes| Matrix::new(ty, rows, cols, bytes).expect("whole rows"))
                .collect();
            for columns in COLUMNS {
                let x = numbers(columns * cols);
                let x = Activations::new(&x, columns, cols, Precision::Fast).expect("whole rows");
                let mut y = vec![0.0; columns * rows];
                let mut turn = matrices.iter().cycle();
                group.throughput(Throughput::Bytes((bytes.len() / copies) as u64));
                group.bench_function(
                    format!("{}/{cols}x{rows}/{columns} columns", ty.name()),
                    |b| {
                        b.iter(|| {
                            let w = *turn.next().expect("a cycle has no end");
                            matmul(&pool, w, &x, black_box(&mut y)).expect("the shapes fit");
                        });
                    },
                );
            }
        }
    }
    group.finish();
}

criterion_group!(benches, products);
criterion_main!(benches);
