//! Two files side by side.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::ops::ControlFlow;

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_model::compare::{CompareError, TextOptions, tensors, text};
use ds4_model::{Engine, Options};
use ds4_quant::Pool;

const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets");
const TEXT: &str = "The capital of France is Paris. The opposite of hot is cold.";

fn file(tensors: &[(&str, &[u64], TensorType, Vec<u8>)]) -> Gguf {
    let mut plan = Plan::new(Metadata::new()).unwrap();
    for (name, dims, ty, _) in tensors {
        plan.add(name, dims, *ty).unwrap();
    }
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    for (name, .., bytes) in tensors {
        writer.tensor(name, bytes).unwrap();
    }
    Gguf::from_vec(writer.finish().unwrap()).unwrap()
}

fn f32s(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn f16s(x: &[f32]) -> Vec<u8> {
    x.iter()
        .flat_map(|x| half::f16::from_f32(*x).to_le_bytes())
        .collect()
}

#[test]
fn tensors_are_compared_whatever_their_types_and_those_alone_are_named() {
    let (x, y) = ([1.0, -2.0, 2.0, 0.0], [1.0, -2.0, 1.0, 0.0]);
    let a = file(&[
        ("both", &[2, 2], TensorType::F32, f32s(&x)),
        ("left", &[1], TensorType::F32, f32s(&[0.0])),
        ("shape", &[4], TensorType::F32, f32s(&x)),
        (
            "table",
            &[2],
            TensorType::I32,
            [1i32, 2].iter().flat_map(|i| i.to_le_bytes()).collect(),
        ),
        ("grouped", &[2, 2], TensorType::F32, f32s(&x)),
        ("wide", &[2], TensorType::I64, vec![0; 16]),
    ]);
    let b = file(&[
        ("both", &[2, 2], TensorType::F16, f16s(&y)),
        ("right", &[1], TensorType::F32, f32s(&[0.0])),
        ("shape", &[2, 2], TensorType::F32, f32s(&x)),
        (
            "table",
            &[2],
            TensorType::I32,
            [1i32, 5].iter().flat_map(|i| i.to_le_bytes()).collect(),
        ),
        ("grouped", &[2, 1, 2], TensorType::F32, f32s(&x)),
        ("wide", &[2], TensorType::I64, vec![0; 16]),
    ]);
    let pool = Pool::new(2).unwrap();
    let mut heard = Vec::new();
    let all = tensors(&a, &b, &pool, |name, done, total| {
        heard.push((name.to_owned(), done, total));
        ControlFlow::Continue(())
    })
    .unwrap();
    let names: Vec<&str> = all.compared.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["both", "table", "grouped"]);
    let both = &all.compared[0];
    assert_eq!(both.types, [TensorType::F32, TensorType::F16]);
    assert_eq!(
        (both.difference.rmse(), both.difference.max_error()),
        (0.5, 1.0)
    );
    assert_eq!(all.compared[1].difference.max_error(), 3.0);
    assert_eq!(all.compared[2].difference.rmse(), 0.0);
    assert_eq!(all.alone.each_ref().map(|n| n.join(" ")), ["left", "right"]);
    assert_eq!((&*all.misshapen[0].0, all.misshapen.len()), ("shape", 1));
    assert_eq!((&*all.opaque[0].0, all.opaque.len()), ("wide", 1));
    assert_eq!(heard.last().unwrap().1, heard[0].2);
    let shown = all.to_string();
    assert!(
        shown.contains("only in the second file") && shown.contains("cannot be decoded"),
        "{shown}"
    );
    assert_eq!(all.to_json()["tensors"][0]["rmse"], 0.5);
}

#[test]
fn a_model_is_like_itself_and_unlike_the_other_recipe() {
    let engine = |file: &str| {
        let mut options = Options::default();
        options.prefill_rows = 32;
        Engine::open(format!("{ASSETS}/{file}"), options).unwrap()
    };
    let (native, strix) = (engine("ds4-demo.gguf"), engine("ds4-demo-strix.gguf"));
    let go = |_: usize, _: usize| ControlFlow::Continue(());
    let same = text(&native, &native, TEXT, &TextOptions::default(), go).unwrap();
    assert_eq!((same.divergence_max, same.same_top), (0.0, 1.0));
    assert_eq!(same.perplexity[0], same.perplexity[1]);
    let tokens = native
        .tokenizer()
        .encode(TEXT, ds4_model::tokenizer::Special::None)
        .len();
    assert_eq!(same.positions, tokens - 1);
    let other = text(&native, &strix, TEXT, &TextOptions::default(), go).unwrap();
    assert!(
        other.divergence_mean > 0.0 && other.divergence_p99 <= other.divergence_max,
        "{other}"
    );
    assert_eq!(other.perplexity[0], same.perplexity[0]);
    // Pieces of a timeline of their own lose what was before them.
    let mut short = TextOptions::default();
    short.chunk = 5;
    let pieces = text(&native, &strix, TEXT, &short, go).unwrap();
    assert_eq!(
        pieces.positions,
        tokens / 5 * 4 + (tokens % 5).saturating_sub(1)
    );

    let few = text(&native, &strix, "x", &TextOptions::default(), go).unwrap_err();
    assert!(matches!(few, CompareError::Short { found: 1 }), "{few}");
    let stop = text(
        &native,
        &strix,
        &TEXT.repeat(4),
        &TextOptions::default(),
        |_, _| ControlFlow::Break(()),
    );
    assert!(matches!(stop, Err(CompareError::Stopped)));
}
