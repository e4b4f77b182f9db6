//! What a weight matrix loses in few bits: one tensor, packed into several types, and the error of each.
//!
//! ```text
//! cargo run --release --example quantize -- [model.gguf [blk.0.attn_q_b.weight]]
//! ```
//! Importance says how much an error in each input column costs; `ds4 imatrix` measures it. Here every column counts
//! the same.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::time::Instant;

use anyhow::Context;
use clap::Parser;
use ds4_examples::DEMO_MODEL;
use ds4_gguf::{Gguf, TensorType};
use ds4_quant::{Difference, Pool, codec, encode_rows};

#[derive(Parser)]
struct Args {
    /// The model.
    #[arg(default_value = DEMO_MODEL)]
    file: String,
    /// Name of the tensor; the example `inspect` lists them.
    #[arg(default_value = "output.weight")]
    tensor: String,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let gguf = Gguf::open(&args.file)?;
    let tensor = gguf.tensor(&args.tensor)?;
    let (from, dims) = (tensor.info.ty, tensor.info.dims);
    let cols = usize::try_from(dims.cols())?;
    let mut weights = vec![0f32; usize::try_from(dims.elements())?];
    codec(from)
        .with_context(|| format!("no codec for {from}"))?
        .decode(tensor.bytes, &mut weights)?;
    println!("{}: {dims} of {from}\n", args.tensor);
    println!("type                bits  relative RMSE   cosine   M weights/s");

    let pool = Pool::new(0)?;
    let importance = vec![1.0; cols];
    for ty in [
        TensorType::Q8_0,
        TensorType::Q4K,
        TensorType::RocmFp4Fast,
        TensorType::RocmFp3,
        TensorType::Q2K,
        TensorType::RocmFp2TwoScale,
        TensorType::RocmFp2S40,
        TensorType::Iq2Xxs,
    ] {
        let Ok(row_bytes) = ty.row_bytes(dims.cols()) else {
            println!("{:<18} rows of {cols} do not fit its blocks", ty.name());
            continue;
        };
        let mut blocks = vec![0; weights.len() / cols * usize::try_from(row_bytes)?];
        let start = Instant::now();
        encode_rows(&pool, ty, cols, &weights, Some(&importance), &mut blocks)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut back = vec![0f32; weights.len()];
        codec(ty)
            .context("it encodes")?
            .decode(&blocks, &mut back)?;
        let mut difference = Difference::default();
        difference.add(&weights, &back, None)?;
        println!(
            "{:<18} {:>5.2}  {:>13.4}  {:>7.4}  {:>12.1}",
            ty.name(),
            8.0 * blocks.len() as f64 / weights.len() as f64,
            difference.relative_rmse(),
            difference.cosine(),
            weights.len() as f64 / seconds / 1e6
        );
    }
    Ok(())
}
