//! Tensor names to typed handles, every shape checked before anything runs.
//!
//! Matrices stay packed in the file's mapping; vectors (norms, biases, sinks) are decoded once to f32.
//! All problems of a file are reported in one error, so that a user sees the whole list and not the first line of it.

mod deepseek4;
mod load;
mod names;

use std::fmt;
use std::ops::ControlFlow;

pub use deepseek4::{Compressor, Hyper, Indexer, Layer, Model, Selection};
use ds4_gguf::{Gguf, TensorType};
use ds4_quant::Matrix;
pub(crate) use names::spellings;

/// Handle of a packed matrix of one [`Weights`]; another's may name something else or panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixId(u32);

/// Handle of a decoded f32 vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorId(u32);

/// Handle of an integer table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId(u32);

/// One packed matrix, or a stack of `slices` equal ones (experts).
#[derive(Clone, Debug)]
pub struct MatrixInfo {
    /// Tensor name in the file.
    pub name: Box<str>,
    /// Packed type.
    pub ty: TensorType,
    /// Output rows of one slice.
    pub rows: usize,
    /// Input columns.
    pub cols: usize,
    /// Experts; 1 for a plain matrix.
    pub slices: usize,
    /// Index into [`Gguf::tensors`].
    tensor: usize,
}

impl MatrixInfo {
    /// Bytes of one slice.
    pub fn slice_bytes(&self) -> usize {
        self.cols / self.ty.block_len() * self.ty.block_bytes() * self.rows
    }
}

/// All weights of one model: the open file, and handles into it.
pub struct Weights {
    gguf: Gguf,
    matrices: Vec<MatrixInfo>,
    vectors: Vec<Box<[f32]>>,
    tables: Vec<Box<[i32]>>,
    /// Tensors of the file that the model does not use (draft layers, vision parts, …).
    unused: Vec<Box<str>>,
}

impl Weights {
    /// The file behind the weights.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// Name, type and shape of a matrix.
    ///
    /// # Panics
    /// When the handle is of other weights.
    pub fn info(&self, id: MatrixId) -> &MatrixInfo {
        &self.matrices[id.0 as usize]
    }

    /// A plain matrix `[rows, cols]`, or all slices of a stack as one tall matrix.
    ///
    /// # Panics
    /// When the handle is of other weights.
    pub fn matrix(&self, id: MatrixId) -> Matrix<'_> {
        let info = self.info(id);
        let bytes = self.gguf.tensor_at(info.tensor).bytes;
        Matrix::new(info.ty, info.rows * info.slices, info.cols, bytes)
            .expect("shapes are checked when loading")
    }

    /// Slice `index` of a stack of experts, `[rows, cols]`.
    ///
    /// # Panics
    /// When `index` is not below the number of slices; routers are checked when the model loads.
    pub fn slice(&self, id: MatrixId, index: usize) -> Matrix<'_> {
        let rows = self.info(id).rows;
        self.matrix(id).part(index * rows, (index + 1) * rows)
    }

    /// A decoded vector.
    ///
    /// # Panics
    /// When the handle is of other weights.
    pub fn vector(&self, id: VectorId) -> &[f32] {
        &self.vectors[id.0 as usize]
    }

    /// An integer table, row-major.
    ///
    /// # Panics
    /// When the handle is of other weights.
    pub fn table(&self, id: TableId) -> &[i32] {
        &self.tables[id.0 as usize]
    }

    /// Every packed matrix of the model, in loading order.
    pub fn matrices(&self) -> impl Iterator<Item = (MatrixId, &MatrixInfo)> {
        self.matrices
            .iter()
            .enumerate()
            .map(|(i, info)| (MatrixId(i as u32), info))
    }

    /// Names of tensors in the file that this model does not use.
    pub fn unused(&self) -> &[Box<str>] {
        &self.unused
    }

    /// Bytes of the packed matrices: what is read through the mapping while the model runs.
    pub fn mapped_bytes(&self) -> u64 {
        let bytes = |info: &MatrixInfo| self.gguf.tensors()[info.tensor].extent.bytes;
        self.matrices.iter().map(bytes).sum()
    }

    /// Bytes of vectors and tables, which were decoded into memory of their own.
    pub fn decoded_bytes(&self) -> u64 {
        let vectors: usize = self.vectors.iter().map(|v| size_of_val(&v[..])).sum();
        let tables: usize = self.tables.iter().map(|t| size_of_val(&t[..])).sum();
        (vectors + tables) as u64
    }

    /// Read one byte of every page of the packed matrices, so that the first steps need not wait for the disk.
    /// `on(done, total)` hears of bytes after every few of them and may stop the work, which is no error.
    pub fn warm(&self, mut on: impl FnMut(u64, u64) -> ControlFlow<()>) {
        const PAGE: usize = 4096;
        const PART: usize = 16 << 20;
        let total = self.mapped_bytes();
        let mut done = 0;
        for info in &self.matrices {
            for part in self.gguf.tensor_at(info.tensor).bytes.chunks(PART) {
                let sum: u64 = part.iter().step_by(PAGE).map(|&b| u64::from(b)).sum();
                std::hint::black_box(sum);
                done += part.len() as u64;
                if on(done, total).is_break() {
                    return;
                }
            }
        }
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights")
            .field("path", &self.gguf.path())
            .field("matrices", &self.matrices.len())
            .field("vectors", &self.vectors.len())
            .finish_non_exhaustive()
    }
}

/// One thing wrong with the tensors of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No tensor of this name, nor of an older spelling.
    Missing {
        /// Expected name.
        tensor: Box<str>,
    },
    /// The dimensions are not those the configuration asks for.
    Shape {
        /// Tensor name in the file.
        tensor: Box<str>,
        /// Dimensions in the file, `ne` order.
        found: Box<str>,
        /// Dimensions wanted, `ne` order.
        expected: Box<str>,
    },
    /// This engine has no arithmetic for the type in this place.
    Type {
        /// Tensor name in the file.
        tensor: Box<str>,
        /// Type in the file.
        found: Box<str>,
        /// Types that would do.
        expected: Box<str>,
    },
    /// A value inside the tensor is out of range.
    Content {
        /// Tensor name in the file.
        tensor: Box<str>,
        /// Index of the first bad value.
        index: usize,
        /// What was found.
        found: Box<str>,
        /// What would be accepted.
        expected: Box<str>,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing { tensor } => write!(f, "`{tensor}` is missing"),
            Problem::Shape {
                tensor,
                found,
                expected,
            } => write!(f, "`{tensor}` is {found}, expected {expected}"),
            Problem::Type {
                tensor,
                found,
                expected,
            } => {
                write!(f, "`{tensor}` has type {found}, expected {expected}")
            }
            Problem::Content {
                tensor,
                index,
                found,
                expected,
            } => {
                write!(f, "`{tensor}`[{index}] is {found}, expected {expected}")
            }
        }
    }
}

/// Everything wrong with the tensors of one file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsError {
    /// All problems, in loading order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of the model's tensors cannot be used:",
            self.problems.len()
        )?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WeightsError {}
