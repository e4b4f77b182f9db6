//! Verifies a recorded graph against its own rules and against the weights, before any memory is planned.

use super::op::{Dtype, Op, Rounding, Rows, Shape, Tid};
use super::state::StateKind;
use super::{Graph, Node, NodeName};
use crate::weights::Weights;

/// A recorded graph that breaks a rule: a mistake in `arch/`, never in a file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// A value is read before the node that writes it, or never written.
    #[error("node `{node}` reads value {value} before it is written")]
    ReadBeforeWrite {
        /// Reading node.
        node: NodeName,
        /// Index of the value.
        value: u32,
    },
    /// Two nodes write one value.
    #[error("node `{node}` writes value {value} a second time")]
    WrittenTwice {
        /// Second writer.
        node: NodeName,
        /// Index of the value.
        value: u32,
    },
    /// Two nodes or values share a name.
    #[error("the name `{name}` is used twice")]
    DuplicateName {
        /// The name.
        name: NodeName,
    },
    /// A node has the wrong number of operands.
    #[error("node `{node}` has {found} {what}, its op takes {expected}")]
    Arity {
        /// Node.
        node: NodeName,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// Number in the graph.
        found: usize,
        /// Number of the op.
        expected: usize,
    },
    /// An operand or a weight does not fit.
    #[error("node `{node}`: {what} has {found} columns, expected {expected}")]
    Columns {
        /// Node.
        node: NodeName,
        /// Which operand.
        what: &'static str,
        /// Columns in the graph.
        found: u64,
        /// Columns that would fit.
        expected: u64,
    },
    /// An operand has another row count or element type than the op needs.
    #[error("node `{node}`: {what} has the wrong rows or element type")]
    Kind {
        /// Node.
        node: NodeName,
        /// Which operand.
        what: &'static str,
    },
    /// A node names a state of another kind than it works on.
    #[error("node `{node}`: state {state} is of another kind")]
    State {
        /// Node.
        node: NodeName,
        /// Index of the state.
        state: u32,
    },
}

/// Check order, arity, shapes, states and weights of every node.
///
/// # Errors
/// The first [`GraphError`] in execution order.
pub fn check(graph: &Graph, weights: &Weights) -> Result<(), GraphError> {
    let mut written = vec![false; graph.values.len()];
    let mut names = std::collections::HashSet::new();
    for node in &graph.nodes {
        if !names.insert(&node.name) {
            return Err(GraphError::DuplicateName {
                name: node.name.clone(),
            });
        }
        for &t in &node.inputs {
            if !written.get(t.0 as usize).copied().unwrap_or(false) {
                return Err(GraphError::ReadBeforeWrite {
                    node: node.name.clone(),
                    value: t.0,
                });
            }
        }
        for &t in &node.outputs {
            if std::mem::replace(&mut written[t.0 as usize], true) {
                return Err(GraphError::WrittenTwice {
                    node: node.name.clone(),
                    value: t.0,
                });
            }
        }
        Checked {
            graph,
            weights,
            node,
        }
        .op()?;
    }
    match written[graph.logits.0 as usize] {
        true => Ok(()),
        false => Err(GraphError::ReadBeforeWrite {
            node: NodeName::new(None, "logits"),
            value: graph.logits.0,
        }),
    }
}

struct Checked<'a> {
    graph: &'a Graph,
    weights: &'a Weights,
    node: &'a Node,
}

