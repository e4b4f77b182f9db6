//! Tensors of a [`Source`], an open GGUF for one → GGUF: each to the type that a recipe gives it.
//!
//! [`Quantize::new`] decides everything that can be decided without reading weights: types, the exact size of the
//! result, what the importance matrix lacks. [`Quantize::write`] then streams chunk by chunk of rows; no tensor is ever
//! in memory. Tensors that keep their type are copied byte for byte; of a source that is not trusted, weights that are no
//! numbers are found, and stop the work or are replaced. The same source, recipe and importance give the
//! same bytes for any number of threads.

mod error;
pub(crate) mod metadata;
mod source;
mod untrusted;

use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use ds4_gguf::{NewFile, Plan, TensorInfo, TensorType, Writer};

use crate::matrix::row_bytes;
use crate::recipe::{Because, Recipe, demands_importance};
use crate::transcode::{Shape, Transcode, importance};
use crate::{Difference, Imatrix, NonFinite, Pool};

pub use error::QuantizeError;
pub use source::{Source, SourceError};

/// Bytes of a source that are taken through at a time.
const CHUNK: usize = 4 << 20;

/// Importance of columns, and the name of the file it came from.
#[derive(Clone, Copy, Debug)]
pub struct Importance<'a> {
    /// The vectors.
    pub matrix: &'a Imatrix,
    /// What the result says about where they came from.
    pub file: &'a str,
}

/// One tensor of the result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Planned {
    /// Its line of the table; the extent counts from the start of the data.
    pub info: TensorInfo,
    /// The type in the source.
    pub from: TensorType,
    /// Bytes in the source.
    pub bytes_before: u64,
    /// Why it gets its type.
    pub because: Because,
    /// Whether importance is at hand for it.
    pub importance: bool,
}

impl Planned {
    /// Whether it is copied byte for byte.
    pub fn is_copied(&self) -> bool {
        self.from == self.info.ty
    }
}

/// How far the work has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The tensor at hand.
    pub tensor: &'a str,
    /// Bytes of the source that are done.
    pub done: u64,
    /// Bytes of the source.
    pub total: u64,
}

/// What became of the tensors.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Those that changed their type, in file order: name, type before, type after, and the error.
    pub tensors: Vec<Changed>,
    /// How many were copied.
    pub copied: usize,
}

/// A tensor that changed its type.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The tensor.
    pub name: Box<str>,
    /// Before.
    pub from: TensorType,
    /// After.
    pub to: TensorType,
    /// What the weights lost against those of the source.
    pub error: Difference,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, error) = (&self.name, &self.error);
        let (from, to) = (self.from.to_string(), self.to.to_string());
        write!(f, "{name:<36} {from:>18} → {to:<18} {error}")
    }
}

/// A quantization that is decided and not yet done.
///
/// ```
/// use std::ops::ControlFlow;
/// use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
/// use ds4_quant::quantize::Quantize;
/// use ds4_quant::recipe::Recipe;
/// use ds4_quant::{NonFinite, Pool};
///
/// let mut plan = Plan::new(Metadata::new())?;
/// plan.add("output.weight", &[64, 10], TensorType::F32)?;
/// let mut writer = Writer::new(Vec::new(), plan)?;
/// writer.write(&[0; 64 * 10 * 4])?;
/// let source = Gguf::from_vec(writer.finish()?)?;
///
/// let work = Quantize::new(&source, &Recipe::named("native")?, None)?;
/// let (bytes, report) = work.run(&Pool::new(2)?, NonFinite::Refuse, Vec::new(), |_| ControlFlow::Continue(()))?;
/// assert_eq!(bytes.len() as u64, work.file_bytes());
/// assert_eq!(report.tensors[0].to, TensorType::Q8_0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Quantize<'a> {
    source: &'a dyn Source,
    importance: Option<Importance<'a>>,
    plan: Plan,
    file_bytes: u64,
    tensors: Vec<Planned>,
}

