//! `cargo xtask synthetic`: the first layers of V4-Flash in its true dimensions, filled with random weights.
//!
//! About 1.9 GB a layer and 1.6 GB besides. The file is for measuring speed: its tensors have the sizes, types and value ranges of the
//! published recipe (IQ2_XXS gate and up, Q2_K down, Q8_0 dense, F16 rest), its answers mean nothing. The same
//! arguments always give the same bytes.

mod fill;
mod flash;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ds4_gguf::{Plan, Writer};

/// What to generate.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Layers, from the first; 4 have every kind of attention.
    #[arg(long, default_value_t = 4)]
    layers: u32,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Write the file and say how large it became.
pub(crate) fn run(args: &Args) -> Result<()> {
    let bytes = write(&args.out, args.layers)?;
    println!(
        "{}: {} layer(s), {:.2} GB",
        args.out.display(),
        args.layers,
        bytes as f64 / 1e9
    );
    Ok(())
}

/// The file of `layers` layers below `folder`, generated unless it is there already.
pub(crate) fn cached(folder: &Path, layers: u32) -> Result<PathBuf> {
    let path = folder.join(format!("synthetic-flash-{layers}-v{}.gguf", fill::VERSION));
    if !path.exists() {
        println!("  generating {}", path.display());
        write(&path, layers)?;
    }
    Ok(path)
}

/// Write the file under a temporary name, then rename it; its size in bytes.
fn write(path: &Path, layers: u32) -> Result<u64> {
    ensure!(
        (1..=flash::LAYERS).contains(&layers),
        "{layers} layers, expected 1 to {}",
        flash::LAYERS
    );
    let tensors = flash::tensors(layers);
    let mut plan = Plan::new(flash::metadata(layers))?;
    for tensor in &tensors {
        plan.add(&tensor.name, &tensor.dims, tensor.content.ty())?;
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let partial = path.with_extension("partial");
    let file =
        File::create(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, file), plan)?;
    let bytes = writer.file_bytes();
    let mut piece = vec![0; fill::PIECE];
    for tensor in &tensors {
        let mut filler = fill::Filler::new(tensor);
        while let Some(filled) = filler.next(&mut piece) {
            writer.write(filled)?;
        }
    }
    writer.finish()?;
    fs::rename(&partial, path).with_context(|| format!("cannot rename {}", partial.display()))?;
    Ok(bytes)
}
