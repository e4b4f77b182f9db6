//! Opening a file as large as the published DeepSeek-V4-Flash: 1328 tensors, 129 280 tokens, 86.7 GB behind a hole.

#![expect(
    clippy::print_stdout,
    reason = "reports resident memory, which criterion does not measure"
)]

#[path = "../tests/real_size/flash.rs"]
mod flash;

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use ds4_gguf::{Gguf, Strings};
use flash::{Sparse, resident_kib};

fn open(c: &mut Criterion) {
    let sparse =
        Sparse::create(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("a sparse file of 86.7 GB");
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    if let (true, Some((before, _))) = (reset, resident_kib()) {
        let model = Gguf::open(sparse.path()).expect("a valid file");
        if let Some((_, peak)) = resident_kib() {
            println!(
                "open: peak RSS {} KiB above the {before} KiB before",
                peak - before
            );
        }
        drop(model);
    }
    let mut group = c.benchmark_group("open");
    group.bench_function("flash_87gb", |b| {
        b.iter(|| Gguf::open(sparse.path()).expect("a valid file"))
    });
    let model = Gguf::open(sparse.path()).expect("a valid file");
    group.bench_function("walk_tokens", |b| {
        b.iter(|| {
            let tokens = model
                .metadata()
                .get::<Strings<'_>>("tokenizer.ggml.tokens")
                .expect("an array of strings");
            tokens.map(<[u8]>::len).sum::<usize>()
        });
    });
    group.bench_function("find_all_tensors", |b| {
        b.iter(|| {
            for info in model.tensors() {
                black_box(model.find(&info.name));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, open);
criterion_main!(benches);
