//! Takes tensors out of a file by name, checks them, and collects what is wrong.

use std::collections::HashSet;

use ds4_gguf::{Gguf, TensorInfo, TensorType};

use super::names::spellings;
use super::{MatrixId, MatrixInfo, Problem, TableId, VectorId, Weights, WeightsError};

/// Loader state. Methods return a handle even when the tensor is bad: the handle is never used then,
/// because [`Loader::finish`] fails.
pub(super) struct Loader<'a> {
    gguf: &'a Gguf,
    matrices: Vec<MatrixInfo>,
    vectors: Vec<Box<[f32]>>,
    tables: Vec<Box<[i32]>>,
    used: HashSet<usize>,
    problems: Vec<Problem>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(gguf: &'a Gguf) -> Self {
        Self {
            gguf,
            matrices: Vec::new(),
            vectors: Vec::new(),
            tables: Vec::new(),
            used: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// Packed matrix `[rows, cols]` (`ne = [cols, rows]`).
    pub(super) fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> MatrixId {
        self.stack(name, rows, cols, 1)
    }

    /// `slices` packed matrices `[rows, cols]` one after the other (`ne = [cols, rows, slices]`).
    pub(super) fn stack(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
        slices: usize,
    ) -> MatrixId {
        let id = MatrixId(self.matrices.len() as u32);
        let mut entry = MatrixInfo {
            name: name.into(),
            ty: TensorType::F32,
            rows,
            cols,
            slices,
            tensor: 0,
        };
        if let Some((index, info)) = self.take(name) {
            let same = info.dims.elements() == (rows * cols * slices) as u64
                && info.dims.cols() == cols as u64;
            if !same {
                self.wrong_shape(info, &[cols, rows, slices]);
            } else if ds4_quant::codec(info.ty).is_none() {
                self.wrong_type(info, "a type this build decodes");
            }
            entry = MatrixInfo {
                name: info.name.clone(),
                ty: info.ty,
                tensor: index,
                ..entry
            };
        }
        self.matrices.push(entry);
        id
    }

    /// Values `[len]`, or a small matrix flattened row by row, decoded to f32.
    pub(super) fn vector(&mut self, name: &str, dims: &[usize]) -> VectorId {
        let values = match self.take(name) {
            Some((index, info)) => self.decode(index, info, dims),
            None => Box::default(),
        };
        self.keep(values)
    }

    /// As [`Loader::vector`], but absence is fine.
    pub(super) fn optional_vector(&mut self, name: &str, dims: &[usize]) -> Option<VectorId> {
        let (index, info) = self.lookup(name)?;
        let values = self.decode(index, info, dims);
        Some(self.keep(values))
    }

    /// Integers `[rows, cols]` (`ne = [cols, rows]`), each in `0..below`.
    pub(super) fn table(&mut self, name: &str, rows: usize, cols: usize, below: usize) -> TableId {
        let mut values: Box<[i32]> = Box::default();
        if let Some((index, info)) = self.take(name) {
            if info.dims.as_slice() != [cols as u64, rows as u64] {
                self.wrong_shape(info, &[cols, rows]);
            } else if info.ty != TensorType::I32 {
                self.wrong_type(info, "I32");
            } else {
                let bytes = self.gguf.tensor_at(index).bytes;
                values = bytes
                    .chunks_exact(4)
                    .map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect();
                let bad = values
                    .iter()
                    .position(|&v| usize::try_from(v).map_or(true, |v| v >= below));
                if let Some(index) = bad {
                    self.problems.push(Problem::Content {
                        tensor: info.name.clone(),
                        index,
                        found: values[index].to_string().into(),
                        expected: format!("0 to {}", below - 1).into(),
                    });
                }
            }
        }
        self.tables.push(values);
        TableId(self.tables.len() as u32 - 1)
    }

    /// Mark tensors as known to the format but not needed here.
    pub(super) fn ignore(&mut self, name: &str) {
        self.lookup(name);
    }

    /// The weights, when every tensor asked for was there and right.
    pub(super) fn finish(self) -> Result<Weights, WeightsError> {
        if !self.problems.is_empty() {
            return Err(WeightsError {
                problems: self.problems,
            });
        }
        let all = self.gguf.tensors().iter().enumerate();
        let unused = all
            .filter(|(i, _)| !self.used.contains(i))
            .map(|(_, info)| info.name.clone())
            .collect();
        Ok(Weights {
            gguf: self.gguf.clone(),
            matrices: self.matrices,
            vectors: self.vectors,
            tables: self.tables,
            unused,
        })
    }

    fn lookup(&mut self, name: &str) -> Option<(usize, &'a TensorInfo)> {
        let index = spellings(name).find_map(|n| self.gguf.index_of(&n))?;
        self.used.insert(index);
        Some((index, &self.gguf.tensors()[index]))
    }

    fn take(&mut self, name: &str) -> Option<(usize, &'a TensorInfo)> {
        let found = self.lookup(name);
        if found.is_none() {
            self.problems.push(Problem::Missing {
                tensor: name.into(),
            });
        }
        found
    }

    fn keep(&mut self, values: Box<[f32]>) -> VectorId {
        self.vectors.push(values);
        VectorId(self.vectors.len() as u32 - 1)
    }

    fn decode(&mut self, index: usize, info: &'a TensorInfo, dims: &[usize]) -> Box<[f32]> {
        let wanted: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        // Trailing dimensions of 1 are written or not, depending on the producer.
        let trimmed = |d: &[u64]| d.iter().rposition(|&n| n != 1).map_or(0, |last| last + 1);
        let found = info.dims.as_slice();
        if found[..trimmed(found)] != wanted[..trimmed(&wanted)] {
            self.wrong_shape(info, dims);
            return Box::default();
        }
        let Some(codec) = ds4_quant::codec(info.ty) else {
            self.wrong_type(info, "F32, F16 or BF16");
            return Box::default();
        };
        let mut values = vec![0.0; dims.iter().product()].into_boxed_slice();
        if let Err(error) = codec.decode(self.gguf.tensor_at(index).bytes, &mut values) {
            self.problems.push(Problem::Content {
                tensor: info.name.clone(),
                index: 0,
                found: error.to_string().into(),
                expected: "decodable blocks".into(),
            });
        } else if let Some(index) = values.iter().position(|v| !v.is_finite()) {
            self.problems.push(Problem::Content {
                tensor: info.name.clone(),
                index,
                found: values[index].to_string().into(),
                expected: "a finite number".into(),
            });
        }
        values
    }

    fn wrong_shape(&mut self, info: &TensorInfo, expected: &[usize]) {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        self.problems.push(Problem::Shape {
            tensor: info.name.clone(),
            found: info.dims.to_string().into(),
            expected: expected.join(" × ").into(),
        });
    }

    fn wrong_type(&mut self, info: &TensorInfo, expected: &str) {
        self.problems.push(Problem::Type {
            tensor: info.name.clone(),
            found: info.ty.name().into(),
            expected: expected.into(),
        });
    }
}
