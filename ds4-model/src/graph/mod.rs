//! The recorded graph: a flat list of model operations that every executor runs.
//!
//! A model file records its maths once through [`Builder`]; the list is checked ([`check`]), rewritten by named rules
//! ([`fuse`]), given memory ([`Plan`]) and run. Prefill and decode are the same list with another row count.
//! Insertion order is execution order; a node's inputs are older than the node; a value is written once.

mod build;
mod check;
mod dump;
mod fuse;
mod op;
mod plan;
mod state;

use std::fmt;

pub use build::Builder;
pub use check::{GraphError, check};
pub use dump::{to_dot, to_json};
pub use fuse::fuse;
pub use op::{Dtype, Op, Rounding, Rows, Shape, StateId, Tid, Turn};
pub use plan::{Plan, Slot};
pub use state::{Keep, StateKind, StateLayout, StateSpec};

/// Name of a node: `l07.attn.q` (layer 7) or `head.norm`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(Box<str>);

impl NodeName {
    /// A name with its layer, when it belongs to one.
    pub fn new(layer: Option<usize>, name: &str) -> Self {
        Self(match layer {
            Some(layer) => format!("l{layer:02}.{name}").into(),
            None => name.into(),
        })
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One operation with its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in the graph.
    pub name: NodeName,
    /// What is computed.
    pub op: Op,
    /// Values read, in the order the op documents.
    pub inputs: Vec<Tid>,
    /// Values written, in the order the op documents; several only for routers and fused linears.
    pub outputs: Vec<Tid>,
}

/// A value: its shape, and the name a tap sees it under.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// `node name` for a first output, `node name.suffix` for further ones.
    pub name: NodeName,
    /// Shape and element type.
    pub shape: Shape,
}

/// A recorded model.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) values: Vec<ValueInfo>,
    pub(crate) states: StateLayout,
    pub(crate) logits: Tid,
}

impl Graph {
    /// Operations in execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The same values and states under another list of operations, for rewriting rules and tests; [`check`] it.
    #[must_use]
    pub fn with_nodes(&self, nodes: Vec<Node>) -> Self {
        Self {
            nodes,
            ..self.clone()
        }
    }

    /// All values; a [`Tid`] is an index into this list.
    pub fn values(&self) -> &[ValueInfo] {
        &self.values
    }

    /// Shape of one value.
    ///
    /// # Panics
    /// When the handle is of another graph.
    pub fn shape(&self, t: Tid) -> Shape {
        self.values[t.0 as usize].shape
    }

    /// Persistent memory the graph works on.
    pub fn states(&self) -> &StateLayout {
        &self.states
    }

    /// The value that holds the logits, `[head rows, vocab]`.
    pub fn logits(&self) -> Tid {
        self.logits
    }
}
