//! Read and write GGUF files: memory-mapped, zero-copy, hostile input is an ordinary case.
//!
//! ```
//! use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
//!
//! // A small model in memory; `Gguf::open(path)` maps a file, or every file of a split model.
//! let mut metadata = Metadata::new();
//! metadata.set("general.architecture", "deepseek4");
//! let mut plan = Plan::new(metadata)?;
//! plan.add("output_norm.weight", &[4], TensorType::F32)?;
//! let mut writer = Writer::new(Vec::new(), plan)?;
//! writer.tensor("output_norm.weight", &[0; 16])?;
//!
//! let model = Gguf::from_vec(writer.finish()?)?;
//! assert_eq!(model.metadata().get::<&str>("general.architecture")?, "deepseek4");
//! for info in model.tensors() {
//!     assert_eq!(format!("{} {} {}", info.name, info.ty, info.dims), "output_norm.weight F32 4");
//! }
//! assert_eq!(model.tensor("output_norm.weight")?.blocks::<f32>()?, [0.0; 4]);
//! # Ok::<(), ds4_gguf::Error>(())
//! ```
//!
//! * [`Gguf`] is an open model: [`Metadata`], a table of [`TensorInfo`], and the bytes of each [`Tensor`].
//! * [`TensorType`] names a block format and its size. The maths of the formats is not known here.
//! * [`Plan`] and [`Writer`] make files: all shapes first, then the data as a stream.
//! * [`NewFile`] is a sink whose name appears when the file is whole; [`Rewrite`], [`Split`] and [`Edit`] copy, cut and
//!   edit models.
//! * [`RocmFp2Decision`] says which of three layouts a file means by type id 107.
//!
//! Shapes stand as in the file, fastest extent first: a weight from `in` to `out` is `[in, out]`, that is `out` rows of
//! `in` weights ([`Dims`]).
//!
//! Versions 2 and 3, little endian. Whatever a file contains, opening it returns a value or an [`Error`] that names
//! key, tensor and offset; memory is bounded by [`Limits`]. A tensor type that nobody knows does not stop a file from
//! opening: [`Gguf::unsupported_tensors`] lists all of them at once.
//!
//! Feature `mmap` (default) gives `Gguf::open`; without it models come from memory.
//!
//! Sources: [the format](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md); types:
//! ggml-org/llama.cpp:ggml/include/ggml.h and ciru-ai/ROCmFPX:ggml/include/ggml.h; split files:
//! ggml-org/llama.cpp:tools/gguf-split.

mod array;
mod bytes;
mod convert;
mod cursor;
mod dims;
mod directory;
mod edit;
mod error;
mod gguf;
#[cfg(feature = "mmap")]
mod map;
mod metadata;
mod new_file;
mod rewrite;
mod rocmfp2;
mod shard;
mod split;
mod tensor;
mod ty;
mod value;
mod write;

pub use array::{Array, ArrayBuf, Items, Strings};
pub use convert::{FromValue, Item, Mismatch};
pub use dims::Dims;
pub use directory::{Limits, UNFINISHED, is_unfinished};
pub use edit::{Edit, Given};
pub use error::{Error, FileName, Malformed};
pub use gguf::{Gguf, OpenOptions};
pub use metadata::Metadata;
pub use new_file::{NewFile, SealedFile, sync_folder};
pub use rewrite::{Copied, Rewrite};
pub use rocmfp2::{DecidedBy, RocmFp2Decision, Statistics};
pub use shard::Shard;
pub use split::{Limit, Split};
pub use tensor::{Extent, Reason, Tensor, TensorInfo, Unsupported};
pub use ty::{RocmFp2Layout, TensorType};
pub use value::{Text, Value, ValueType};
pub use write::{Plan, Writer};
