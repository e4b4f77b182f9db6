//! MB/s of text: this crate's splitting in front of Hugging Face's merges, and Hugging Face's whole pipeline beside it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ds4_model::Tokenizer;
use ds4_model::tokenizer::Special;
use std::hint::black_box;
use std::io::Read as _;

/// `tokenizer.json` of DeepSeek-V4.
fn definition() -> std::io::Result<String> {
    let packed = include_bytes!("../tests/data/tokenizer/deepseek-v4.tokenizer.json.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text)?;
    Ok(text)
}

/// About 100 kB of code, prose and scripts, no line twice in a row: the golden files themselves.
fn mixed() -> String {
    [
        include_str!("../tests/data/tokenizer/v4-strings.json"),
        include_str!("../src/chat/render.rs"),
        include_str!("../tests/data/tokenizer/v4-official-vectors.json"),
    ]
    .concat()
}

fn encode(c: &mut Criterion) {
    let json = definition().expect("the packed definition is part of the tests");
    let ours = Tokenizer::from_hf_json(&json).expect("the real definition is supported");
    let theirs: tokenizers::Tokenizer = json.parse().expect("the real definition is theirs");
    let text = mixed();
    let ids = ours.encode(&text, Special::All);

    let mut group = c.benchmark_group("tokenizer");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("encode", |b| {
        b.iter(|| ours.encode(black_box(&text), Special::All))
    });
    group.bench_function("encode_hf_pipeline", |b| {
        b.iter(|| theirs.encode(black_box(text.as_str()), false))
    });
    group.bench_function("decode", |b| b.iter(|| ours.decode(black_box(&ids))));
    group.finish();
    c.bench_function("tokenizer/load", |b| {
        b.iter(|| Tokenizer::from_hf_json(black_box(&json)))
    });
}

criterion_group!(benches, encode);
criterion_main!(benches);
