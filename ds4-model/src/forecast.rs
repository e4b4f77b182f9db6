//! What a quantization will give, before any work: exact size, bits a weight, bytes a decoded token, and the most
//! tokens a second that the bandwidth of a memory allows.

use std::fmt;

use ds4_gguf::TensorType;
use ds4_quant::quantize::Quantize;
use ds4_quant::recipe::Because;
use serde_json::{Value, json};

use crate::inspect::{Sizes, human_bytes};

/// What a quantization will give. Made of a [`Quantize`]; nothing is read but the directory of the source.
///
/// ```
/// use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
/// use ds4_model::forecast::Forecast;
/// use ds4_quant::{quantize::Quantize, recipe::Recipe};
///
/// let mut plan = Plan::new(Metadata::new())?;
/// plan.add("output.weight", &[64, 10], TensorType::F32)?;
/// let mut writer = Writer::new(Vec::new(), plan)?;
/// writer.write(&[0; 64 * 10 * 4])?;
/// let source = Gguf::from_vec(writer.finish()?)?;
///
/// let work = Quantize::new(&source, &Recipe::named("native")?, None)?;
/// let forecast = Forecast::of(&work, Forecast::STRIX_HALO);
/// assert_eq!(forecast.sizes().bytes_per_token, Some(680)); // Q8_0: 640 weights, 34 bytes for 32
/// assert_eq!(forecast.ceiling(), Some(Forecast::STRIX_HALO / 680.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Forecast {
    file_bytes: u64,
    bits_per_weight: f64,
    sizes: Sizes,
    bandwidth: f64,
    fallbacks: Vec<Fallback>,
    lacking: Option<String>,
}

/// A tensor that cannot have the type that the recipe asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The tensor.
    pub name: String,
    /// Weights in a row.
    pub cols: u64,
    /// What the recipe asks for.
    pub wanted: TensorType,
    /// What it gets.
    pub ty: TensorType,
}

impl Forecast {
    /// Memory bandwidth of a Strix Halo machine, bytes a second: 256 bits of LPDDR5X-8000 give 256 GB/s, of which
    /// 240.5 GB/s can be read.
    pub const STRIX_HALO: f64 = 240.5e9;

    /// What `work` will give on a machine that reads `bandwidth` bytes a second.
    pub fn of(work: &Quantize<'_>, bandwidth: f64) -> Self {
        let fallbacks = work
            .tensors()
            .iter()
            .filter_map(|t| match t.because {
                Because::Row { wanted } => Some(Fallback {
                    name: t.info.name.to_string(),
                    cols: t.info.dims.cols(),
                    wanted,
                    ty: t.info.ty,
                }),
                _ => None,
            })
            .collect();
        Self {
            file_bytes: work.file_bytes(),
            bits_per_weight: work.bits_per_weight(),
            sizes: Sizes::of(work.metadata(), work.tensors().iter().map(|t| &t.info)),
            bandwidth,
            fallbacks,
            lacking: work.check_importance().err().map(|error| error.to_string()),
        }
    }

    /// Exact size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The table by role, and bytes a decoded token.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The most tokens a second that reading weights allows; `None` where the bytes a token are not known.
    pub fn ceiling(&self) -> Option<f64> {
        let bytes = self.sizes.bytes_per_token.filter(|bytes| *bytes > 0)?;
        Some(self.bandwidth / bytes as f64)
    }

    /// Tensors that cannot have the type that the recipe asks for.
    pub fn fallbacks(&self) -> &[Fallback] {
        &self.fallbacks
    }

    /// Everything as JSON.
    pub fn to_json(&self) -> Value {
        let groups: Vec<Value> = self
            .sizes
            .groups
            .iter()
            .map(|g| json!({ "role": g.role.name(), "type": g.ty.to_string(), "tensors": g.tensors, "weights": g.weights, "bytes": g.bytes }))
            .collect();
        let fallbacks: Vec<Value> = self
            .fallbacks
            .iter()
            .map(|t| json!({ "name": t.name, "cols": t.cols, "wanted": t.wanted.to_string(), "type": t.ty.to_string() }))
            .collect();
        json!({
            "file_bytes": self.file_bytes,
            "bits_per_weight": self.bits_per_weight,
            "bytes_per_token": self.sizes.bytes_per_token,
            "bandwidth_bytes_per_second": self.bandwidth,
            "ceiling_tokens_per_second": self.ceiling(),
            "groups": groups,
            "fallbacks": fallbacks,
            "lacking": self.lacking,
        })
    }
}

