//! One token out of the logits of a whole vocabulary, with the usual settings.

use criterion::{Criterion, criterion_group, criterion_main};
use ds4_model::Sampler;
use std::hint::black_box;

fn sample(c: &mut Criterion) {
    // A peak over a wide floor, as a language model's.
    let logits: Vec<f32> = (0..129_280u32)
        .map(|i| {
            let noise = (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32;
            12.0 * noise + if noise > 0.9999 { 8.0 } else { 0.0 }
        })
        .collect();
    let mut group = c.benchmark_group("sample");
    group.sample_size(20);
    let warm = Sampler {
        temperature: 1.0,
        ..Sampler::seeded(1)
    };
    for (name, mut sampler) in [
        ("greedy", Sampler::default()),
        ("temperature", warm.clone()),
        (
            "top_p_0.95",
            Sampler {
                top_p: 0.95,
                ..warm.clone()
            },
        ),
        (
            "top_k_40",
            Sampler {
                top_k: 40,
                ..warm.clone()
            },
        ),
        (
            "min_p_0.05",
            Sampler {
                min_p: 0.05,
                ..warm
            },
        ),
    ] {
        group.bench_function(name, |b| b.iter(|| sampler.sample(black_box(&logits))));
    }
    group.finish();
}

criterion_group!(benches, sample);
criterion_main!(benches);
