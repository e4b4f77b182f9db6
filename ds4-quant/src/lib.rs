//! Codecs for packed model weights, and products with them.
//!
//! ```
//! use ds4_gguf::TensorType;
//! use ds4_quant::{Activations, Matrix, Pool, Precision, codec, matmul};
//!
//! # fn main() -> Result<(), ds4_quant::Error> {
//! // Two rows of 32 weights as Q8_0: a scale of 1.0 (f16) and signed bytes.
//! let mut packed = [[0u8; 34]; 2];
//! for (r, block) in packed.iter_mut().enumerate() {
//!     block[..2].copy_from_slice(&[0x00, 0x3c]);
//!     block[2..].fill(r as u8 + 1);
//! }
//! let bytes = packed.as_flattened();
//!
//! let mut row = [0.0; 32];
//! let q8_0 = codec(TensorType::Q8_0).expect("Q8_0 is known");
//! q8_0.decode(&bytes[34..], &mut row)?;
//! assert_eq!(row, [2.0; 32]);
//!
//! let w = Matrix::new(TensorType::Q8_0, 2, 32, bytes)?;
//! let x = Activations::new(&[1.0; 32], 1, 32, Precision::Exact)?;
//! let mut y = [0.0; 2];
//! matmul(&Pool::new(2)?, w, &x, &mut y)?;
//! assert_eq!(y, [32.0, 64.0]);
//! # Ok(()) }
//! ```
//!
//! * [`codec`] gives the [`Codec`] of a type: bytes → numbers, numbers → bytes. [`encode_rows`] does whole matrices.
//! * [`Matrix`] and [`Activations`] are the two sides of [`matmul`]; [`Pool`] has the threads, [`Precision`] the arithmetic.
//! * [`row_scores`] and [`weighted_rows`] are the two halves of attention, over rows of plain numbers.
//! * [`recipe`] decides types, [`quantize`] writes a new file, [`requant`] rewrites one in its place; [`Imatrix`] says
//!   which columns matter, [`Difference`] what was lost.
//!
//! | types | |
//! |---|---|
//! | F32, F16, BF16; Q4_0, Q8_0; Q2_K to Q6_K | decoded, encoded |
//! | IQ2_S, IQ3_XXS, IQ3_S, IQ4_NL, IQ4_XS, MXFP4, NVFP4 | decoded, encoded |
//! | IQ2_XXS, IQ2_XS | decoded; encoded with importance only ([`recipe::demands_importance`]) |
//! | ROCmFP2 (three layouts), ROCmFP3, ROCmFP4, ROCmFP4-fast, ROCmFP6, ROCmFP8, ROCmI4 | decoded, encoded |
//! | ROCmFP3-mix, ROCmFP2-mix | decoded with their codebooks: [`MixTables`] |
//!
//! Shapes are `[rows, cols]`: outputs and inputs of a matrix, the file's extents in reverse. Feature `rayon` (default)
//! gives [`Pool`] more than one thread; instruction sets are found while the program runs ([`Isa`]).
//! Sources: ggml-org/llama.cpp:ggml/src/ggml-quants.c, ggml-common.h; ciru-ai/ROCmFPX; Luce-Org/lucebox.
//!
//! A number `y[t, r]` depends on row r of the weights and row t of the activations alone: the same bits come out for
//! any number of threads, any number of rows in the call and any instruction set.

mod accumulate;
mod activations;
mod codebook;
mod codec;
mod encode;
mod error;
mod format;
mod imatrix;
mod layout;
mod matmul;
mod matrix;
mod measure;
mod pool;
pub mod quantize;
pub mod recipe;
pub mod requant;
mod rows;
mod search;
mod simd;
mod transcode;

pub use activations::{Activations, Precision};
pub use codec::{Codec, codec};
pub use encode::{encode_rows, encode_rows_with};
pub use error::Error;
pub use format::rocm_mix::{MixError, MixTable, MixTables};
pub use imatrix::{Imatrix, ImatrixError};
pub use layout::c_header;
pub use matmul::{Job, matmul, matmul_many, matmul_with};
pub use matrix::Matrix;
pub use measure::Difference;
pub use pool::Pool;
pub use quantize::QuantizeError;
pub use rows::{row_scores, weighted_rows};
pub use simd::{Isa, dot_f32};
pub use transcode::{CLAMP, NonFinite};
