//! Checkpoints made from models that are known, converted back.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod hf;
mod hostile;
mod packed;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/ds4-demo.gguf")
}

/// Everything as it is; vectors too, which a rule would make F32.
fn keep() -> Recipe {
    Recipe::from_toml("[[rule]]\ntype = \"keep\"").unwrap()
}

fn convert(
    folder: &Path,
    options: &ConvertOptions,
    recipe: &Recipe,
) -> Result<Gguf, QuantizeError> {
    let checkpoint = Checkpoint::open(folder, options).unwrap();
    assert_eq!(checkpoint.unused(), [""; 0]);
    let work = Quantize::new(&checkpoint, &options.dialect.recipe(recipe), None)?;
    let go = |_: ds4_quant::quantize::Progress<'_>| ControlFlow::Continue(());
    let (bytes, _) = work.run(&Pool::new(2).unwrap(), NonFinite::Refuse, Vec::new(), go)?;
    assert_eq!(bytes.len() as u64, work.file_bytes());
    Ok(Gguf::from_vec(bytes).unwrap())
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
        let folder = tempfile::tempdir().unwrap();
        hf::write(folder.path(), &source, &hf::tensors(&source, names), shards);
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
    let folder = tempfile::tempdir().unwrap();
    hf::write(
        folder.path(),
        &source,
        &hf::tensors(&source, Names::Published),
        1,
    );
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

/// The experts of the demo model were trained on the lattices of IQ2_XXS and Q2_K. Decoded and rounded to half
/// precision, as the checkpoint had them, they encode to the blocks they came from; importance need not be measured.
#[test]
fn the_experts_of_the_demo_model_are_found_again() {
    let source = Gguf::open(demo()).unwrap();
    for (name, ty) in [
        ("blk.0.ffn_gate_exps.weight", TensorType::Iq2Xxs),
        ("blk.4.ffn_up_exps.weight", TensorType::Iq2Xxs),
        ("blk.2.ffn_down_exps.weight", TensorType::Q2K),
        ("blk.6.ffn_down_exps.weight", TensorType::Q2K),
    ] {
        let tensor = source.tensor(name).unwrap();
        assert_eq!(tensor.info.ty, ty);
        let halves = hf::f32s(&source, name);
        let x: Vec<f32> = halves
            .iter()
            .map(|&x| half::f16::from_f32(x).to_f32())
            .collect();
        let cols = tensor.info.dims.cols() as usize;
        let ones = vec![1.0; cols];
        let mut blocks = vec![0; tensor.bytes.len()];
        let row = blocks.len() / (x.len() / cols);
        let codec = ds4_quant::codec(ty).unwrap();
        let mut difference = ds4_quant::Difference::default();
        let mut y = vec![0.0; cols];
        for (x, blocks) in x.chunks_exact(cols).zip(blocks.chunks_exact_mut(row)) {
            codec.encode(x, Some(&ones), blocks).unwrap();
            codec.decode(blocks, &mut y).unwrap();
            difference.add(x, &y, Some(&ones)).unwrap();
        }
        // Half a unit in the last place of the half floats that the checkpoint stores: 2^-11 of a weight.
        assert!(
            difference.relative_rmse() < 2f64.powi(-11),
            "{name}: {}",
            difference.relative_rmse()
        );
        let same = blocks
            .chunks(row)
            .zip(tensor.bytes.chunks(row))
            .filter(|(a, b)| a == b)
            .count();
        println!(
            "{name}: {same} of {} rows have the same bytes, relative error {:.2e}",
            x.len() / cols,
            difference.relative_rmse()
        );
    }
}
