//! The DeepSeek-V4 graph on the CPU, against outside truth and against itself.

mod dialects;
mod golden;
mod graph;
mod logits;
mod session;
