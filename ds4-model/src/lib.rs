//! DeepSeek-V4 inference: recorded graph, CPU executor, tokenizer, chat and sessions.
pub mod chat;
pub mod sample;
pub mod stop;
pub mod tokenizer;

pub use sample::{Sampled, Sampler};
pub use stop::{Cut, Stop, StopMatcher};
pub use tokenizer::{Token, Tokenizer};
