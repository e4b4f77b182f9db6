//! Weights against weights.

use std::fmt;
use std::ops::ControlFlow;

use ds4_gguf::{Dims, Gguf, TensorInfo, TensorType};
use ds4_quant::{Codec, Difference, Pool, codec};
use serde_json::{Value, json};

use crate::exec::Token;

/// Weights that are decoded at a time.
const CHUNK: usize = 1 << 20;
/// Rows of a task.
const ROWS: usize = 16;

/// Why two files could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum CompareError {
    /// Blocks that cannot be decoded.
    #[error("cannot decode tensor `{tensor}`")]
    Codec {
        tensor: Box<str>,
        source: ds4_quant::Error,
    },

    /// The tokens of a text differ, so nothing can be said about them.
    #[error("the models cut the text into different tokens, first at token {at} of it")]
    Tokens { at: usize },

    /// Logits of different tokens.
    #[error("the models have {a} and {b} tokens in their vocabularies")]
    Vocabulary { a: usize, b: usize },

    /// A model that says nothing.
    #[error(
        "{model}: the logit of token id {token} after token {position} of the text is {value}; expected a finite number"
    )]
    Logit {
        model: Box<str>,
        position: usize,
        token: Token,
        value: f32,
    },

    /// A model could not read the text, or no model can read it so.
    #[error(transparent)]
    Model(#[from] crate::Error),

    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// A tensor that both files have in one shape.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub name: Box<str>,
    /// Its shape.
    pub dims: Dims,
    /// Its types, in the first file and in the second.
    pub types: [TensorType; 2],
    /// What the second file's weights are against the first's. Integer tables count as numbers.
    pub difference: Difference,
}

/// All tensors of two files.
#[derive(Clone, Debug, Default)]
pub struct Tensors {
    /// Those that were compared, in the order of the first file.
    pub compared: Vec<Compared>,
    /// Names that only the first file has, and only the second.
    pub alone: [Vec<Box<str>>; 2],
    /// Names with different shapes, and the shapes.
    pub misshapen: Vec<(Box<str>, [Dims; 2])>,
    /// Names with a type that cannot be decoded, and the types.
    pub opaque: Vec<(Box<str>, [TensorType; 2])>,
}

/// Compare all tensors of `a` with those of `b`. `on(name, done, total)` hears of weights and may stop the work.
///
/// # Errors
/// [`CompareError::Codec`] for blocks that cannot be decoded, [`CompareError::Stopped`].
pub fn tensors(
    a: &Gguf,
    b: &Gguf,
    pool: &Pool,
    mut on: impl FnMut(&str, u64, u64) -> ControlFlow<()>,
) -> Result<Tensors, CompareError> {
    let mut all = Tensors::default();
    let lacks = |of: &Gguf, other: &Gguf| -> Vec<Box<str>> {
        let names = of.tensors().iter().map(|info| &info.name);
        names
            .filter(|name| other.index_of(name).is_none())
            .cloned()
            .collect()
    };
    all.alone = [lacks(a, b), lacks(b, a)];
    let mut pairs = Vec::new();
    for (i, info) in a.tensors().iter().enumerate() {
        let Some(j) = b.index_of(&info.name) else {
            continue;
        };
        let other = &b.tensors()[j];
        if !same_shape(&info.dims, &other.dims) {
            all.misshapen
                .push((info.name.clone(), [info.dims, other.dims]));
        } else if rows_of(info).is_none() || rows_of(other).is_none() {
            all.opaque.push((info.name.clone(), [info.ty, other.ty]));
        } else {
            pairs.push((i, j));
        }
    }
    let total = pairs
        .iter()
        .map(|&(i, _)| a.tensors()[i].dims.elements())
        .sum();
    let mut done = 0;
    for (i, j) in pairs {
        let (x, y) = (a.tensor_at(i), b.tensor_at(j));
        let difference = pair(x, y, pool, |weights| {
            done += weights;
            on(&x.info.name, done, total)
        })?;
        all.compared.push(Compared {
            name: x.info.name.clone(),
            dims: x.info.dims,
            types: [x.info.ty, y.info.ty],
            difference,
        });
    }
    Ok(all)
}

/// Extents of 1 at the end say nothing, and one dialect presents a matrix by group.
fn same_shape(a: &Dims, b: &Dims) -> bool {
    a.cols() == b.cols() && a.rows() == b.rows()
}