impl Checked<'_> {
    fn op(&self) -> Result<(), GraphError> {
        let node = self.node;
        match &node.op {
            Op::Embed { table } => {
                self.arity(0, 1)?;
                self.cols("output", self.out(0), self.weights.info(*table).cols)
            }
            Op::Streams { streams } => {
                self.arity(1, 1)?;
                self.cols(
                    "output",
                    self.out(0),
                    self.input(0).cols as usize * *streams as usize,
                )
            }
            Op::RmsNorm { weight, group, .. } => {
                self.arity(1, 1)?;
                self.same()?;
                self.divides("group", self.input(0), *group)?;
                match weight {
                    Some(w) => {
                        self.number("weight", self.weights.vector(*w).len(), *group as usize)
                    }
                    None => Ok(()),
                }
            }
            Op::Linear { weight } => {
                self.arity(1, 1)?;
                self.linear(*weight, 0)
            }
            Op::Linears { weights } => {
                self.arity(1, weights.len())?;
                weights
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, &w)| self.linear(w, i))
            }
            Op::GroupedLinear { weight, groups } => {
                self.arity(1, 1)?;
                let info = self.weights.info(*weight);
                self.cols("input", self.input(0), info.cols * *groups as usize)?;
                self.divides("groups", self.out(0), *groups)?;
                self.cols("output", self.out(0), info.rows)
            }
            Op::HcWeights {
                scale,
                base,
                streams,
                ..
            } => {
                self.arity(1, 1)?;
                self.same()?;
                let mixed = (2 * streams + streams * streams) as usize;
                self.cols("input", self.input(0), mixed)?;
                self.number("scale", self.weights.vector(*scale).len(), 3)?;
                self.number("base", self.weights.vector(*base).len(), mixed)
            }
            Op::HcHeadWeights { scale, base, .. } => {
                self.arity(1, 1)?;
                self.same()?;
                self.number("scale", self.weights.vector(*scale).len(), 1)?;
                self.number(
                    "base",
                    self.weights.vector(*base).len(),
                    self.input(0).cols as usize,
                )
            }
            Op::HcCollapse { streams } => {
                self.arity(2, 1)?;
                self.cols(
                    "streams",
                    self.input(0),
                    (self.out(0).cols * streams) as usize,
                )?;
                match self.input(1).cols >= *streams {
                    true => Ok(()),
                    false => self.cols("weights", self.input(1), *streams as usize),
                }
            }
            Op::HcExpand { streams } => {
                self.arity(3, 1)?;
                self.same()?;
                self.cols(
                    "streams",
                    self.input(0),
                    (self.input(1).cols * streams) as usize,
                )?;
                self.cols(
                    "weights",
                    self.input(2),
                    (2 * streams + streams * streams) as usize,
                )
            }
            Op::RopeTail {
                heads, rope_dim, ..
            } => {
                self.arity(1, 1)?;
                self.same()?;
                self.divides("heads", self.input(0), *heads)?;
                let dim = self.input(0).cols / heads;
                match *rope_dim <= dim {
                    true => Ok(()),
                    false => self.number("rotary channels", *rope_dim as usize, dim as usize),
                }
            }
            Op::Round { dim, rounding } => {
                self.arity(1, 1)?;
                self.same()?;
                self.divides("group", self.input(0), *dim)?;
                match *rounding {
                    Rounding::Kv { exact } => {
                        self.number("FP8 remainder", dim.saturating_sub(exact) as usize % 64, 0)
                    }
                    Rounding::Index { .. } => self.number("Hadamard size", *dim as usize, 128),
                }
            }
            Op::Store { state } => {
                self.arity(1, 0)?;
                let spec = self.graph.states.spec(*state);
                let rows = match spec.kind {
                    StateKind::Ring { .. } => Rows::Tokens,
                    StateKind::Windows { ratio } => Rows::Windows(ratio),
                };
                self.cols("input", self.input(0), spec.cols as usize)?;
                match self.input(0).rows == rows {
                    true => Ok(()),
                    false => Err(self.kind("input")),
                }
            }
            Op::StoreGate { state, ape, ratio } => {
                self.arity(1, 0)?;
                let spec = self.graph.states.spec(*state);
                self.cols("input", self.input(0), spec.cols as usize)?;
                self.number(
                    "position embedding",
                    self.weights.vector(*ape).len(),
                    (spec.cols * ratio) as usize,
                )
            }
            Op::Pool {
                values,
                gates,
                halves,
                ..
            } => {
                self.arity(0, 1)?;
                for state in [values, gates] {
                    let spec = self.graph.states.spec(*state);
                    self.number(
                        "state",
                        spec.cols as usize,
                        (self.out(0).cols * halves) as usize,
                    )?;
                }
                Ok(())
            }
            Op::IndexTopK {
                keys,
                heads,
                dim,
                top_k,
                ..
            } => {
                self.arity(2, 1)?;
                self.cols("queries", self.input(0), (heads * dim) as usize)?;
                self.cols("head weights", self.input(1), *heads as usize)?;
                self.cols("output", self.out(0), *top_k as usize)?;
                self.number(
                    "keys",
                    self.graph.states.spec(*keys).cols as usize,
                    *dim as usize,
                )
            }
            Op::Attend {
                raw,
                compressed,
                sinks,
                heads,
                dim,
                ..
            } => {
                let inputs = self.node.inputs.len();
                self.arity(inputs.clamp(1, 2), 1)?;
                self.cols("queries", self.input(0), (heads * dim) as usize)?;
                self.number("sinks", self.weights.vector(*sinks).len(), *heads as usize)?;
                for state in std::iter::once(raw).chain(compressed.iter().map(|(s, _)| s)) {
                    self.number(
                        "rows",
                        self.graph.states.spec(*state).cols as usize,
                        *dim as usize,
                    )?;
                }
                match inputs == 2 && self.input(1).dtype != Dtype::I32 {
                    true => Err(self.kind("ids")),
                    false => Ok(()),
                }
            }
            Op::Affinity => {
                self.arity(1, 1)?;
                self.same()
            }
            Op::RouteTopK { used, bias, .. } => {
                self.arity(1, 2)?;
                self.routed(*used)?;
                match bias {
                    Some(b) => self.cols("affinity", self.input(0), self.weights.vector(*b).len()),
                    None => Ok(()),
                }
            }
            Op::RouteHash { used, .. } => {
                self.arity(1, 2)?;
                self.routed(*used)
            }
            Op::Experts { gate, up, down, .. } => {
                self.arity(3, 1)?;
                let (gate, up, down) = (
                    self.weights.info(*gate),
                    self.weights.info(*up),
                    self.weights.info(*down),
                );
                self.cols("input", self.input(0), gate.cols)?;
                self.number("up rows", up.rows, gate.rows)?;
                self.number("down columns", down.cols, gate.rows)?;
                self.cols("output", self.out(0), down.rows)
            }
            Op::SwiGlu { .. } | Op::Add => {
                self.arity(2, 1)?;
                self.same()?;
                match self.input(0) == self.input(1) {
                    true => Ok(()),
                    false => Err(self.kind("second input")),
                }
            }
            Op::SelectRows => {
                self.arity(1, 1)?;
                match self.input(0).rows == Rows::Tokens && self.out(0).rows == Rows::Head {
                    true => self.cols("output", self.out(0), self.input(0).cols as usize),
                    false => Err(self.kind("rows")),
                }
            }
        }
    }

    fn linear(&self, weight: crate::weights::MatrixId, output: usize) -> Result<(), GraphError> {
        let info = self.weights.info(weight);
        self.cols("input", self.input(0), info.cols)?;
        self.cols("output", self.out(output), info.rows)
    }

    fn routed(&self, used: u32) -> Result<(), GraphError> {
        self.cols("ids", self.out(0), used as usize)?;
        self.cols("weights", self.out(1), used as usize)?;
        match self.out(0).dtype {
            Dtype::I32 => Ok(()),
            Dtype::F32 => Err(self.kind("ids")),
        }
    }

    fn input(&self, index: usize) -> Shape {
        self.shape(self.node.inputs[index])
    }

    fn out(&self, index: usize) -> Shape {
        self.shape(self.node.outputs[index])
    }

    fn shape(&self, t: Tid) -> Shape {
        self.graph.shape(t)
    }

    fn same(&self) -> Result<(), GraphError> {
        match self.input(0) == self.out(0) {
            true => Ok(()),
            false => Err(self.kind("output")),
        }
    }

    fn kind(&self, what: &'static str) -> GraphError {
        GraphError::Kind {
            node: self.node.name.clone(),
            what,
        }
    }

    fn cols(&self, what: &'static str, shape: Shape, expected: usize) -> Result<(), GraphError> {
        self.number(what, shape.cols as usize, expected)
    }

    fn divides(&self, what: &'static str, shape: Shape, part: u32) -> Result<(), GraphError> {
        match part != 0 && shape.cols.is_multiple_of(part) {
            true => Ok(()),
            false => self.number(what, part as usize, shape.cols as usize),
        }
    }

    fn number(&self, what: &'static str, found: usize, expected: usize) -> Result<(), GraphError> {
        let (found, expected) = (found as u64, expected as u64);
        match found == expected {
            true => Ok(()),
            false => Err(GraphError::Columns {
                node: self.node.name.clone(),
                what,
                found,
                expected,
            }),
        }
    }

    fn arity(&self, inputs: usize, outputs: usize) -> Result<(), GraphError> {
        let checks = [
            ("inputs", self.node.inputs.len(), inputs),
            ("outputs", self.node.outputs.len(), outputs),
        ];
        for (what, found, expected) in checks {
            if found != expected {
                return Err(GraphError::Arity {
                    node: self.node.name.clone(),
                    what,
                    found,
                    expected,
                });
            }
        }
        Ok(())
    }
}
