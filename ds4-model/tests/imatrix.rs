//! Importance collected by the tap, against sums computed here from values and weights.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::collections::HashMap;
use std::ops::ControlFlow;

use ds4_gguf::{Gguf, TensorType};
use ds4_model::graph::NodeName;
use ds4_model::imatrix::{CollectOptions, Collected, Entry};
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Error, Logits, Options, Precision, Tap, Values};
use ds4_quant::Imatrix;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
const TEXT: &str = "The capital of France is Paris. What is 12 plus 30? The opposite of hot is cold, and the \
                    currency of Japan is the yen. Sort these: pear, apple, fig.";

fn engine() -> Engine {
    let mut options = Options::default();
    options.precision = Precision::Exact;
    options.threads = 1;
    options.prefill_rows = 24;
    Engine::open(DEMO, options).unwrap()
}

fn go(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn collected(engine: &Engine, change: impl FnOnce(&mut CollectOptions)) -> Collected {
    let mut options = CollectOptions::default();
    change(&mut options);
    Collected::over(engine, TEXT, &options, go).unwrap()
}

fn entry<'a>(collected: &'a Collected, tensor: &str) -> &'a Entry {
    let has = |entry: &&Entry| entry.tensors.iter().any(|name| &**name == tensor);
    collected
        .entries()
        .iter()
        .find(has)
        .unwrap_or_else(|| panic!("{tensor}"))
}

/// Values of every step joined, by name.
#[derive(Default)]
struct Recorder {
    f32: HashMap<String, Vec<f32>>,
    i32: HashMap<String, Vec<i32>>,
}

impl Tap for Recorder {
    fn wants(&self, _: &NodeName) -> bool {
        true
    }

    fn see(&mut self, name: &NodeName, _: u32, _: usize, values: Values<'_>) {
        let name = name.as_str().to_owned();
        match values {
            Values::F32(v) => self.f32.entry(name).or_default().extend_from_slice(v),
            Values::I32(v) => self.i32.entry(name).or_default().extend_from_slice(v),
        }
    }
}

fn record(engine: &Engine) -> Recorder {
    let mut recorder = Recorder::default();
    let tokens = engine.tokenizer().encode(TEXT, Special::None);
    let mut session = engine.session().unwrap();
    session
        .run(&tokens, Logits::All, &mut recorder, &mut |_| {})
        .unwrap();
    recorder
}

fn squares<'a>(rows: impl Iterator<Item = &'a [f32]>, cols: usize) -> Vec<f64> {
    let mut sums = vec![0.0; cols];
    for row in rows {
        sums.iter_mut()
            .zip(row)
            .for_each(|(s, x)| *s += f64::from(*x).powi(2));
    }
    sums
}

/// f32 sums of a hundred squares each: 100 · 2^-24 relative; `loose` where the rows were computed again here.
fn close(got: &[f32], want: &[f64], loose: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let largest = want.iter().copied().fold(0.0, f64::max);
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(got) - want).abs();
        assert!(
            error <= loose * (want + 1e-3 * largest),
            "{what}, column {i}: {got}, {want}"
        );
    }
}

#[test]
fn dense_matrices_have_the_squares_of_what_they_read() {
    let engine = engine();
    let (collected, recorder) = (collected(&engine, |o| o.output = true), record(&engine));
    let tokens = collected.tokens() as u64;
    for (tensor, value, rows_a_token) in [
        ("blk.0.attn_q_a.weight", "l00.attn.norm", 1),
        ("blk.3.attn_kv.weight", "l03.attn.norm", 1),
        ("blk.3.ffn_gate_inp.weight", "l03.ffn.norm", 1),
        ("blk.3.ffn_up_shexp.weight", "l03.ffn.norm", 1),
        ("blk.3.ffn_down_shexp.weight", "l03.ffn.shared.act", 1),
        ("blk.2.attn_compressor_kv.weight", "l02.attn.norm", 1),
        ("output.weight", "head.norm", 1),
    ] {
        let entry = entry(&collected, tensor);
        assert_eq!(entry.counts, [tokens * rows_a_token], "{tensor}");
        let rows = recorder.f32.get(value).unwrap_or_else(|| panic!("{value}"));
        close(
            &entry.sums,
            &squares(rows.chunks_exact(entry.cols), entry.cols),
            1e-5,
            tensor,
        );
    }
    // Two groups of a row read the same columns.
    let grouped = entry(&collected, "blk.1.attn_output_a.weight");
    assert_eq!((grouped.counts[0], grouped.cols), (2 * tokens, 384));
}

