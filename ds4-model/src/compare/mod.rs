//! Two models side by side: their weights, and what they say about a text.
//!
//! [`tensors`] decodes both files chunk by chunk of rows, whatever their types. [`text`] lets both models read a text and
//! compares their distributions over the next token: the divergence `KL(a ‖ b) = Σ p_a · ln(p_a / p_b)` in nats, how
//! often both have the same favourite, and the perplexity `exp(−mean ln p(next token))` of each.

mod tensors;
mod text;

pub use tensors::{CompareError, Compared, Tensors, tensors};
pub use text::{ROWS, Text, text};
