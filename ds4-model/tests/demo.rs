//! The bundled demo model: its greedy answers, and the accuracy its training report states.

use std::collections::BTreeMap;

use ds4_model::arch::deepseek4::CacheRounding;
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Message, Options, Precision, Sampler, Session};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const NATIVE: &str = "ds4-demo.gguf";
const STRIX: &str = "ds4-demo-strix.gguf";

fn engine(file: &str, change: impl FnOnce(&mut Options)) -> Engine {
    let mut options = Options::default();
    change(&mut options);
    Engine::open(format!("{ROOT}/assets/{file}"), options).expect("the bundled model opens")
}

/// Greedy continuation of a prompt that spells its markers out, up to the end-of-answer token.
fn answer(session: &mut Session, prompt: &str, limit: usize) -> String {
    let engine = session.engine().clone();
    session
        .sync(&engine.tokenizer().encode(prompt, Special::All))
        .expect("the prompt fits");
    let (mut sampler, stops) = (Sampler::default(), engine.stops());
    session
        .generate(&mut sampler, &stops)
        .limit(limit)
        .map(|piece| piece.expect("a step").text)
        .collect()
}

#[test]
fn the_capital_of_france_is_paris() {
    for file in [NATIVE, STRIX] {
        let engine = engine(file, |_| {});
        let mut session = engine.session().expect("memory");
        let prompt = engine
            .render(&[Message::user("What is the capital of France?")])
            .expect("a plain question");
        session.sync(&prompt).expect("the prompt fits");
        let (mut sampler, stops) = (Sampler::default(), engine.stops());
        let text: String = session
            .generate(&mut sampler, &stops)
            .map(|piece| piece.expect("a step").text)
            .collect();
        assert_eq!(text, "The capital of France is Paris.", "{file}");
    }
}

/// Golden answers of huggingface/transformers 5.24 in f32 (`tests/data/demo/golden.json`), dense weights not yet
/// rounded to Q8_0: equal under every arithmetic this engine offers.
#[test]
fn greedy_answers_equal_transformers_whatever_the_arithmetic() {
    let golden = include_str!("data/demo/golden.json");
    let golden: Vec<serde_json::Value> = serde_json::from_str(golden).expect("valid JSON");
    for (precision, rounding) in [
        (Precision::Fast, CacheRounding::Reference),
        (Precision::Fast, CacheRounding::None),
        (Precision::Exact, CacheRounding::None),
    ] {
        let engine = engine(NATIVE, |o| {
            o.precision = precision;
            o.rounding = rounding;
        });
        let mut session = engine.session().expect("memory");
        for case in &golden {
            let field = |name: &str| case[name].as_str().expect("a string");
            let want = field("output");
            let want = want.strip_suffix("<｜end▁of▁sentence｜>").unwrap_or(want);
            let got = answer(&mut session, field("prompt"), 96);
            assert_eq!(
                got,
                want,
                "{} under {precision:?}, {rounding:?}",
                field("name")
            );
        }
    }
}

/// Bytes of the bundled files; that `cargo xtask demo-model` makes them again is for it to check.
#[test]
fn the_bundled_models_are_whole() {
    for (file, bytes, crc) in [
        (NATIVE, 15_728_448, 0x42ea_e54b),
        (STRIX, 13_281_408, 0x6572_b7bb),
    ] {
        let found = std::fs::read(format!("{ROOT}/assets/{file}")).expect("bundled");
        assert_eq!(
            (found.len(), crc32fast::hash(&found)),
            (bytes, crc),
            "{file}"
        );
    }
}

/// Right and asked, for each `set/skill`.
type Scores = BTreeMap<String, (usize, usize)>;

/// Ask every `every`-th question of the evaluation sets.
fn evaluate(file: &str, every: usize) -> Scores {
    let engine = engine(file, |_| {});
    let mut session = engine.session().expect("memory");
    let mut scores = Scores::new();
    let sets =
        std::fs::read_dir(format!("{ROOT}/assets/eval")).expect("the evaluation sets are bundled");
    let mut files: Vec<_> = sets
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "jsonl"))
    {
        let set = file
            .file_stem()
            .expect("a file name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(file).expect("readable");
        for line in text.lines().step_by(every) {
            let [skill, prompt, want]: [String; 3] =
                serde_json::from_str(line).expect("skill, prompt, answer");
            let limit = engine.tokenizer().encode(&want, Special::All).len() + 1;
            let got = answer(&mut session, &prompt, limit);
            let score = scores.entry(format!("{set}/{skill}")).or_default();
            score.0 += usize::from(got == want);
            score.1 += 1;
        }
    }
    scores
}

fn total(scores: &Scores) -> (usize, usize) {
    scores
        .values()
        .fold((0, 0), |sum, score| (sum.0 + score.0, sum.1 + score.1))
}

/// A sample in every CI run. The report's accuracy over all sets is 96.1 %; three standard deviations of a sample of
/// this size are about five points.
#[test]
fn a_sample_of_the_evaluation_reaches_the_reported_accuracy() {
    for (file, percent) in [(NATIVE, 91), (STRIX, 90)] {
        let (right, asked) = total(&evaluate(file, 29));
        println!("{file}: {right} of {asked}");
        assert!(
            asked > 100 && right * 100 >= percent * asked,
            "{file}: {right} of {asked}"
        );
    }
}

/// Every question; prints the table. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "minutes"]
fn the_whole_evaluation_reaches_the_reported_accuracy_within_a_point() {
    let expected = include_str!("../../assets/eval/expected.json");
    let expected: Scores = serde_json::from_str(expected).expect("valid JSON");
    let scores = evaluate(NATIVE, 1);
    for (name, (right, asked)) in &scores {
        let (reported, of) = expected.get(name).copied().unwrap_or_default();
        println!("{name:42} {right:4}/{asked:<4} reported {reported}/{of}");
    }
    for set in [
        "all-capitals",
        "dialogue",
        "heldout-operands",
        "heldout-phrasing",
        "one-word",
        "seen",
        "think",
        "tools",
    ] {
        let of_set = |s: &Scores| {
            total(
                &s.iter()
                    .filter(|(n, _)| n.starts_with(set))
                    .map(|(n, s)| (n.clone(), *s))
                    .collect(),
            )
        };
        let ((right, asked), (reported, of)) = (of_set(&scores), of_set(&expected));
        println!("{set:42} {right:4}/{asked:<4} reported {reported}/{of}");
        assert_eq!(asked, of, "{set}");
        let points = (right as f64 - reported as f64) / asked as f64 * 100.0;
        assert!(points >= -1.0, "{set}: {points:.1} points below the report");
    }
    let ((right, asked), (reported, of)) = (total(&scores), total(&expected));
    println!("all {right}/{asked}, reported {reported}/{of}");
    assert!((right as f64 / asked as f64 - reported as f64 / of as f64).abs() <= 0.01);
}

/// Every question to the file in the recipe `strix`, whose experts were not trained for its types; prints the table.
#[test]
#[ignore = "minutes"]
fn the_whole_evaluation_of_strix() {
    let scores = evaluate(STRIX, 1);
    for (name, (right, asked)) in &scores {
        println!("{name:42} {right:4}/{asked}");
    }
    let (right, asked) = total(&scores);
    println!("all {right}/{asked}");
    assert!(right * 100 >= 90 * asked);
}
