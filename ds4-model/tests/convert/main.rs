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
use ds4_quant::{Difference, NonFinite, Pool};

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

/// The experts of the demo model were trained on the lattices of IQ2_XXS and Q2_K. Decoded and rounded to half
/// precision, as the checkpoint had them, they encode to the blocks they came from, or to others that are as near;
/// importance need not be measured.
#[test]
fn the_experts_of_the_demo_model_are_found_again() {
    let source = Gguf::open(demo()).unwrap();
    let (mut blocks_seen, mut others) = (0, 0);
    for info in source
        .tensors()
        .iter()
        .filter(|info| info.name.contains("_exps."))
    {
        let (ty, block) = (info.ty, info.ty.block_bytes());
        assert!(matches!(ty, TensorType::Iq2Xxs | TensorType::Q2K), "{ty}");
        let codec = ds4_quant::codec(ty).unwrap();
        let packed = source.tensor(&info.name).unwrap().bytes;
        let mut all = Difference::default();
        for trained in packed.chunks_exact(block) {
            let (mut levels, mut found, mut y) = ([0.0; 256], vec![0; block], [0.0; 256]);
            codec.decode(trained, &mut levels).unwrap();
            let x = levels.map(|x| half::f16::from_f32(x).to_f32());
            codec.encode(&x, Some(&[1.0; 256]), &mut found).unwrap();
            codec.decode(&found, &mut y).unwrap();
            all.add(&x, &y, None).unwrap();
            blocks_seen += 1;
            if found != trained {
                others += 1;
                let error = |y: &[f32]| -> f64 {
                    x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum()
                };
                assert!(error(&y) <= error(&levels), "{}", info.name);
            }
        }
        // Half a unit in the last place of a half float: 2^-11 of a weight.
        assert!(
            all.relative_rmse() < 2f64.powi(-11),
            "{}: {}",
            info.name,
            all.relative_rmse()
        );
    }
    println!("{others} of {blocks_seen} blocks have other bytes");
    assert!(blocks_seen == 7 * 3 * 16 * 256 && others <= 16, "{others}");
}
