//! Two files side by side.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::ops::ControlFlow;

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use ds4_model::compare::{CompareError, tensors, text};
use ds4_model::{Engine, Error, Options, Reading};
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
    let same = text(&native, &native, TEXT, &Reading::default(), go).unwrap();
    assert_eq!((same.divergence_max, same.same_top), (0.0, 1.0));
    assert_eq!(same.perplexity[0], same.perplexity[1]);
    let tokens = native
        .tokenizer()
        .encode(TEXT, ds4_model::tokenizer::Special::None)
        .len();
    assert_eq!(same.positions, tokens - 1);
    let other = text(&native, &strix, TEXT, &Reading::default(), go).unwrap();
    assert!(
        other.divergence_mean > 0.0 && other.divergence_p99 <= other.divergence_max,
        "{other}"
    );
    assert_eq!(other.perplexity[0], same.perplexity[0]);
    // Pieces of a timeline of their own lose what was before them.
    let mut short = Reading::default();
    short.chunk = 5;
    let pieces = text(&native, &strix, TEXT, &short, go).unwrap();
    assert_eq!(
        pieces.positions,
        tokens / 5 * 4 + (tokens % 5).saturating_sub(1)
    );

    let few = text(&native, &strix, "x", &Reading::default(), go).unwrap_err();
    assert!(
        matches!(few, CompareError::Model(Error::Text { found: 1, .. })),
        "{few}"
    );
    short.chunk = 1;
    let alone = text(&native, &strix, TEXT, &short, go).unwrap_err();
    assert!(
        matches!(
            alone,
            CompareError::Model(Error::Option {
                option: "chunk",
                found: 1,
                ..
            })
        ),
        "{alone}"
    );
    let stop = text(
        &native,
        &strix,
        &TEXT.repeat(4),
        &Reading::default(),
        |_, _| ControlFlow::Break(()),
    );
    assert!(matches!(stop, Err(CompareError::Stopped)));
}

#[test]
fn logits_that_are_no_numbers_are_an_error_that_names_model_and_position() {
    let demo = Gguf::open(format!("{ASSETS}/ds4-demo.gguf")).unwrap();
    let output = demo.tensor("output.weight").unwrap();
    let (info, shard) = (output.info, &demo.shards()[0]);
    assert_eq!(info.ty, TensorType::Q8_0);
    let row = output.bytes.len() / info.dims.rows() as usize;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.gguf");
    for (scale, token) in [(half::f16::NAN, 77), (half::f16::INFINITY, 5)] {
        let mut bytes = shard.bytes().to_vec();
        // The scale of the token's first block.
        let at = output.bytes.as_ptr().addr() - shard.bytes().as_ptr().addr() + token * row;
        bytes[at..at + 2].copy_from_slice(&scale.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        let open = |gguf: &Gguf| Engine::from_gguf(gguf.clone(), Options::default()).unwrap();
        let (whole, broken) = (open(&demo), open(&Gguf::open(&path).unwrap()));
        let go = |_: usize, _: usize| ControlFlow::Continue(());
        for [a, b] in [[&whole, &broken], [&broken, &whole]] {
            let error = text(a, b, TEXT, &Reading::default(), go).unwrap_err();
            let CompareError::Logit {
                model,
                position,
                token: found,
                value,
            } = &error
            else {
                panic!("{error}")
            };
            assert!(model.ends_with("broken.gguf"), "{error}");
            assert_eq!((*position, *found as usize), (0, token), "{error}");
            assert!(!value.is_finite());
        }
    }
}

#[test]
fn weights_that_are_no_numbers_are_never_equal() {
    let x = |at: usize, value| {
        let mut x = vec![1.0; 64 * 64];
        x[at] = value;
        file(&[("a", &[64, 64], TensorType::F32, f32s(&x))])
    };
    let pool = Pool::new(2).unwrap();
    let go = |_: &str, _, _| ControlFlow::Continue(());
    for at in [0, 70, 64 * 64 - 1] {
        let all = tensors(&x(at, f32::NAN), &x(at, f32::NAN), &pool, go).unwrap();
        let difference = &all.compared[0].difference;
        assert!(difference.max_error().is_nan() && difference.rmse().is_nan());
        let json = &all.to_json()["tensors"][0];
        assert!(json["max_error"].is_null() && json["rmse"].is_null() && json["cosine"].is_null());
        assert!(all.to_string().contains("max NaN"), "{all}");
    }
}