impl<'a> Quantize<'a> {
    /// Decide types and sizes. Reads the directory of `source` alone.
    ///
    /// # Errors
    /// [`QuantizeError::Unsupported`] when a tensor's type has no known size, [`QuantizeError::Importance`] when the
    /// matrix has an entry of the wrong size, [`QuantizeError::Gguf`] when the result cannot be a GGUF.
    pub fn new(
        source: &'a dyn Source,
        recipe: &Recipe,
        importance: Option<Importance<'a>>,
    ) -> Result<Self, QuantizeError> {
        if let Some((tensor, id, reason)) = source.unsupported() {
            return Err(QuantizeError::Unsupported { tensor, id, reason });
        }
        let layers = layers(source);
        let decided: Vec<(&TensorInfo, crate::recipe::Decision)> = source
            .tensors()
            .iter()
            .map(|info| (info, recipe.decide(&info.name, &info.dims, info.ty, layers)))
            .collect();
        let mut metadata = source.metadata().clone();
        let types = decided
            .iter()
            .map(|(info, decision)| (decision.ty, info.dims.elements()));
        metadata::update(&mut metadata, types, importance.as_ref());
        let mut plan = Plan::new(metadata)?;
        for (info, decision) in &decided {
            plan.add(&info.name, info.dims.as_slice(), decision.ty)?;
        }
        let tensors = decided
            .iter()
            .zip(plan.tensors())
            .map(|((info, decision), planned)| {
                let vectors = vectors(importance, info, planned.ty)?;
                Ok(Planned {
                    info: planned.clone(),
                    from: info.ty,
                    bytes_before: info.extent.bytes,
                    because: decision.because,
                    importance: !vectors.is_empty(),
                })
            })
            .collect::<Result<Vec<_>, QuantizeError>>()?;
        Ok(Self {
            source,
            importance,
            file_bytes: plan.file_bytes()?,
            plan,
            tensors,
        })
    }

    /// The tensors of the result, in order.
    pub fn tensors(&self) -> &[Planned] {
        &self.tensors
    }

    /// The metadata of the result.
    pub fn metadata(&self) -> &ds4_gguf::Metadata {
        self.plan.metadata()
    }

    /// Exact size of the result in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bits a weight, over all tensors of the result.
    pub fn bits_per_weight(&self) -> f64 {
        let (bytes, weights) = self.tensors.iter().fold((0.0, 0.0), |(bytes, weights), t| {
            (
                bytes + t.info.extent.bytes as f64,
                weights + t.info.dims.elements() as f64,
            )
        });
        if weights == 0.0 {
            0.0
        } else {
            8.0 * bytes / weights
        }
    }

    /// Whether every type that demands importance has it.
    ///
    /// # Errors
    /// [`QuantizeError::NoImportance`] or [`QuantizeError::ImportanceLacks`] for the first tensor that has not.
    pub fn check_importance(&self) -> Result<(), QuantizeError> {
        let lacking = self
            .tensors
            .iter()
            .find(|t| !t.is_copied() && !t.importance && demands_importance(t.info.ty));
        let Some(lacking) = lacking else {
            return Ok(());
        };
        let (tensor, ty) = (lacking.info.name.clone(), lacking.info.ty);
        Err(match self.importance {
            None => QuantizeError::NoImportance { tensor, ty },
            Some(importance) => QuantizeError::ImportanceLacks {
                tensor,
                ty,
                file: importance.file.into(),
            },
        })
    }

