//! Importance matrices: how much an error in each input column of a matrix costs.

use std::collections::HashMap;

use ds4_gguf::{Gguf, TensorType};

/// Why a file of importance could not be used. Every variant names what in the file is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "said by the messages")]
pub enum ImatrixError {
    /// The file stops inside something.
    #[error("the importance file ends at byte {len}: {what} at byte {at} needs {need} bytes")]
    End {
        what: &'static str,
        at: usize,
        need: usize,
        len: usize,
    },

    /// A length that cannot be.
    #[error("the importance file has {value} as {what} at byte {at}")]
    Count {
        what: &'static str,
        at: usize,
        value: i32,
    },

    /// A name that is not text.
    #[error("the name of importance entry {entry} is not UTF-8")]
    Name { entry: usize },

    /// Two entries of one name.
    #[error("the importance file has `{name}` twice")]
    Twice { name: Box<str> },

    /// A number that says nothing about importance.
    #[error(
        "importance value {index} of `{name}` is {value}; expected a finite number that is not negative"
    )]
    Value {
        name: Box<str>,
        index: usize,
        value: f32,
    },

    /// A GGUF of another kind.
    #[error("`general.type` is `{found}`; an importance file has `imatrix`")]
    Type { found: Box<str> },

    /// A tensor whose partner is missing.
    #[error("the importance file has `{name}` without `{partner}`")]
    Alone { name: Box<str>, partner: Box<str> },

    /// A tensor of an unexpected type or shape.
    #[error("importance tensor `{name}` is {found}; expected {want}")]
    Tensor {
        name: Box<str>,
        found: Box<str>,
        want: Box<str>,
    },

    /// An entry that does not fit the matrix it is for.
    #[error(
        "importance of `{name}` has {got} values; expected one for each of {cols} columns{}",
        if *experts > 1 { format!(", of all {experts} experts together or of each") } else { String::new() }
    )]
    Shape {
        name: Box<str>,
        got: usize,
        experts: usize,
        cols: usize,
    },

    /// The file is no readable GGUF, or lacks a key.
    #[error("the importance file cannot be read")]
    Gguf(#[from] ds4_gguf::Error),
}

/// Importance vectors by tensor name: how much an error in each input column of a matrix costs. Made by `ds4 imatrix`,
/// or with [`Imatrix::insert`].
///
/// Two kinds of file hold them. A GGUF with `general.type = "imatrix"` has sums of squared inputs and how often they
/// were taken; importance is their quotient, 1 for an expert that was never used. The older kind, little endian:
///
/// ```text
/// i32 entries
/// each: i32 name length, name; i32 calls; i32 values; f32 value[values]         importance = value / calls
/// then, optionally: i32 chunks; i32 length, name of the calibration text
/// ```
/// With `calls` 0 the values are taken as they are. An entry of an expert tensor holds the vectors of all experts one
/// after another. Sources: ggml-org/llama.cpp:common/imatrix-loader.cpp, tools/imatrix; antirez/ds4 (the older kind).
#[derive(Debug, Default)]
pub struct Imatrix {
    entries: HashMap<Box<str>, Box<[f32]>>,
    chunks: Option<u32>,
    datasets: Vec<String>,
}

