//! A whole file from MXFP4 to Q2_K: down experts get smaller, everything else is copied byte for byte.
//!
//! ```text
//! cargo run --release --example requantize -- [model.gguf] --out smaller.gguf
//! ```
//! Without a model the demo model is brought to MXFP4 first. `ds4 requant --in-place` does the same to the file itself.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Parser;
use ds4_examples::DEMO_MODEL;
use ds4_gguf::Gguf;
use ds4_quant::quantize::{Progress, Quantize};
use ds4_quant::recipe::Recipe;
use ds4_quant::{NonFinite, Pool};

#[derive(Parser)]
struct Args {
    /// A model with down experts of type MXFP4 or IQ3_XXS.
    file: Option<PathBuf>,
    /// The new file.
    #[arg(long)]
    out: PathBuf,
}

/// What brings the demo model to MXFP4. The first rule that matches a tensor decides.
const TO_MXFP4: &str = r#"
[[rule]]
role = "routed experts"
tensor = "*ffn_down_exps.weight"
type = "MXFP4"
"#;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let pool = Pool::new(0)?;
    // Called for every chunk of rows; a program with a bar would move it here, and `Break` stops the work.
    let go_on = |_: Progress<'_>| ControlFlow::Continue(());
    let source = match &args.file {
        Some(file) => Gguf::open(file)?,
        None => {
            let demo = Gguf::open(DEMO_MODEL)?;
            let work = Quantize::new(&demo, &Recipe::from_toml(TO_MXFP4)?, None)?;
            let (bytes, _) = work.run(&pool, NonFinite::Refuse, Vec::new(), go_on)?;
            Gguf::from_vec(bytes)?
        }
    };
    let before: u64 = source.tensors().iter().map(|t| t.extent.bytes).sum();

    let work = Quantize::new(&source, &Recipe::named("q2k-down")?, None)?;
    let report = work.write(&pool, NonFinite::Refuse, &args.out, true, go_on)?;
    for changed in &report.tensors {
        println!("{changed}");
    }
    println!(
        "{} tensors changed, {} copied; {before} bytes of tensors became a file of {}",
        report.tensors.len(),
        report.copied,
        work.file_bytes()
    );
    Ok(())
}
