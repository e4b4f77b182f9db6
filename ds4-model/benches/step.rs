//! Whole steps of the bundled demo model: one token, and prompts of 64 and 512 tokens. Reported in tokens a second.
//!
//! `cargo bench -p ds4-model --bench step`; the synthetic slice with real shapes is timed by `cargo xtask bench`.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ds4_model::{Engine, Options, Session, Token};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

fn tokens(len: u32) -> Vec<Token> {
    (0..len)
        .map(|i| 3 + i.wrapping_mul(2_654_435_761) % 3000)
        .collect()
}

fn session() -> Session {
    let mut options = Options::default();
    options.threads = 2;
    let engine = Engine::open(MODEL, options).expect("the bundled model opens");
    engine.session().expect("memory for a small session")
}

/// A prompt from an empty timeline.
fn prefill(c: &mut Criterion) {
    let mut group = c.benchmark_group("prefill");
    for len in [64, 512] {
        let (mut session, tokens) = (session(), tokens(len));
        group.throughput(Throughput::Elements(u64::from(len)));
        group.bench_function(format!("{len} tokens"), |b| {
            b.iter_batched(
                || (),
                |()| {
                    session.rewind(0).expect("a timeline can be emptied");
                    session.sync(&tokens).expect("the prompt fits");
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// One token after a prompt of 64, the timeline rewound now and then.
fn decode(c: &mut Criterion) {
    let mut session = session();
    session.sync(&tokens(64)).expect("the prompt fits");
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Elements(1));
    group.bench_function("1 token", |b| {
        b.iter(|| {
            if session.tokens().len() >= 320 {
                session.rewind(64).expect("a timeline can be shortened");
            }
            session.push(17).expect("the token fits");
        });
    });
    group.finish();
}

criterion_group!(benches, prefill, decode);
criterion_main!(benches);
