//! Model families as recorded graphs: each file writes the paper's lines and nothing about memory, threads or devices.

pub mod deepseek4;
