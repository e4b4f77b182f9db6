//! Runnable examples of ds4: `cargo run --release --example NAME`.
//!
//! | example | shows |
//! | --- | --- |
//! | `embed` | the snippet of the README |
//! | `chat` | a conversation in the terminal |
//! | `inspect` | what is in a GGUF |
//! | `dequantize` | one tensor as 32-bit floats |
//! | `quantize` | one tensor in few bits, and what each type loses |
//! | `requantize` | a whole file from MXFP4 to Q2_K |
//! | `tokenize` | text to token ids and back |
//! | `logits` | logits of every position, as a file |
//! | `tap_layers` | values inside the layers while they run |
//! | `dump_graph` | the recorded graph, for Graphviz |
//!
//! Those that need a model use the demo model of the repository unless they are given one.

/// The demo model of this repository.
pub const DEMO_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
