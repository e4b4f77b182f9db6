//! A Hugging Face checkpoint of DeepSeek-V4 → GGUF.
//!
//! [`Checkpoint::open`] reads what is small: `config.json`, `tokenizer.json`, `generation_config.json` and the chat template
//! when they are there, and the directories of all safetensors files. It names everything that is missing or misshapen at
//! once. The checkpoint is then a [`Source`] of rows for [`ds4_quant::quantize::Quantize`], which decides types by a
//! recipe and streams the result, a few megabytes at a time, to a file that appears when it is whole. An error, or a caller
//! that asks to stop (Ctrl-C in `ds4 convert`), removes what was written: there is nothing to resume, the next run begins
//! anew. Only a kill or a power loss leaves `NAME.partial` behind, which the next run replaces.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use ds4_model::convert::{Checkpoint, ConvertOptions};
//! use ds4_quant::quantize::Quantize;
//! use ds4_quant::recipe::Recipe;
//! use ds4_quant::{NonFinite, Pool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ConvertOptions::default();
//! let checkpoint = Checkpoint::open("DeepSeek-V4-Flash".as_ref(), &options)?;
//! let recipe = options.dialect.recipe(&Recipe::named("q4k")?);
//! let work = Quantize::new(&checkpoint, &recipe, None)?;
//! println!("{} bytes", work.file_bytes());
//! work.write(&Pool::new(0)?, NonFinite::Refuse, "flash.gguf".as_ref(), false, |_| ControlFlow::Continue(()))?;
//! # Ok(()) }
//! ```
//!
//! What a recipe sees as the type of a tensor is the form that its weights have no loss in:
//!
//! | in the checkpoint | scales | type |
//! |---|---|---|
//! | F32, F16, BF16 | none | the same; F32 if it is a vector |
//! | F8_E4M3 | F8_E8M0, one for 128 × 128 weights | BF16 |
//! | F8_E4M3 | F32, one for 128 × 128 weights | F32 |
//! | two E2M1 a byte (F4, I8 or U8) | powers of two, one for 32 weights of a row | MXFP4 |
//! | I32, I64 | none | I32 |
//!
//! A rule that keeps the routed experts keeps them without loss, and vectors are F32 under any rule. FP8 is exact but for
//! scales below 2^−124, under which the last bits of a weight may lie below the smallest BF16. A table that routes tokens
//! must hold numbers of experts. Sources: huggingface/safetensors:README.md (Format);
//! ggml-org/llama.cpp:conversion/deepseek.py; OCP 8-bit Floating Point 1.0; OCP Microscaling Formats 1.0.

mod error;
mod find;
mod layers;
mod names;
mod part;
mod read;
mod rotary;
mod safetensors;
mod settings;
mod shards;
mod vocabulary;

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use ds4_gguf::{Gguf, Metadata, Plan, TensorInfo, Writer};
use ds4_quant::quantize::{Source, SourceError};
use ds4_quant::recipe::Recipe;
use serde_json::{Map, Value as Json};

pub use error::{ConvertError, Problem, Shape};
pub use safetensors::Dtype;

use self::find::Found;
use self::names::{Kind, Want};
use self::part::Part;
use self::settings::Settings;
use self::shards::Shards;
use crate::config::Config;

/// Problems after which looking for more is of no use.
const MANY: usize = 1000;

/// Which readers a file is made for. Both read either; they differ in what they expect to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// antirez/ds4: all sizes are in the metadata, and every tensor has the type that the recipe says.
    #[default]
    Ds4,
    /// ggml-org/llama.cpp: the vocabulary counts itself; routers, the matrices of hyper-connections, position terms of
    /// compressors and head weights of the indexer are F32 in every recipe.
    LlamaCpp,
}

impl Dialect {
    /// `recipe` with what the dialect insists on.
    ///
    /// # Panics
    /// Never: the rules are part of this file.
    pub fn recipe(self, recipe: &Recipe) -> Recipe {
        const F32: &str = r#"
            [[rule]]
            tensor = "{blk.*.hc_*_fn,output_hc_fn,blk.*_ape,blk.*.ffn_gate_inp,blk.*.indexer.proj}.weight"
            type = "F32"
        "#;
        match self {
            Self::Ds4 => recipe.clone(),
            Self::LlamaCpp => Recipe::from_toml(F32)
                .expect("the rule is valid: a test reads it")
                .before(recipe),
        }
    }
}

/// Choices made when a checkpoint is opened.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// `general.name`; by default the name of the folder.
    pub name: Option<String>,
    /// Whose files the result is like.
    pub dialect: Dialect,
}

/// An opened checkpoint: rows of every tensor that the result will have.
#[derive(Debug)]
pub struct Checkpoint {
    shards: Shards,
    metadata: Metadata,
    infos: Vec<TensorInfo>,
    /// For each tensor, its matrices, all of the same number of rows.
    parts: Vec<Vec<Part>>,
    unused: Vec<String>,
}