impl Imatrix {
    /// Read either kind of file: a GGUF is known by its magic.
    ///
    /// # Errors
    /// See [`ImatrixError`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ImatrixError> {
        if bytes.starts_with(b"GGUF") {
            return Self::from_gguf(&Gguf::from_vec(bytes)?);
        }
        Self::from_legacy(&bytes)
    }

    /// Read an open GGUF.
    ///
    /// # Errors
    /// See [`ImatrixError`].
    pub fn from_gguf(file: &Gguf) -> Result<Self, ImatrixError> {
        let meta = file.metadata();
        let kind: &str = meta.get("general.type")?;
        if kind != "imatrix" {
            return Err(ImatrixError::Type { found: kind.into() });
        }
        let mut matrix = Self {
            entries: HashMap::new(),
            chunks: Some(meta.get("imatrix.chunk_count")?),
            datasets: meta.get("imatrix.datasets")?,
        };
        // Not used, but a file without it was not made by the tool.
        let _: u32 = meta.get("imatrix.chunk_size")?;
        for info in file.tensors() {
            if let Some(name) = info.name.strip_suffix(COUNTS)
                && file.find(&format!("{name}{SUMS}")).is_none()
            {
                let partner = format!("{name}{SUMS}").into();
                return Err(ImatrixError::Alone {
                    name: info.name.clone(),
                    partner,
                });
            }
            let Some(name) = info.name.strip_suffix(SUMS) else {
                continue;
            };
            let partner = format!("{name}{COUNTS}");
            let Some(counts) = file.find(&partner) else {
                let (name, partner) = (info.name.clone(), partner.into());
                return Err(ImatrixError::Alone { name, partner });
            };
            let (cols, experts) = (info.dims.cols(), info.dims.rows());
            let found = |info: &ds4_gguf::TensorInfo| format!("{} {}", info.ty, info.dims).into();
            if info.ty != TensorType::F32 {
                let (name, found) = (info.name.clone(), found(info));
                return Err(ImatrixError::Tensor {
                    name,
                    found,
                    want: "F32".into(),
                });
            }
            if counts.info.ty != TensorType::F32 || counts.info.dims.elements() != experts {
                let (name, found) = (partner.into(), found(counts.info));
                let want = format!("F32 of {experts} numbers").into();
                return Err(ImatrixError::Tensor { name, found, want });
            }
            let sums = file.tensor(&info.name)?;
            let mut values = Vec::with_capacity(sums.bytes.len() / 4);
            let cols = cols as usize;
            for (sums, count) in sums
                .bytes
                .chunks_exact(4 * cols.max(1))
                .zip(floats(counts.bytes))
            {
                values.extend(floats(sums).map(|sum| if count == 0.0 { 1.0 } else { sum / count }));
            }
            matrix.insert(name, values)?;
        }
        Ok(matrix)
    }

    /// Read the older kind.
    ///
    /// # Errors
    /// See [`ImatrixError`].
    pub fn from_legacy(bytes: &[u8]) -> Result<Self, ImatrixError> {
        let mut reader = Reader { bytes, at: 0 };
        let mut matrix = Self::default();
        for entry in 0..reader.count("the number of entries")? {
            let len = reader.count("the length of a name")?;
            let name = reader.take("a name", len)?;
            let name = str::from_utf8(name).map_err(|_| ImatrixError::Name { entry })?;
            let calls = reader.count("the number of calls")?;
            let len = reader.count("the number of values")?;
            let values = floats(reader.take("importance values", len.saturating_mul(4))?);
            let divisor = if calls > 0 { calls as f32 } else { 1.0 };
            matrix.insert(name, values.map(|value| value / divisor).collect())?;
        }
        if reader.at < bytes.len() {
            matrix.chunks = Some(reader.count("the number of chunks")? as u32);
        }
        if reader.at < bytes.len() {
            let len = reader.count("the length of the calibration text's name")?;
            let name = reader.take("the calibration text's name", len)?;
            matrix
                .datasets
                .push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(matrix)
    }

    /// The importance of the columns of one matrix: `expert` of `experts` in tensor `name`, `cols` columns each. A
    /// plain matrix is expert 0 of 1. `None` where the file has nothing under that name.
    ///
    /// Looked up as `name.expert.N`, `name.expert_N`, and as the N-th part of `name`; one vector under `name` serves
    /// all experts.
    ///
    /// # Errors
    /// [`ImatrixError::Shape`] when the entry has another size.
    ///
    /// # Panics
    /// When `expert` is not below `experts`.
    pub fn get(
        &self,
        name: &str,
        expert: usize,
        experts: usize,
        cols: usize,
    ) -> Result<Option<&[f32]>, ImatrixError> {
        assert!(expert < experts, "expert {expert} of {experts}");
        let shape = |name: &str, got: usize| {
            Err(ImatrixError::Shape {
                name: name.into(),
                got,
                experts,
                cols,
            })
        };
        for name in [
            format!("{name}.expert.{expert}"),
            format!("{name}.expert_{expert}"),
        ] {
            if let Some(values) = self.entries.get(&*name) {
                return if values.len() == cols {
                    Ok(Some(values))
                } else {
                    shape(&name, values.len())
                };
            }
        }
        let Some(values) = self.entries.get(name) else {
            return Ok(None);
        };
        if values.len() == cols {
            return Ok(Some(values));
        }
        match cols.checked_mul(experts) {
            Some(all) if all == values.len() => Ok(Some(&values[expert * cols..][..cols])),
            _ => shape(name, values.len()),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many pieces of text the importance was measured on, where the file says.
    pub fn chunks(&self) -> Option<u32> {
        self.chunks
    }

    /// The names of the texts it was measured on.
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// Add the importance of a matrix; of a stack of experts, one vector for all of them or the vectors of all.
    ///
    /// # Errors
    /// [`ImatrixError::Twice`] for a name that is there, [`ImatrixError::Value`] for a number that says nothing.
    pub fn insert(&mut self, name: &str, values: Vec<f32>) -> Result<(), ImatrixError> {
        if let Some(index) = values.iter().position(|v| !v.is_finite() || *v < 0.0) {
            return Err(ImatrixError::Value {
                name: name.into(),
                index,
                value: values[index],
            });
        }
        match self.entries.insert(name.into(), values.into()) {
            None => Ok(()),
            Some(_) => Err(ImatrixError::Twice { name: name.into() }),
        }
    }
}

const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))
}

/// Where reading has come to.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, what: &'static str, need: usize) -> Result<&'a [u8], ImatrixError> {
        let (at, len) = (self.at, self.bytes.len());
        let end = at.checked_add(need).filter(|&end| end <= len);
        let end = end.ok_or(ImatrixError::End {
            what,
            at,
            need,
            len,
        })?;
        self.at = end;
        Ok(&self.bytes[at..end])
    }

    /// A number that is not negative.
    fn count(&mut self, what: &'static str) -> Result<usize, ImatrixError> {
        let at = self.at;
        let bytes = self.take(what, 4)?;
        let value = bytes.first_chunk().map_or(0, |b| i32::from_le_bytes(*b));
        usize::try_from(value).map_err(|_| ImatrixError::Count { what, at, value })
    }
}
