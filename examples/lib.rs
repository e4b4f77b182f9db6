//! Runnable examples of ds4: `cargo run --release --example NAME`.
//!
//! | example | shows |
//! | --- | --- |
//! | `inspect` | what is in a GGUF |
//! | `dequantize` | one tensor as 32-bit floats |
//!
//! Those that need a model use the demo model of the repository unless they are given one.

/// The demo model of this repository.
pub const DEMO_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
