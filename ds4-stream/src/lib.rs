//! Where the routed experts of a mixture-of-experts model lie in a GGUF, and how a model gets at them.
//!
//! [`ExpertMap`] knows for each layer and expert the three byte ranges (gate, up, down) it consists of. A model asks an [`ExpertSource`]
//! for the experts its router chose and computes with the bytes of the [`Lease`]. [`Resident`] serves them straight from the
//! mapped file; a source that keeps a part of them in memory and reads the rest from SSD is planned behind the same trait.
//!
//! ```no_run
//! use ds4_gguf::Gguf;
//! use ds4_stream::{ExpertSource, Resident};
//!
//! let mut source = Resident::new(Gguf::open("model.gguf")?)?;
//! let map = source.map();
//! println!("{} layers, the largest expert has {} bytes", map.layers().count(), map.largest_expert());
//! let lease = source.acquire(3, &[17, 4])?;
//! assert_eq!(lease.experts()[0].id, 17);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod map;
mod resident;
mod source;

pub use error::Error;
pub use map::{ExpertMap, Layer, Part, Role, Span};
pub use resident::Resident;
pub use source::{Expert, ExpertSource, Lease, Stats};
