//! What a model makes of a text, number by number: for comparisons with other engines, and with itself.
//!
//! ```
//! use std::ops::ControlFlow;
//! use ds4_model::{Engine, Options, diagnose};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
//! let engine = Engine::open(path, Options::default())?;
//! let prompt = engine.render(&[ds4_model::Message::user("What is the capital of France?")])?;
//! let consistency = diagnose::consistency(&engine, &prompt, 4, &mut |_, _| ControlFlow::Continue(()))?;
//! assert_eq!(consistency.largest, 0.0, "read at once or token by token, the bits are the same");
//! # Ok::<(), ds4_model::Error>(())
//! ```

mod consistency;
mod dump;
mod experts;
mod perplexity;

pub use consistency::{Consistency, consistency};
pub use dump::{Tokens, logits, logprobs};
pub use experts::ExpertUse;
pub use perplexity::{GIVEN, Perplexity, perplexity};
