//! DeepSeek-V4 inference: recorded graph, CPU executor, tokenizer, chat and sessions.
//!
//! ```
//! use ds4_model::{Engine, Message, Options, Sampler};
//!
//! # fn main() -> Result<(), ds4_model::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
//! let engine = Engine::open(path, Options::default())?;
//! let mut session = engine.session()?;
//! session.sync(&engine.render(&[Message::user("What is the capital of France?")])?)?;
//! let (mut sampler, stops) = (Sampler::default(), engine.stops());
//! let mut answer = String::new();
//! for piece in session.generate(&mut sampler, &stops) {
//!     answer += &piece?.text;
//! }
//! assert_eq!(answer, "The capital of France is Paris.");
//! # Ok(())
//! # }
//! ```
//!
//! From file to answer:
//!
//! | step | module |
//! |---|---|
//! | metadata → typed numbers | [`config`] |
//! | tensor names → checked handles | [`weights`] |
//! | the paper's lines → a list of operations | [`arch`], [`graph`] |
//! | the list → numbers | [`exec`] |
//! | messages → prompt; text ↔ tokens | [`chat`], [`tokenizer`] |
//! | one timeline: prefix reuse, rewind, snapshots | [`Session`] |
//! | logits → tokens → text, and when to stop | [`sample`], [`stop`], [`Generation`] |
//! | many answers at once, kept timelines | [`serve`] |
//! | question after question on one timeline | [`Dialogue`] |
//! | a conversation in a file, to go on with later | [`Saved`] |
//!
//! Start with [`Engine`], [`Session`] and [`Generation`]; everything below [`exec`] can be left alone. Beside the way from
//! file to answer:
//!
//! | question | module |
//! |---|---|
//! | what is in a file, what a token reads | [`inspect`] |
//! | what it needs of memory | [`fit`] |
//! | what it makes of a prompt, number by number | [`diagnose`] |
//! | what a quantization will give | [`forecast`] |
//! | which columns matter | [`imatrix`] |
//! | what a quantization cost | [`compare`] |
//! | a Hugging Face checkpoint as GGUF | [`convert`] |
//! | how fast a model is, over its context | [`measure`] |
//! | how many questions a model answers right | [`eval`] |
//!
//! Feature `hip`: kernels for AMD GPUs and their launchers, [`hip`]; not yet used by an executor.
//!
//! Feature `jinja` (default): the chat templates of files of unknown architecture.
//!
//! Results do not depend on the number of threads, nor on how a prompt is cut into steps: same file, same options, same
//! seed, same tokens.

pub mod arch;
pub mod chat;
pub mod compare;
pub mod config;
pub mod convert;
pub mod diagnose;
mod dialogue;
mod engine;
mod error;
pub mod eval;
pub mod exec;
pub mod fit;
mod fnv;
pub mod forecast;
mod generate;
#[cfg(feature = "grammar")]
pub mod grammar;
pub mod graph;
#[cfg(feature = "hip")]
pub mod hip;
pub mod imatrix;
pub mod inspect;
pub mod measure;
mod options;
mod reading;
pub mod sample;
mod saved;
pub mod serve;
mod session;
mod snapshot;
pub mod stop;
pub mod tokenizer;
pub mod weights;

pub use chat::Message;
pub use dialogue::Dialogue;
pub use ds4_quant::Precision;
pub use engine::Engine;
pub use error::{Error, with_causes};
pub use exec::{NoTap, Tap, Values};
pub use generate::{Finish, Generation, Piece};
pub use options::Options;
pub use reading::Reading;
pub use sample::{Sampled, Sampler};
pub use saved::{Saved, SavedError};
pub use session::{Logits, Progress, Reused, Session};
pub use snapshot::{Fingerprint, SnapshotError};
pub use stop::{Cut, Stop, StopMatcher};
pub use tokenizer::{Token, Tokenizer};
