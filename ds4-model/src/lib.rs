//! DeepSeek-V4 inference: recorded graph, CPU executor, tokenizer, chat and sessions.
pub mod chat;
pub mod tokenizer;
