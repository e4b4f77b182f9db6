//! Encoders in weights a second, on one and two threads, with importance and without where a type takes both.
//!
//! `cargo bench -p ds4-quant --bench encode`, or with a filter: `-- 'IQ2_XXS/importance/2 '`. The rows are those of an
//! expert's down projection in width; their weights are normally distributed as trained ones nearly are, so no search
//! ends early on an easy row.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ds4_gguf::TensorType;
use ds4_quant::{Error, Pool, encode_rows};

const COLS: usize = 4096;
const ROWS: usize = 64;
/// Of the weights: what a trained matrix has.
const DEVIATION: f64 = 0.02;

/// Numbers between 0 and 1, neither included, always the same.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 40) as f64 + 0.5) / f64::from(1 << 24)
    }

    /// Box and Muller's.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.next().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next()).cos()
    }
}

fn encoders(c: &mut Criterion) {
    let mut numbers = Uniform(1);
    let x: Vec<f32> = (0..ROWS * COLS)
        .map(|_| (DEVIATION * numbers.normal()) as f32)
        .collect();
    let importance: Vec<f32> = (0..COLS)
        .map(|_| (0.1 + 1.9 * numbers.next()) as f32)
        .collect();
    let pools = [1, 2].map(|threads| (threads, Pool::new(threads).expect("threads start")));
    let mut group = c.benchmark_group("encode");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(x.len() as u64));
    for &ty in TensorType::KNOWN {
        let mut blocks = vec![0; x.len() / ty.block_len() * ty.block_bytes()];
        for (case, importance) in [("plain", None), ("importance", Some(&importance[..]))] {
            let mut encode =
                |pool| encode_rows(pool, ty, COLS, &x, importance, black_box(&mut blocks));
            match encode(&pools[0].1) {
                Ok(()) => {}
                Err(Error::DecodeOnly { .. } | Error::MissingImportance { .. }) => continue,
                Err(error) => panic!("{ty}: {error}"),
            }
            for (threads, pool) in &pools {
                let name = format!("{}/{case}/{threads} threads", ty.name());
                group.bench_function(name, |b| {
                    b.iter(|| encode(pool).expect("it did before"));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, encoders);
criterion_main!(benches);
