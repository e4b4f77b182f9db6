//! What can go wrong between a model and its experts.

use crate::Role;

/// What can go wrong between a model and its experts. Every variant names the layer and what was expected there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file itself cannot be read.
    #[error(transparent)]
    Gguf(#[from] ds4_gguf::Error),
    /// A layer has some of the three expert tensors and lacks another.
    #[error("layer {layer} has no tensor `{name}`, which its other expert tensors ask for")]
    Missing {
        /// The layer.
        layer: u32,
        /// The tensor that was looked for.
        name: Box<str>,
    },
    /// An expert tensor is no stack of matrices.
    #[error(
        "tensor `{name}` is {dims}, expected [inputs × outputs × experts] with 1 to {most} experts"
    )]
    Shape {
        /// The tensor.
        name: Box<str>,
        /// Its shape.
        dims: Box<str>,
        /// The largest number of experts an id can name.
        most: u64,
    },
    /// The three tensors of a layer do not describe the same experts.
    #[error(
        "layer {layer}: {role} is {found} per expert, gate and the other tensors ask for {expected}"
    )]
    Disagree {
        /// The layer.
        layer: u32,
        /// Which tensor differs.
        role: Role,
        /// Its shape.
        found: Box<str>,
        /// The shape that fits gate.
        expected: Box<str>,
    },
    /// The type of an expert tensor has no known size.
    #[error("tensor `{name}` has type {ty}, whose size is unknown")]
    Type {
        /// The tensor.
        name: Box<str>,
        /// ggml's number of the type.
        ty: u32,
    },
    /// A layer without routed experts was asked for some.
    #[error("layer {layer} has no routed experts; {count} other layers do")]
    NoLayer {
        /// The layer.
        layer: u32,
        /// How many layers have experts.
        count: usize,
    },
    /// An expert that the layer does not have.
    #[error("layer {layer} has experts 0..{count}, expert {expert} was asked for")]
    NoExpert {
        /// The layer.
        layer: u32,
        /// What was asked for.
        expert: u16,
        /// How many there are.
        count: u32,
    },
}