impl fmt::Display for Forecast {
    /// The table, the numbers, then what falls back and what is lacking, where it is seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sizes)?;
        writeln!(
            f,
            "\nfile size: {} bytes ({}), {:.3} bits a weight",
            self.file_bytes,
            human_bytes(self.file_bytes),
            self.bits_per_weight
        )?;
        let gigabytes = self.bandwidth / 1e9;
        match self.sizes.bytes_per_token.zip(self.ceiling()) {
            Some((bytes, ceiling)) => write!(
                f,
                "bytes per decoded token: {}, at {gigabytes} GB/s at most {ceiling:.1} tok/s",
                human_bytes(bytes)
            )?,
            None => write!(
                f,
                "bytes per decoded token: unknown, the file does not say how many experts are used"
            )?,
        }
        for t in &self.fallbacks {
            write!(
                f,
                "\n{}: {} instead of {}, rows of {} are not a whole number of its blocks of {}",
                t.name,
                t.ty,
                t.wanted,
                t.cols,
                t.wanted.block_len()
            )?;
        }
        if let Some(lacking) = &self.lacking {
            write!(f, "\nlacking: {lacking}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ds4_gguf::{Gguf, Metadata, Plan, Writer};
    use ds4_quant::recipe::Recipe;

    use super::*;

    #[test]
    fn a_forecast_adds_up() {
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", "deepseek4");
        metadata.set("deepseek4.block_count", 1u32);
        metadata.set("deepseek4.expert_count", 4u32);
        metadata.set("deepseek4.expert_used_count", 2u32);
        let mut plan = Plan::new(metadata).unwrap();
        for (name, dims) in [
            ("token_embd.weight", &[256, 8][..]),
            ("blk.0.ffn_up_exps.weight", &[256, 2, 4]),
            ("blk.0.attn_kv.weight", &[96, 2]),
        ] {
            plan.add(name, dims, TensorType::F32).unwrap();
        }
        let bytes = plan.file_bytes().unwrap() - plan.header().unwrap().len() as u64;
        let mut writer = Writer::new(Vec::new(), plan).unwrap();
        for n in [256 * 8 * 4, 256 * 2 * 4 * 4, 96 * 2 * 4] {
            writer.write(&vec![0; n]).unwrap();
        }
        let source = Gguf::from_vec(writer.finish().unwrap()).unwrap();
        assert!(bytes > 0);
        let recipe = Recipe::from_toml(
            "[[rule]]\nrole = \"embedding\"\ntype = \"F16\"\n[[rule]]\nrole = \"routed experts\"\ntype = \"IQ2_XXS\"\n[[rule]]\ntype = \"Q2_K\"",
        )
        .unwrap();
        let work = Quantize::new(&source, &recipe, None).unwrap();
        let forecast = Forecast::of(&work, 1e6);
        // A row of the embedding, two of four experts, both rows of attention as IQ4_NL.
        let token = 512 + 2 * 2 * 66 + 2 * 54;
        assert_eq!(forecast.sizes().bytes_per_token, Some(token));
        assert!((forecast.ceiling().unwrap() - 1e6 / token as f64).abs() < 1e-6);
        assert_eq!(forecast.fallbacks()[0].ty, TensorType::Iq4Nl);
        let shown = forecast.to_string();
        for words in [
            "blk.0.attn_kv.weight: IQ4_NL instead of Q2_K, rows of 96",
            "lacking: tensor `blk.0.ffn_up_exps.weight`: IQ2_XXS needs an importance matrix",
            &format!("file size: {} bytes", work.file_bytes()),
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
    }
}