/// How rows of a tensor become numbers.
#[derive(Clone, Copy)]
enum Rows {
    Codec(&'static dyn Codec),
    Integers,
}

fn rows_of(info: &TensorInfo) -> Option<Rows> {
    match info.ty {
        TensorType::I32 => Some(Rows::Integers),
        ty => codec(ty).map(Rows::Codec),
    }
}

impl Rows {
    fn decode(self, bytes: &[u8], out: &mut [f32]) -> Result<(), ds4_quant::Error> {
        match self {
            Self::Codec(codec) => codec.decode(bytes, out),
            Self::Integers => {
                for (out, word) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *out = i32::from_le_bytes(*word) as f32;
                }
                Ok(())
            }
        }
    }
}

fn pair(
    a: ds4_gguf::Tensor<'_>,
    b: ds4_gguf::Tensor<'_>,
    pool: &Pool,
    mut on: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Difference, CompareError> {
    let (Some(of_a), Some(of_b)) = (rows_of(a.info), rows_of(b.info)) else {
        return Ok(Difference::default());
    };
    // Extents were checked against the files' sizes when they were opened.
    let (cols, rows) = (a.info.dims.cols() as usize, a.info.dims.rows() as usize);
    let [row_a, row_b] = [a.bytes, b.bytes].map(|bytes| bytes.len() / rows);
    let mut sum = Difference::default();
    let step = (CHUNK / cols).max(ROWS);
    for first in (0..rows).step_by(step) {
        let end = rows.min(first + step);
        let mut tasks = vec![Ok(Difference::default()); (end - first).div_ceil(ROWS)];
        pool.for_chunks(&mut tasks, 1, |task, out| {
            let (mut x, mut y) = (vec![0.0; cols], vec![0.0; cols]);
            let from = first + task * ROWS;
            out[0] = (from..end.min(from + ROWS)).try_fold(Difference::default(), |mut sum, r| {
                of_a.decode(&a.bytes[r * row_a..][..row_a], &mut x)?;
                of_b.decode(&b.bytes[r * row_b..][..row_b], &mut y)?;
                sum.add(&x, &y, None)?;
                Ok(sum)
            });
        });
        for task in tasks {
            sum.merge(&task.map_err(|source| CompareError::Codec {
                tensor: a.info.name.clone(),
                source,
            })?);
        }
        if on(((end - first) * cols) as u64).is_break() && end < rows {
            return Err(CompareError::Stopped);
        }
    }
    Ok(sum)
}

impl Tensors {
    /// As JSON. A measure that is no finite number, because a weight is none, is `null`.
    pub fn to_json(&self) -> Value {
        let one = |c: &Compared| {
            json!({
                "name": c.name,
                "shape": c.dims.as_slice(),
                "types": c.types.map(|ty| ty.to_string()),
                "rmse": c.difference.rmse(),
                "relative_rmse": c.difference.relative_rmse(),
                "cosine": c.difference.cosine(),
                "max_error": c.difference.max_error(),
            })
        };
        let shapes = |(name, dims): &(Box<str>, [Dims; 2])| json!({ "name": name, "shapes": dims.map(|d| d.as_slice().to_vec()) });
        let types = |(name, types): &(Box<str>, [TensorType; 2])| json!({ "name": name, "types": types.map(|t| t.to_string()) });
        json!({
            "tensors": self.compared.iter().map(one).collect::<Vec<_>>(),
            "only_in_first": self.alone[0],
            "only_in_second": self.alone[1],
            "different_shapes": self.misshapen.iter().map(shapes).collect::<Vec<_>>(),
            "not_decodable": self.opaque.iter().map(types).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Tensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in &self.compared {
            let (name, difference) = (&c.name, &c.difference);
            let [a, b] = c.types.map(|ty| ty.to_string());
            writeln!(f, "{name:<36} {a:>18} | {b:<18} {difference}")?;
        }
        for (names, which) in self.alone.iter().zip(["first", "second"]) {
            for name in names {
                writeln!(f, "{name:<36} only in the {which} file")?;
            }
        }
        for (name, [a, b]) in &self.misshapen {
            writeln!(f, "{name:<36} {a} in the first file, {b} in the second")?;
        }
        for (name, [a, b]) in &self.opaque {
            writeln!(f, "{name:<36} {a} | {b} cannot be decoded")?;
        }
        Ok(())
    }
}