    /// Write the result to `path` by way of a partial file: see [`NewFile`]. When `on` stops the work, or anything fails,
    /// the partial file is removed: half a model serves nobody, and a new start gives the same bytes.
    ///
    /// # Errors
    /// As [`Self::run`]; [`QuantizeError::Gguf`] when the file cannot be made. `path` is as it was then.
    pub fn write(
        &self,
        pool: &Pool,
        nonfinite: NonFinite,
        path: &Path,
        overwrite: bool,
        on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Report, QuantizeError> {
        let file = NewFile::create(path, overwrite)?;
        let (file, report) = self
            .run(pool, nonfinite, file, on)
            .map_err(|error| match error {
                QuantizeError::Gguf(ds4_gguf::Error::Write(source)) => QuantizeError::Write {
                    path: path.to_owned(),
                    source,
                },
                other => other,
            })?;
        file.publish()?;
        Ok(report)
    }

    /// Stream the result into `sink`. `on` hears of every chunk and stops the work with [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Those of [`Self::check_importance`], before anything is written; [`QuantizeError::NonFinite`],
    /// [`QuantizeError::Codec`] and [`QuantizeError::Source`] name the tensor; [`QuantizeError::Gguf`] when the sink fails;
    /// [`QuantizeError::Cancelled`].
    pub fn run<W: Write>(
        &self,
        pool: &Pool,
        nonfinite: NonFinite,
        sink: W,
        mut on: impl FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<(W, Report), QuantizeError> {
        self.check_importance()?;
        let mut writer = Writer::new(sink, self.plan.clone())?;
        let mut report = Report::default();
        let total = self.tensors.iter().map(|t| t.bytes_before).sum();
        let mut done = 0;
        let mut advance = |tensor: &str, bytes: usize| {
            done += bytes as u64;
            match on(Progress {
                tensor,
                done,
                total,
            }) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(QuantizeError::Cancelled),
            }
        };
        for (index, planned) in self.tensors.iter().enumerate() {
            let name = &planned.info.name;
            advance(name, 0)?;
            if planned.is_copied() && (self.source.is_trusted() || !is_float(planned.from)) {
                self.each_chunk(nonfinite, index, planned, |_, chunk| {
                    writer.write(chunk)?;
                    advance(name, chunk.len())
                })?;
                report.copied += 1;
                continue;
            }
            let error = self.convert(pool, nonfinite, index, planned, |blocks, bytes| {
                writer.write(blocks)?;
                advance(name, bytes)
            })?;
            if planned.is_copied() {
                report.copied += 1;
                continue;
            }
            report.tensors.push(Changed {
                name: name.clone(),
                from: planned.from,
                to: planned.info.ty,
                error,
            });
        }
        Ok((writer.finish()?, report))
    }

    /// Tensor `index` of the source in chunks of whole rows: `out` gets the first row's number, and the rows.
    fn each_chunk(
        &self,
        nonfinite: NonFinite,
        index: usize,
        planned: &Planned,
        mut out: impl FnMut(usize, &[u8]) -> Result<(), QuantizeError>,
    ) -> Result<(), QuantizeError> {
        // The address space holds the tensor's rows: `shape` has looked at every tensor.
        let rows = planned.info.dims.rows() as usize;
        let row = (planned.bytes_before / planned.info.dims.rows()).max(1) as usize;
        let mut buffer = Vec::new();
        let mut first = 0;
        while first < rows {
            let end = rows.min(first + (CHUNK / row).max(1));
            let chunk = self.source.rows(index, first..end, &mut buffer);
            let chunk = chunk.map_err(|source| QuantizeError::Source {
                tensor: planned.info.name.clone(),
                source,
            })?;
            if self.source.is_trusted() || planned.from != TensorType::Mxfp4 {
                out(first, chunk)?;
            } else {
                // The address space holds the tensor's weights no less than its rows.
                let weight = first * planned.info.dims.cols() as usize;
                let chunk = untrusted::blocks(chunk, weight, planned.is_copied(), nonfinite)
                    .map_err(|source| QuantizeError::codec(&planned.info.name, source))?;
                out(first, &chunk)?;
            }
            first = end;
        }
        Ok(())
    }

    /// One tensor, chunk by chunk: `out` gets the new blocks, and the bytes of the source they were.
    fn convert(
        &self,
        pool: &Pool,
        nonfinite: NonFinite,
        index: usize,
        planned: &Planned,
        mut out: impl FnMut(&[u8], usize) -> Result<(), QuantizeError>,
    ) -> Result<Difference, QuantizeError> {
        let info = &self.source.tensors()[index];
        let codec = |source| QuantizeError::codec(&info.name, source);
        let (from, to) = (planned.from, planned.info.ty);
        let shape = shape(info)?;
        let vectors = vectors(self.importance, info, to)?;
        let transcode = Transcode::new(from, to, shape, vectors, nonfinite).map_err(codec)?;
        let [row_from, row_to] = [from, to].map(|ty| row_bytes(ty, shape.cols));
        let mut blocks = Vec::new();
        let mut sum = Difference::default();
        self.each_chunk(nonfinite, index, planned, |first, chunk| {
            blocks.resize(chunk.len() / row_from * row_to, 0);
            let difference = transcode
                .rows(pool, first, chunk, &mut blocks)
                .map_err(codec)?;
            sum.merge(&difference);
            out(&blocks, chunk.len())
        })?;
        Ok(sum)
    }
}

/// Types whose values are numbers as they stand.
fn is_float(ty: TensorType) -> bool {
    matches!(ty, TensorType::F32 | TensorType::F16 | TensorType::Bf16)
}

/// Layers of the model, where its metadata say.
pub(crate) fn layers(source: &dyn Source) -> Option<u64> {
    let architecture: &str = source.metadata().find("general.architecture")?;
    source
        .metadata()
        .find(&format!("{architecture}.block_count"))
}

/// The shape, for importance and chunks.
pub(crate) fn shape(info: &TensorInfo) -> Result<Shape, QuantizeError> {
    Shape::of(&info.dims).map_err(|source| QuantizeError::codec(&info.name, source))
}

/// Importance for a tensor that becomes `to`; empty where there is none, or none is needed.
pub(crate) fn vectors<'a>(
    given: Option<Importance<'a>>,
    info: &TensorInfo,
    to: TensorType,
) -> Result<Vec<&'a [f32]>, QuantizeError> {
    if info.ty == to {
        return Ok(Vec::new());
    }
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    let all = importance(given.matrix, &info.name, shape(info)?);
    all.map_err(|source| QuantizeError::Importance {
        file: given.file.into(),
        tensor: info.name.clone(),
        source,
    })
}