#[test]
fn routed_experts_have_the_squares_of_the_tokens_that_reached_them() {
    let engine = engine();
    let (collected, recorder) = (collected(&engine, |_| {}), record(&engine));
    let gguf = engine.weights().gguf();
    let decode = |name: &str, expert: usize| {
        let tensor = gguf.tensor(name).unwrap();
        let size = tensor.bytes.len() / 16;
        let mut out = vec![0.0; 256 * 256];
        let codec = ds4_quant::codec(tensor.info.ty).unwrap();
        codec
            .decode(&tensor.bytes[expert * size..][..size], &mut out)
            .unwrap();
        out
    };
    for layer in [1, 4] {
        let x = &recorder.f32[&format!("l0{layer}.ffn.norm")];
        let ids = &recorder.i32[&format!("l0{layer}.ffn.route.ids")];
        let name = |part: &str| format!("blk.{layer}.ffn_{part}_exps.weight");
        let (outer, down) = (
            entry(&collected, &name("up")),
            entry(&collected, &name("down")),
        );
        assert_eq!(outer.tensors.len(), 2);
        for expert in 0..16 {
            let rows: Vec<&[f32]> = ids
                .chunks_exact(4)
                .zip(x.chunks_exact(256))
                .filter(|(ids, _)| ids.contains(&(expert as i32)))
                .map(|(_, row)| row)
                .collect();
            let what = format!("layer {layer}, expert {expert}");
            for entry in [outer, down] {
                assert_eq!(entry.counts[expert], rows.len() as u64, "{what}");
            }
            let sums = &outer.sums[expert * 256..][..256];
            close(sums, &squares(rows.iter().copied(), 256), 1e-5, &what);
            let (gate, up) = (decode(&name("gate"), expert), decode(&name("up"), expert));
            let dot = |w: &[f32], x: &[f32]| -> f64 {
                w.iter()
                    .zip(x)
                    .map(|(w, x)| f64::from(*w) * f64::from(*x))
                    .sum()
            };
            let inner: Vec<Vec<f32>> = rows
                .iter()
                .map(|row| {
                    let products = gate.chunks_exact(256).zip(up.chunks_exact(256));
                    let act = products.map(|(g, u)| {
                        let (g, u) = (dot(g, row).min(10.0), dot(u, row).clamp(-10.0, 10.0));
                        (g / (1.0 + (-g).exp()) * u) as f32
                    });
                    act.collect()
                })
                .collect();
            let sums = &down.sums[expert * 256..][..256];
            // f32 products of 256 terms, squared.
            close(
                sums,
                &squares(inner.iter().map(Vec::as_slice), 256),
                1e-3,
                &what,
            );
        }
    }
}

