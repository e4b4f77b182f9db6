//! `cargo xtask demo-model`: the two demo models again, from what was trained.
//!
//! The parts are put together to a Hugging Face checkpoint in `target/demo-model`, and that is converted as any other
//! checkpoint is: once by the recipe `native` and once by `strix`. The same parts give the same bytes.

mod assemble;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use ds4_model::convert::{Checkpoint, ConvertOptions};
use ds4_quant::quantize::{Importance, Quantize, Source};
use ds4_quant::recipe::Recipe;
use ds4_quant::{Imatrix, NonFinite, Pool};

/// Recipes, and the files they give.
const FILES: [(&str, &str); 2] = [
    ("native", "ds4-demo.gguf"),
    ("strix", "ds4-demo-strix.gguf"),
];

/// Where from and where to.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder with dense.safetensors, experts_blocks.safetensors, config.json and tokenizer.json.
    #[arg(long, value_name = "FOLDER")]
    source: PathBuf,
    /// Where the models go.
    #[arg(long, value_name = "FOLDER", default_value = "assets")]
    out: PathBuf,
    /// Write nothing there: fail when a model differs from the one that is there.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let folder = root.join("target/demo-model");
    assemble::assemble(&args.source, &folder)?;
    let options = ConvertOptions {
        name: Some("ds4 demo".to_owned()),
        ..ConvertOptions::default()
    };
    let checkpoint = Checkpoint::open(&folder, &options)?;
    let ones = ones(&checkpoint)?;
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    for (recipe, file) in FILES {
        let made = folder.join(file);
        make(&checkpoint, recipe, &ones, &made)?;
        let there = args.out.join(file);
        if args.check {
            let same = fs::read(&made)?
                == fs::read(&there).with_context(|| there.display().to_string())?;
            ensure!(same, "{} is not what its parts give", there.display());
            println!("{} is what its parts give", there.display());
        } else {
            copy(&made, &there).with_context(|| there.display().to_string())?;
            println!("{}", there.display());
        }
    }
    Ok(())
}

fn make(checkpoint: &Checkpoint, recipe: &str, ones: &Imatrix, path: &Path) -> Result<()> {
    let demanded = recipe == "native";
    let importance = demanded.then_some(Importance {
        matrix: ones,
        file: "none: all ones",
    });
    let work = Quantize::new(checkpoint, &Recipe::named(recipe)?, importance)?;
    let report = work.write(&Pool::new(0)?, NonFinite::Refuse, path, true, |_| {
        ControlFlow::Continue(())
    })?;
    for changed in report.tensors.iter().filter(|c| c.error.rmse() > 0.0) {
        println!("{changed}");
    }
    println!("{recipe}: {} bytes", work.file_bytes());
    Ok(())
}

/// The same importance for all columns of the routed experts. Their weights are points of the lattice: whatever the
/// importance, the blocks that they came from are the best.
fn ones(checkpoint: &Checkpoint) -> Result<Imatrix> {
    let mut ones = Imatrix::default();
    let experts = |name: &str| name.contains("_exps.");
    for info in checkpoint
        .tensors()
        .iter()
        .filter(|info| experts(&info.name))
    {
        ones.insert(&info.name, vec![1.0; usize::try_from(info.dims.cols())?])?;
    }
    Ok(ones)
}

/// By way of another name: a reader of the old file keeps it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_extension("partial");
    fs::copy(from, &partial)?;
    fs::rename(&partial, to)
}
