//! Where the routed experts of a mixture-of-experts model lie in a GGUF, and how a model gets at them.
//!
//! [`ExpertMap`] knows for each layer and expert the three byte ranges (gate, up, down) it consists of. A model asks an [`ExpertSource`]
//! for the experts its router chose and computes with the bytes of the [`Lease`]. [`Resident`] serves them straight from the
//! mapped file; a source that keeps a part of them in memory and reads the rest from SSD is planned behind the same trait.
//!
//! ```
//! use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
//! use ds4_stream::{ExpertSource, Resident};
//!
//! // One layer of two experts; `Gguf::open(path)` maps a real model.
//! let mut plan = Plan::new(Metadata::new())?;
//! for role in ["gate", "up", "down"] {
//!     plan.add(&format!("blk.0.ffn_{role}_exps.weight"), &[32, 32, 2], TensorType::Q8_0)?;
//! }
//! let mut writer = Writer::new(Vec::new(), plan)?;
//! for value in 1..=3 {
//!     writer.write(&[value; 2 * 32 * 34])?;
//! }
//! let mut source = Resident::new(Gguf::from_vec(writer.finish()?)?)?;
//! assert_eq!(source.map().largest_expert(), 3 * 32 * 34);
//!
//! let part = &source.map().layer(0)?.parts[0];
//! let (ty, rows, cols) = (part.ty, part.rows as usize, part.cols as usize);
//! let lease = source.acquire(0, &[1])?;
//! let gate = lease.experts()[0].gate; // what `ds4_quant::Matrix::new(ty, rows, cols, gate)` takes
//! assert_eq!(gate.len(), rows * cols / ty.block_len() * ty.block_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing in ds4-model uses this crate yet.

mod error;
mod map;
mod resident;
mod source;

pub use error::Error;
pub use map::{ExpertMap, Layer, Part, Role, Span};
pub use resident::Resident;
pub use source::{Expert, ExpertSource, Lease, Stats};
