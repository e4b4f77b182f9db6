//! Checkpoints made from models that are known, converted back.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod hf;
mod hostile;
mod lattice;
mod packed;
mod settings;
mod vocabulary;

use std::ops::ControlFlow;
use std::path::Path;

use ds4_gguf::{Gguf, TensorType};
use ds4_model::arch::deepseek4::CacheRounding;
use ds4_model::convert::{Checkpoint, ConvertOptions, Dialect};
use ds4_model::{Engine, Logits, NoTap, Options, Precision, Token};
use ds4_quant::quantize::{Quantize, QuantizeError};
use ds4_quant::recipe::Recipe;
use ds4_quant::{NonFinite, Pool};

use hf::Names;

fn tiny(name: &str) -> Gguf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/deepseek-v4");
    Gguf::open(folder.join(format!("{name}.gguf"))).unwrap()
}

/// Everything as it is.
fn keep() -> Recipe {
    Recipe::from_toml("[[rule]]\ntype = \"keep\"").unwrap()
}

/// A checkpoint of `source` with these tensors.
fn checkpoint(source: &Gguf, tensors: &[hf::Tensor], shards: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    hf::write(folder.path(), source, tensors, shards);
    folder
}

fn convert(
    folder: &Path,
    options: &ConvertOptions,
    recipe: &Recipe,
) -> Result<Gguf, QuantizeError> {
    let bytes = bytes(folder, options, recipe, NonFinite::Refuse, 2)?;
    Ok(Gguf::from_vec(bytes).unwrap())
}

fn bytes(
    folder: &Path,
    options: &ConvertOptions,
    recipe: &Recipe,
    nonfinite: NonFinite,
    threads: usize,
) -> Result<Vec<u8>, QuantizeError> {
    let checkpoint = Checkpoint::open(folder, options).unwrap();
    assert_eq!(checkpoint.unused(), [""; 0]);
    let work = Quantize::new(&checkpoint, &options.dialect.recipe(recipe), None)?;
    let go = |_: ds4_quant::quantize::Progress<'_>| ControlFlow::Continue(());
    let (bytes, _) = work.run(&Pool::new(threads).unwrap(), nonfinite, Vec::new(), go)?;
    assert_eq!(bytes.len() as u64, work.file_bytes());
    Ok(bytes)
}

fn logits(gguf: Gguf) -> Vec<u32> {
    let mut options = Options::default();
    options.precision = Precision::Exact;
    options.rounding = CacheRounding::None;
    options.threads = 1;
    let engine = Engine::from_gguf(gguf, options).unwrap();
    let vocab = engine.config().vocab as Token;
    let tokens: Vec<Token> = (0..200).map(|i| i * 37 % vocab).collect();
    let mut out = Vec::new();
    let mut see = |rows: &[f32]| out.extend(rows.iter().map(|x| x.to_bits()));
    let mut session = engine.session().unwrap();
    session
        .run(&tokens, Logits::All, &mut NoTap, &mut see)
        .unwrap();
    out
}

/// Names, shards and dialect change nothing in the weights, and the result runs to the last bit as what it was made from.
#[test]
fn a_checkpoint_made_from_a_file_gives_the_file_back() {
    for (model, names, shards) in [
        ("tiny-f32", Names::Transformers, 1),
        ("tiny-f16", Names::Transformers, 3),
        ("tiny-f16", Names::Published, 4),
    ] {
        let source = tiny(model);
        let folder = checkpoint(&source, &hf::tensors(&source, names), shards);
        let result = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap();
        assert_eq!(result.tensors().len(), source.tensors().len());
        for info in source.tensors() {
            let (got, want) = (
                result.tensor(&info.name).unwrap(),
                source.tensor(&info.name).unwrap(),
            );
            assert_eq!(
                (got.info.ty, got.info.dims),
                (info.ty, info.dims),
                "{}",
                info.name
            );
            assert!(got.bytes == want.bytes, "{}", info.name);
        }
        for (key, want) in source.metadata().iter() {
            let derived = ["general.", "deepseek4.nextn"]
                .iter()
                .any(|p| key.starts_with(p));
            if !derived {
                let got = result
                    .metadata()
                    .value(key)
                    .unwrap_or_else(|| panic!("{key}"));
                assert_eq!(got.to_string(), want.to_string(), "{key}");
            }
        }
        assert_eq!(logits(result), logits(source));
    }
}

