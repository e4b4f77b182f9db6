//! `ds4 convert`.

use std::io::Write;

use anyhow::Result;
use ds4_model::convert::{Checkpoint, ConvertOptions, Dialect};
use ds4_quant::quantize::Quantize;

use crate::args::{self, Readers};
use crate::quantize;

pub(crate) fn run(args: &args::Convert) -> Result<()> {
    let options = ConvertOptions {
        name: args.name.clone(),
        dialect: match args.dialect {
            Readers::Ds4 => Dialect::Ds4,
            Readers::LlamaCpp => Dialect::LlamaCpp,
        },
    };
    let recipe = options.dialect.recipe(&quantize::recipe(&args.recipe)?);
    let checkpoint = Checkpoint::open(&args.folder, &options)?;
    for name in checkpoint.unused() {
        writeln!(
            std::io::stderr(),
            "warning: `{name}` has no place in the result"
        )?;
    }
    let matrix = quantize::imatrix(&args.encoding)?;
    let work = Quantize::new(&checkpoint, &recipe, quantize::importance(&matrix))?;
    quantize::carry_out(
        &work,
        "convert",
        args.output.as_deref(),
        &args.encoding,
        args.json,
    )
}