#[test]
fn both_kinds_of_file_are_read_back() {
    let engine = engine();
    let collected = collected(&engine, |o| o.reading.chunk = 20);
    let gguf = Imatrix::parse(collected.to_gguf(Vec::new(), "text.txt").unwrap()).unwrap();
    let mut bytes = Vec::new();
    collected.to_legacy(&mut bytes, "text.txt").unwrap();
    let legacy = Imatrix::parse(bytes).unwrap();
    let mut matrices = 0;
    for entry in collected.entries() {
        let experts = entry.counts.len();
        for tensor in &entry.tensors {
            matrices += 1;
            for (expert, &count) in entry.counts.iter().enumerate() {
                let sums = &entry.sums[expert * entry.cols..][..entry.cols];
                let mean = |sum: &f32| if count == 0 { 1.0 } else { sum / count as f32 };
                let want: Vec<f32> = sums.iter().map(mean).collect();
                for matrix in [&gguf, &legacy] {
                    let got = matrix.get(tensor, expert, experts, entry.cols).unwrap();
                    assert_eq!(got.unwrap(), want, "{tensor}, expert {expert}");
                }
            }
        }
    }
    for matrix in [gguf, legacy] {
        assert_eq!(
            (matrix.len(), matrix.datasets()),
            (matrices, &["text.txt".to_owned()][..])
        );
        assert_eq!(
            matrix.chunks(),
            Some(collected.tokens().div_ceil(20) as u32)
        );
    }
}

#[test]
fn experts_without_a_token_are_named() {
    let engine = engine();
    let mut options = CollectOptions::default();
    options.reading.chunk = 2;
    options.reading.chunks = Some(1);
    let collected = Collected::over(&engine, TEXT, &options, go).unwrap();
    let unreached = collected.unreached();
    // Two tokens reach at most eight of sixteen experts of each of seven layers, said once a layer.
    assert_eq!(unreached.len(), 7);
    assert!(unreached.iter().all(|u| u.of == 16 && u.experts.len() >= 8));
    let down = entry(&collected, "blk.0.ffn_down_exps.weight");
    let none = |expert: &&usize| down.counts[**expert] == 0;
    assert!(unreached[0].experts.iter().all(|expert| none(&expert)));
    assert!(
        unreached[0]
            .to_string()
            .contains("blk.0.ffn_gate_exps.weight"),
        "{}",
        unreached[0]
    );
}

#[test]
fn texts_and_pieces_of_nothing_are_refused() {
    let engine = engine();
    let collect = |text: &str, chunk: usize| {
        let mut options = CollectOptions::default();
        options.reading.chunk = chunk;
        let collected = Collected::over(&engine, text, &options, go);
        collected.map(|_| ()).unwrap_err()
    };
    for (text, found) in [("", 0), ("x", 1)] {
        let error = collect(text, 8);
        assert!(
            matches!(error, Error::Text { found: f, expected: 2 } if f == found),
            "{error}"
        );
    }
    for chunk in [0, 1] {
        let error = collect(TEXT, chunk);
        assert!(
            matches!(error, Error::Option { option: "chunk", found, .. } if found == chunk),
            "{error}"
        );
    }
}