#[test]
fn the_dialect_of_llama_cpp_has_its_types_and_the_same_logits() {
    let source = tiny("tiny-f16");
    let folder = checkpoint(&source, &hf::tensors(&source, Names::Published), 1);
    let options = ConvertOptions {
        dialect: Dialect::LlamaCpp,
        ..ConvertOptions::default()
    };
    let result = convert(folder.path(), &options, &keep()).unwrap();
    let ty = |name: &str| result.tensor(name).unwrap().info.ty;
    assert_eq!(ty("blk.0.hc_attn_fn.weight"), TensorType::F32);
    assert_eq!(ty("blk.0.attn_compressor_ape.weight"), TensorType::F32);
    assert_eq!(ty("blk.1.ffn_gate_inp.weight"), TensorType::F32);
    assert_eq!(ty("blk.1.attn_q_a.weight"), TensorType::F16);
    assert!(result.metadata().value("deepseek4.vocab_size").is_none());
    assert_eq!(logits(result), logits(source));
}

#[test]
fn the_same_checkpoint_gives_the_same_bytes_for_any_number_of_threads() {
    let source = tiny("tiny-q2");
    let mut tensors = hf::tensors(&source, Names::Published);
    let mut walk = packed::Walk(5);
    for (name, four) in [
        ("layers.0.ffn.shared_experts.w1.weight", false),
        ("layers.1.ffn.shared_experts.w2.weight", true),
    ] {
        packed::pack(&mut tensors, name, four, false, &mut walk);
    }
    let folder = checkpoint(&source, &tensors, 2);
    let options = ConvertOptions {
        name: Some("tiny".into()),
        ..ConvertOptions::default()
    };
    for recipe in [Recipe::named("q4k").unwrap(), keep()] {
        let made =
            |threads| bytes(folder.path(), &options, &recipe, NonFinite::Refuse, threads).unwrap();
        let one = made(1);
        for threads in [1, 2, 3] {
            assert!(
                made(threads) == one,
                "{} with {threads} threads",
                recipe.name()
            );
        }
    }
}

/// F16 and BF16 fit into F32, so nothing is lost; no reader expects norms, biases or scales in another type.
#[test]
fn vectors_are_f32_under_every_recipe_in_both_dialects() {
    let source = tiny("tiny-f16");
    let mut tensors = hf::tensors(&source, Names::Published);
    let mut want = Vec::new();
    for (name, ours, dtype) in [
        ("layers.0.attn_norm.weight", "blk.0.attn_norm.weight", "F16"),
        ("layers.1.ffn.gate.bias", "blk.1.exp_probs_b.bias", "BF16"),
        ("hc_head_scale", "output_hc_scale.weight", "BF16"),
    ] {
        let t = tensors.iter_mut().find(|t| t.name == name).unwrap();
        assert_eq!(t.dtype, "F32");
        let exact: Vec<f32> = hf::f32s(&source, ours)
            .into_iter()
            .map(|x| half::bf16::from_f32(x).to_f32())
            .collect();
        let halves = exact.iter().map(|&x| match dtype {
            "F16" => half::f16::from_f32(x).to_le_bytes(),
            _ => half::bf16::from_f32(x).to_le_bytes(),
        });
        (t.dtype, t.bytes) = (dtype, halves.flatten().collect());
        want.push((ours, exact));
    }
    let folder = checkpoint(&source, &tensors, 1);
    for dialect in [Dialect::Ds4, Dialect::LlamaCpp] {
        for recipe in [keep(), Recipe::from_toml("").unwrap()] {
            let options = ConvertOptions {
                dialect,
                ..ConvertOptions::default()
            };
            let result = convert(folder.path(), &options, &recipe).unwrap();
            for (name, want) in &want {
                let ty = result.tensor(name).unwrap().info.ty;
                assert_eq!(ty, TensorType::F32, "{name}, {dialect:?}");
                assert_eq!(&hf::f32s(&result, name), want, "{name}, {dialect:?}");
            }
            let mut vectors = result.tensors().iter().filter(|info| info.dims.rows() == 1);
            assert!(vectors.all(|info| info.ty == TensorType::F32));
        }
    }
}
