//! Golden arrays of the tiny DeepSeek-V4 models, and what is needed to compare with them.
//!
//! Origin: `tests/data/deepseek-v4/README.md`.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failed test"
)]

use std::collections::HashMap;
use std::path::PathBuf;

use ds4_model::{Engine, Logits, NoTap, Options, Session, Tap, Token};
use serde_json::Value;

/// One model's golden file.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    pub(crate) manifest: Value,
    bytes: Vec<u8>,
}

impl Golden {
    pub(crate) fn open(name: &'static str) -> Self {
        let read = |suffix: &str| std::fs::read(path(&format!("{name}.golden.{suffix}"))).unwrap();
        Golden {
            name,
            manifest: serde_json::from_slice(&read("json")).unwrap(),
            bytes: read("bin"),
        }
    }

    pub(crate) fn gguf(&self) -> PathBuf {
        path(&format!("{}.gguf", self.name))
    }

    pub(crate) fn engine(&self, change: impl FnOnce(&mut Options)) -> Engine {
        let mut options = Options::default();
        options.threads = 1;
        change(&mut options);
        Engine::open(self.gguf(), options).unwrap()
    }

    /// Shape and raw little-endian words of an array, if the file has it.
    fn words(&self, name: &str) -> Option<(Vec<usize>, Vec<[u8; 4]>)> {
        let arrays = self.manifest["arrays"].as_array().unwrap();
        let entry = arrays.iter().find(|a| a["name"] == name)?;
        let shape: Vec<usize> = entry["shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect();
        let offset = entry["offset"].as_u64().unwrap() as usize;
        let bytes = &self.bytes[offset..offset + 4 * shape.iter().product::<usize>()];
        Some((
            shape,
            bytes
                .chunks_exact(4)
                .map(|b| b.try_into().unwrap())
                .collect(),
        ))
    }

    pub(crate) fn try_f32(&self, name: &str) -> Option<(Vec<usize>, Vec<f32>)> {
        let (shape, words) = self.words(name)?;
        Some((shape, words.into_iter().map(f32::from_le_bytes).collect()))
    }

    pub(crate) fn f32(&self, name: &str) -> Vec<f32> {
        self.try_f32(name)
            .unwrap_or_else(|| panic!("{} has {name}", self.name))
            .1
    }

    pub(crate) fn try_i32(&self, name: &str) -> Option<(Vec<usize>, Vec<i32>)> {
        let (shape, words) = self.words(name)?;
        Some((shape, words.into_iter().map(i32::from_le_bytes).collect()))
    }

    pub(crate) fn tokens(&self, name: &str) -> Vec<Token> {
        self.try_i32(name)
            .unwrap()
            .1
            .into_iter()
            .map(|t| t as Token)
            .collect()
    }

    pub(crate) fn tolerance(&self, name: &str) -> f32 {
        self.manifest["tolerance"][name].as_f64().unwrap() as f32
    }

    pub(crate) fn vocab(&self) -> usize {
        self.manifest["config"]["vocab"].as_u64().unwrap() as usize
    }

    pub(crate) fn config(&self, key: &str) -> usize {
        self.manifest["config"][key].as_u64().unwrap() as usize
    }

    pub(crate) fn layers(&self) -> usize {
        self.manifest["config"]["ratios"].as_array().unwrap().len()
    }
}

pub(crate) fn path(file: &str) -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/deepseek-v4"
    ))
    .join(file)
}

/// Logits after every token.
pub(crate) fn all_logits(session: &mut Session, tokens: &[Token]) -> Vec<f32> {
    let mut out = Vec::new();
    session
        .run(tokens, Logits::All, &mut NoTap, &mut |rows| {
            out.extend_from_slice(rows)
        })
        .unwrap();
    out
}

/// The given rows of `[n, cols]`.
pub(crate) fn pick(values: &[f32], cols: usize, rows: &[usize]) -> Vec<f32> {
    rows.iter()
        .flat_map(|r| values[r * cols..(r + 1) * cols].to_vec())
        .collect()
}

pub(crate) fn max_abs_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

pub(crate) fn rms_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    (sum / a.len() as f64).sqrt() as f32
}

/// Share of rows whose largest logit is at the same place.
pub(crate) fn same_argmax(a: &[f32], b: &[f32], vocab: usize) -> f32 {
    let best = |row: &[f32]| {
        (0..vocab)
            .max_by(|&i, &j| row[i].total_cmp(&row[j]))
            .unwrap()
    };
    let rows = a.chunks_exact(vocab).zip(b.chunks_exact(vocab));
    let same = rows.clone().filter(|(a, b)| best(a) == best(b)).count();
    same as f32 / rows.count() as f32
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Collects every value by name, rows of all steps joined.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) f32: HashMap<String, Vec<f32>>,
    pub(crate) i32: HashMap<String, Vec<i32>>,
}

impl Tap for Recorder {
    fn wants(&self, _: &ds4_model::graph::NodeName) -> bool {
        true
    }

    fn see(
        &mut self,
        name: &ds4_model::graph::NodeName,
        _: u32,
        _: usize,
        values: ds4_model::Values<'_>,
    ) {
        let name = name.as_str().to_owned();
        match values {
            ds4_model::Values::F32(v) => self.f32.entry(name).or_default().extend_from_slice(v),
            ds4_model::Values::I32(v) => self.i32.entry(name).or_default().extend_from_slice(v),
        }
    }
}
