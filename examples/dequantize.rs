//! One tensor as raw 32-bit floats, little endian, in file order.
//!
//! ```text
//! cargo run --example dequantize -- model.gguf blk.0.attn_q_a.weight --out weights.f32
//! ```
//! Rows are decoded one at a time, so a tensor larger than memory is no problem.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use ds4_gguf::Gguf;

#[derive(Parser)]
struct Args {
    /// The model.
    file: PathBuf,
    /// Name of the tensor; the example `inspect` lists them.
    tensor: String,
    /// Where the floats go.
    #[arg(long)]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let gguf = Gguf::open(&args.file)?;
    let tensor = gguf.tensor(&args.tensor)?;
    let (ty, dims) = (tensor.info.ty, tensor.info.dims);
    let codec =
        ds4_quant::codec(ty).with_context(|| format!("`{}`: no codec for {ty}", args.tensor))?;

    let row_bytes = usize::try_from(ty.row_bytes(dims.cols())?)?;
    let mut row = vec![0f32; usize::try_from(dims.cols())?];
    let mut out =
        BufWriter::new(File::create(&args.out).with_context(|| args.out.display().to_string())?);
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for packed in tensor.bytes.chunks_exact(row_bytes) {
        codec.decode(packed, &mut row)?;
        for &w in &row {
            out.write_all(&w.to_le_bytes())?;
            (least, most) = (least.min(w), most.max(w));
        }
    }
    out.flush()?;
    println!(
        "{}: {dims} of {ty}, {} weights from {least} to {most}",
        args.tensor,
        dims.elements()
    );
    Ok(())
}