#[test]
fn work_that_is_stopped_gives_what_was_read() {
    let engine = engine();
    let mut options = CollectOptions::default();
    options.reading.chunk = 8;
    let mut heard = 0;
    let stopped = Collected::over(&engine, TEXT, &options, |_, _| {
        heard += 1;
        match heard {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })
    .unwrap();
    assert!(!stopped.is_complete());
    assert_eq!((stopped.tokens(), heard), (16, 2));
    assert!(stopped.total() > 16);
    options.reading.chunks = Some(2);
    let two = Collected::over(&engine, TEXT, &options, go).unwrap();
    assert!(two.is_complete());
    let bytes = |collected: &Collected| collected.to_gguf(Vec::new(), "text.txt").unwrap();
    assert!(
        bytes(&stopped) == bytes(&two),
        "as if no more had been asked for"
    );
    let file = Gguf::from_vec(bytes(&stopped)).unwrap();
    let number = |key: &str| file.metadata().get::<u64>(key).unwrap();
    assert_eq!(number("imatrix.token_count"), 16);
    assert_eq!(number("imatrix.chunk_count"), 2);
}

#[test]
fn a_sum_that_is_no_number_is_named_after_the_piece_that_made_it() {
    let demo = Gguf::open(DEMO).unwrap();
    let mut options = CollectOptions::default();
    options.reading.chunk = 8;
    // Vectors that are no numbers do not load; these are, and their squares are beyond f32.
    for (norm, tensor, value) in [
        ("blk.3.attn_norm.weight", "blk.3.attn_q_a.weight", 1e38f32),
        ("blk.2.ffn_norm.weight", "blk.2.ffn_gate_inp.weight", -1e38),
    ] {
        let shard = &demo.shards()[0];
        let weights = demo.tensor(norm).unwrap();
        assert_eq!(weights.info.ty, TensorType::F32);
        let at = weights.bytes.as_ptr().addr() - shard.bytes().as_ptr().addr() + 4 * 5;
        let mut bytes = shard.bytes().to_vec();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let engine = Engine::from_gguf(Gguf::from_vec(bytes).unwrap(), Options::default()).unwrap();
        let mut heard = 0;
        let error = Collected::over(&engine, TEXT, &options, |_, _| {
            heard += 1;
            ControlFlow::Continue(())
        });
        let error = error.map(|_| ()).unwrap_err();
        let Error::Importance {
            tensor: found,
            expert: None,
            column: 5,
            tokens: 8,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert_eq!((&**found, heard), (tensor, 0), "{error}");
    }
}

#[test]
fn matrices_that_read_the_same_share_their_sums() {
    let engine = engine();
    let collected = collected(&engine, |o| o.output = true);
    let names: Vec<&str> = collected
        .entries()
        .iter()
        .flat_map(|e| e.tensors.iter().map(|t| &**t))
        .collect();
    let different: std::collections::HashSet<&&str> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    for [a, b] in [
        ["blk.0.attn_q_a.weight", "blk.0.attn_kv.weight"],
        ["blk.3.ffn_gate_shexp.weight", "blk.3.ffn_up_shexp.weight"],
        ["blk.3.ffn_gate_shexp.weight", "blk.3.ffn_gate_inp.weight"],
        ["blk.3.ffn_gate_exps.weight", "blk.3.ffn_up_exps.weight"],
    ] {
        assert!(
            std::ptr::eq(entry(&collected, a), entry(&collected, b)),
            "{a}, {b}"
        );
    }
}

/// One prompt that the tokens of a piece say is the same measurement, and limits leave out what is beyond them.
#[test]
fn prompts_of_a_data_set_are_read_each_from_its_beginning() {
    let engine = engine();
    let (first, second) = ("<｜User｜>What is hot?<｜Assistant｜></think>", TEXT);
    let marked = |prompt: &str| format!("===== DS4_IMATRIX_PROMPT a\n{prompt}\n\n");
    let dataset = [first, "x", second].map(marked).concat();
    let over = |prompts, tokens| Collected::over_prompts(&engine, &dataset, prompts, tokens, go);
    let count = |text: &str| engine.tokenizer().encode(text, Special::All).len();
    let whole = over(usize::MAX, usize::MAX).unwrap();
    let least = count("x") >= 2;
    assert!(!least, "one token is too short for a prompt");
    assert_eq!(whole.tokens(), count(first) + count(second));
    assert_eq!(over(2, usize::MAX).unwrap().tokens(), count(first));
    assert_eq!(
        over(9, count(first) + 4).unwrap().tokens(),
        count(first) + 4
    );
    // Of one prompt alone: the sums that reading it as a text gives.
    let by_text = |text: &str| {
        let mut options = CollectOptions::default();
        options.reading.special = Special::All;
        Collected::over(&engine, text, &options, go).unwrap()
    };
    let (alone, text) = (over(1, usize::MAX).unwrap(), by_text(first));
    for (entry, same) in alone.entries().iter().zip(text.entries()) {
        assert_eq!((&entry.sums, &entry.counts), (&same.sums, &same.counts));
    }
    let short = Collected::over_prompts(&engine, "x", 1, 9, go).unwrap_err();
    assert!(matches!(short, Error::Text { found: 1, .. }), "{short}");
}
