//! DeepSeek-V4 inference: recorded graph, CPU executor, tokenizer, chat and sessions.
pub mod arch;
pub mod chat;
pub mod config;
mod engine;
mod error;
pub mod exec;
mod generate;
pub mod graph;
mod options;
pub mod sample;
mod session;
mod snapshot;
pub mod stop;
pub mod tokenizer;
pub mod weights;

pub use chat::Message;
pub use ds4_quant::Precision;
pub use engine::Engine;
pub use error::Error;
pub use exec::{NoTap, Tap, Values};
pub use generate::{Finish, Generation, Piece};
pub use options::Options;
pub use sample::{Sampled, Sampler};
pub use session::{Logits, Reused, Session};
pub use snapshot::{Fingerprint, SnapshotError};
pub use stop::{Cut, Stop, StopMatcher};
pub use tokenizer::{Token, Tokenizer};