impl Checkpoint {
    /// Open the checkpoint in `folder`.
    ///
    /// # Errors
    /// [`ConvertError`] names the file. Tensors that are missing or wrong are all in one [`ConvertError::Tensors`].
    pub fn open(folder: &Path, options: &ConvertOptions) -> Result<Self, ConvertError> {
        let path = folder.join("config.json");
        let json: Map<String, Json> = read::json(&path)?.ok_or_else(|| ConvertError::Io {
            path: path.clone(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let settings = Settings::new(&json);
        let tied = settings.tied();
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", "deepseek4");
        metadata.set("general.name", name(folder, options));
        metadata.set("general.type", "model");
        // Where the number that says how it is quantized will be.
        metadata.set("general.file_type", 0u32);
        settings
            .write(&mut metadata)
            .map_err(|fields| ConvertError::Settings {
                path: path.clone(),
                fields,
            })?;
        let config = config(&metadata, &path)?;
        let shards = Shards::open(folder)?;
        let mut found = Found::new(&shards, config.experts);
        let mut tensors = Vec::new();
        for want in names::wanted(&config, tied) {
            match found.parts(&want) {
                Some(parts) => tensors.push((want, parts)),
                None if found.problems.len() > MANY => break,
                None => {}
            }
        }
        if !found.problems.is_empty() {
            return Err(ConvertError::Tensors {
                folder: folder.to_owned(),
                problems: found.problems,
            });
        }
        // After the weights: the embedding has as many rows as the vocabulary is made long.
        vocabulary::write(folder, &json, config.vocab, &mut metadata)?;
        if options.dialect == Dialect::LlamaCpp {
            metadata.remove("deepseek4.vocab_size");
        }
        let mut plan = Plan::new(metadata.clone())?;
        let mut parts = Vec::new();
        for (want, of_tensor) in tensors {
            let ty = of_tensor[0].form.ty();
            plan.add(&want.name, &dims(&want, of_tensor.len()), ty)?;
            parts.push(of_tensor);
        }
        let used: HashSet<&str> = found.used.iter().map(|p| &*shards.entry(*p).name).collect();
        let mut unused: Vec<String> = shards
            .names()
            .filter(|name| !used.contains(name) && !names::is_beyond_trunk(name, config.layers))
            .map(str::to_owned)
            .collect();
        unused.sort();
        Ok(Self {
            infos: plan.tensors().to_vec(),
            metadata,
            parts,
            unused,
            shards,
        })
    }

    /// Tensors of the checkpoint that have no place in the result, drafters and layers beyond the trunk apart.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }
}

impl Source for Checkpoint {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.infos
    }

    fn rows<'a>(
        &'a self,
        index: usize,
        rows: Range<usize>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let parts = &self.parts[index];
        let each = self.infos[index].dims.rows() as usize / parts.len();
        buffer.clear();
        let mut at = rows.start;
        while at < rows.end {
            let (part, first) = (at / each, at % each);
            let last = each.min(first + (rows.end - at));
            parts[part].rows(&self.shards, first..last, buffer)?;
            at += last - first;
        }
        Ok(buffer)
    }

    fn is_trusted(&self) -> bool {
        false
    }
}

fn name(folder: &Path, options: &ConvertOptions) -> String {
    let of_folder = || {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    options.name.clone().unwrap_or_else(of_folder)
}

/// The configuration as the engine will read it: a file with nothing but these keys.
fn config(metadata: &Metadata, path: &Path) -> Result<Config, ConvertError> {
    let header = Writer::new(Vec::new(), Plan::new(metadata.clone())?)?.finish()?;
    Config::from_gguf(&Gguf::from_vec(header)?).map_err(|source| ConvertError::Config {
        path: path.to_owned(),
        source,
    })
}

/// Extents as GGUF has them, fastest first.
fn dims(want: &Want, parts: usize) -> Vec<u64> {
    let [rows, cols] = [want.rows, want.cols].map(|n| n as u64);
    match want.kind {
        Kind::Vector => vec![cols],
        Kind::Matrix | Kind::Table => vec![cols, rows],
        Kind::Experts => vec![cols, rows, parts as u64],
    }
}

#[cfg(test)]
mod tests {
    use ds4_gguf::{Dims, TensorType};

    use super::*;

    #[test]
    fn llama_cpp_has_its_small_matrices_in_f32() {
        let dims = Dims::new(&[64, 8]).unwrap();
        let ty = |dialect: Dialect, name: &str| {
            let recipe = dialect.recipe(&Recipe::named("native").unwrap());
            recipe.decide(name, &dims, TensorType::Bf16, Some(43)).ty
        };
        for name in [
            "blk.3.hc_attn_fn.weight",
            "output_hc_fn.weight",
            "blk.2.attn_compressor_ape.weight",
            "blk.2.indexer_compressor_ape.weight",
            "blk.2.ffn_gate_inp.weight",
            "blk.2.indexer.proj.weight",
        ] {
            assert_eq!(ty(Dialect::LlamaCpp, name), TensorType::F32, "{name}");
            assert_eq!(ty(Dialect::Ds4, name), TensorType::F16, "{name}");
        }
        let other = "blk.2.attn_q_a.weight";
        assert_eq!(ty(Dialect::LlamaCpp, other), TensorType::Q8_0);
    }
}
