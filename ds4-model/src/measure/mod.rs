//! How fast a model is: prefill and decode where the context grows, and pictures of it.
//!
//! ```
//! use ds4_model::measure::{Bench, Frontiers, Growth};
//! use ds4_model::{Engine, Options};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), ds4_model::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
//! let engine = Engine::open(path, Options::default())?;
//! let mut bench = Bench::new(&engine, vec![7; 32], 1 << 30)?;
//! for frontier in Frontiers::new(16, 32, Growth::By(16)).expect("16, then 32") {
//!     let read = bench.prefill(frontier, &mut |_, _| ControlFlow::Continue(()))?;
//!     let drawn = bench.decode(4, true, &mut |_, _| ControlFlow::Continue(()))?;
//!     assert_eq!((read.tokens, drawn.tokens.len()), (16, 4));
//! }
//! # Ok(())
//! # }
//! ```

pub mod chart;
mod frontier;

pub use frontier::{Bench, Decode, FrontierError, Frontiers, Growth, Prefill, hash};
