//! Records operations; the only way to make a [`Graph`].

use std::collections::HashSet;

use super::op::{Dtype, Op, Rounding, Rows, Shape, StateId, Tid, Turn};
use super::state::{Keep, StateKind, StateLayout, StateSpec};
use super::{Graph, Node, NodeName, ValueInfo};
use crate::config::Rope;
use crate::weights::{Hyper, MatrixId, TableId, VectorId, Weights};

/// Records a model. Each method adds the [`Op`] of its name, whose comment gives shapes and formula, and returns its output;
/// R is the tokens of a step. Shapes come from the weights' own shapes and from the inputs. Nothing is checked while
/// recording: [`check`](super::check) verifies the result.
pub struct Builder<'w> {
    weights: &'w Weights,
    layer: Option<usize>,
    nodes: Vec<Node>,
    values: Vec<ValueInfo>,
    states: Vec<StateSpec>,
    names: HashSet<NodeName>,
}

impl<'w> Builder<'w> {
    /// An empty recording over `weights`.
    pub fn new(weights: &'w Weights) -> Self {
        Self {
            weights,
            layer: None,
            nodes: Vec::new(),
            values: Vec::new(),
            states: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// Names recorded from now on belong to `layer` (`None`: to no layer).
    pub fn layer(&mut self, layer: Option<usize>) {
        self.layer = layer;
    }

    /// The finished graph; `logits` is what a step returns.
    pub fn finish(self, logits: Tid) -> Graph {
        Graph {
            nodes: self.nodes,
            values: self.values,
            states: StateLayout { specs: self.states },
            logits,
        }
    }

    /// A ring of rows by position.
    pub fn ring(&mut self, name: &str, cols: u32, keep: Keep) -> StateId {
        self.state(name, cols, StateKind::Ring { keep })
    }

    /// One row a closed window.
    pub fn windows(&mut self, name: &str, cols: u32, ratio: u32) -> StateId {
        self.state(name, cols, StateKind::Windows { ratio })
    }

    /// Decoded embedding rows, `[R, D]`.
    pub fn embed(&mut self, name: &str, table: MatrixId) -> Tid {
        let cols = self.weights.info(table).cols as u32;
        self.one(name, Op::Embed { table }, &[], Rows::Tokens, cols)
    }

    /// Repeat into `streams` residual streams, `[R, N·D]`.
    pub fn streams(&mut self, name: &str, x: Tid, streams: usize) -> Tid {
        let shape = self.shape(x);
        let streams = streams as u32;
        self.one(
            name,
            Op::Streams { streams },
            &[x],
            shape.rows,
            shape.cols * streams,
        )
    }

    /// Normalise whole rows, scaled by `weight`.
    pub fn rms_norm(&mut self, name: &str, x: Tid, weight: VectorId, eps: f32) -> Tid {
        let group = self.shape(x).cols;
        self.like(
            name,
            Op::RmsNorm {
                weight: Some(weight),
                group,
                eps,
            },
            x,
        )
    }

    /// Normalise each `group` of a row, without weight.
    pub fn plain_norm(&mut self, name: &str, x: Tid, group: usize, eps: f32) -> Tid {
        self.like(
            name,
            Op::RmsNorm {
                weight: None,
                group: group as u32,
                eps,
            },
            x,
        )
    }

    /// [`Op::Linear`]: `x [R, in]` → `[R, out]`, `y = W·x`.
    pub fn linear(&mut self, name: &str, x: Tid, weight: MatrixId) -> Tid {
        let rows = self.shape(x).rows;
        let cols = self.weights.info(weight).rows as u32;
        self.one(name, Op::Linear { weight }, &[x], rows, cols)
    }

    /// `groups` independent blocks `y_g = W_g · x_g`.
    pub fn grouped_linear(&mut self, name: &str, x: Tid, weight: MatrixId, groups: usize) -> Tid {
        let rows = self.shape(x).rows;
        let cols = self.weights.info(weight).rows as u32;
        self.one(
            name,
            Op::GroupedLinear {
                weight,
                groups: groups as u32,
            },
            &[x],
            rows,
            cols,
        )
    }

    /// Mixing weights of a hyper-connection from its projection `m`, `[R, 2N + N²]`.
    pub fn hc_weights(
        &mut self,
        name: &str,
        m: Tid,
        w: &Hyper,
        streams: usize,
        iterations: usize,
        eps: f32,
    ) -> Tid {
        let (streams, iterations) = (streams as u32, iterations as u32);
        self.like(
            name,
            Op::HcWeights {
                scale: w.scale,
                base: w.base,
                streams,
                iterations,
                eps,
            },
            m,
        )
    }

    /// Collapse weights before the head, `[R, N]`.
    pub fn hc_head_weights(&mut self, name: &str, m: Tid, w: &Hyper, eps: f32) -> Tid {
        self.like(
            name,
            Op::HcHeadWeights {
                scale: w.scale,
                base: w.base,
                eps,
            },
            m,
        )
    }

    /// `Σ pre_i · x_i`, `[R, D]`.
    pub fn hc_collapse(&mut self, name: &str, x: Tid, weights: Tid, streams: usize) -> Tid {
        let shape = self.shape(x);
        let streams = streams as u32;
        self.one(
            name,
            Op::HcCollapse { streams },
            &[x, weights],
            shape.rows,
            shape.cols / streams,
        )
    }

    /// `post ⊗ y + combᵀ · x`, `[R, N·D]`.
    pub fn hc_expand(&mut self, name: &str, x: Tid, y: Tid, weights: Tid, streams: usize) -> Tid {
        let shape = self.shape(x);
        let op = Op::HcExpand {
            streams: streams as u32,
        };
        self.one(name, op, &[x, y, weights], shape.rows, shape.cols)
    }

    /// Rotate the tail of each head; `x` has one row a token or one a closed window.
    pub fn rope_tail(
        &mut self,
        name: &str,
        x: Tid,
        heads: usize,
        rope_dim: usize,
        rope: Rope,
        turn: Turn,
    ) -> Tid {
        let (heads, rope_dim) = (heads as u32, rope_dim as u32);
        self.like(
            name,
            Op::RopeTail {
                heads,
                rope_dim,
                rope,
                turn,
            },
            x,
        )
    }

    /// Round as the cache of the reference does; `rounding: None` records nothing.
    pub fn round(&mut self, name: &str, x: Tid, dim: usize, rounding: Option<Rounding>) -> Tid {
        match rounding {
            Some(rounding) => self.like(
                name,
                Op::Round {
                    dim: dim as u32,
                    rounding,
                },
                x,
            ),
            None => x,
        }
    }

    /// Put rows into a state.
    pub fn store(&mut self, name: &str, x: Tid, state: StateId) {
        self.push(name, Op::Store { state }, &[x], &[]);
    }

    /// Put gate rows into a ring, position embedding added.
    pub fn store_gate(&mut self, name: &str, x: Tid, state: StateId, ape: VectorId, ratio: u32) {
        self.push(name, Op::StoreGate { state, ape, ratio }, &[x], &[]);
    }

    /// Pool every window that closes in this step, `[windows, dim]`.
    pub fn pool(
        &mut self,
        name: &str,
        values: StateId,
        gates: StateId,
        ratio: u32,
        halves: usize,
    ) -> Tid {
        let halves = halves as u32;
        let cols = self.states[values.0 as usize].cols / halves;
        self.one(
            name,
            Op::Pool {
                values,
                gates,
                ratio,
                halves,
            },
            &[],
            Rows::Windows(ratio),
            cols,
        )
    }

    /// Entries the indexer keeps, ids `[R, K]`.
    pub fn index_top_k(
        &mut self,
        name: &str,
        q: Tid,
        w: Tid,
        keys: StateId,
        top_k: usize,
        ratio: u32,
    ) -> Tid {
        let heads = self.shape(w).cols;
        let op = Op::IndexTopK {
            keys,
            heads,
            dim: self.shape(q).cols / heads,
            top_k: top_k as u32,
            ratio,
        };
        let shape = Shape {
            rows: self.shape(q).rows,
            cols: top_k as u32,
            dtype: Dtype::I32,
        };
        self.push(name, op, &[q, w], &[("", shape)])[0]
    }

    /// Attention output before the inverse rotation, `[R, H·d]`.
    pub fn attend(&mut self, name: &str, q: Tid, ids: Option<Tid>, op: Op) -> Tid {
        let inputs: Vec<Tid> = std::iter::once(q).chain(ids).collect();
        let shape = self.shape(q);
        self.push(name, op, &inputs, &[("", shape)])[0]
    }

    /// `sqrt(softplus(z))`.
    pub fn affinity(&mut self, name: &str, z: Tid) -> Tid {
        self.like(name, Op::Affinity, z)
    }

    /// Highest affinities plus bias: ids and weights, `[R, k]` each.
    pub fn route_top_k(
        &mut self,
        name: &str,
        a: Tid,
        bias: Option<VectorId>,
        used: usize,
        scale: f32,
    ) -> (Tid, Tid) {
        self.route(
            name,
            a,
            Op::RouteTopK {
                bias,
                used: used as u32,
                scale,
            },
            used,
        )
    }

    /// Experts of the token ids: ids and weights, `[R, k]` each.
    pub fn route_hash(
        &mut self,
        name: &str,
        a: Tid,
        table: TableId,
        used: usize,
        scale: f32,
    ) -> (Tid, Tid) {
        self.route(
            name,
            a,
            Op::RouteHash {
                table,
                used: used as u32,
                scale,
            },
            used,
        )
    }

    /// Weighted sum of the chosen experts, `[R, D]`.
    pub fn experts(&mut self, name: &str, x: Tid, ids: Tid, weights: Tid, op: Op) -> Tid {
        let shape = self.shape(x);
        self.push(name, op, &[x, ids, weights], &[("", shape)])[0]
    }

    /// `silu(min(g, c)) · clamp(u, ±c)`.
    pub fn swiglu(&mut self, name: &str, gate: Tid, up: Tid, clamp: Option<f32>) -> Tid {
        let shape = self.shape(gate);
        self.push(name, Op::SwiGlu { clamp }, &[gate, up], &[("", shape)])[0]
    }

    /// Sum of two values.
    pub fn add(&mut self, name: &str, a: Tid, b: Tid) -> Tid {
        let shape = self.shape(a);
        self.push(name, Op::Add, &[a, b], &[("", shape)])[0]
    }

    /// The rows whose logits are wanted.
    pub fn select_rows(&mut self, name: &str, x: Tid) -> Tid {
        let cols = self.shape(x).cols;
        self.one(name, Op::SelectRows, &[x], Rows::Head, cols)
    }

    fn route(&mut self, name: &str, a: Tid, op: Op, used: usize) -> (Tid, Tid) {
        let rows = self.shape(a).rows;
        let cols = used as u32;
        let ids = Shape {
            rows,
            cols,
            dtype: Dtype::I32,
        };
        let weights = Shape {
            rows,
            cols,
            dtype: Dtype::F32,
        };
        let out = self.push(name, op, &[a], &[(".ids", ids), (".weights", weights)]);
        (out[0], out[1])
    }

    fn shape(&self, t: Tid) -> Shape {
        self.values[t.0 as usize].shape
    }

    fn like(&mut self, name: &str, op: Op, x: Tid) -> Tid {
        let shape = self.shape(x);
        self.push(name, op, &[x], &[("", shape)])[0]
    }

    fn one(&mut self, name: &str, op: Op, inputs: &[Tid], rows: Rows, cols: u32) -> Tid {
        self.push(
            name,
            op,
            inputs,
            &[(
                "",
                Shape {
                    rows,
                    cols,
                    dtype: Dtype::F32,
                },
            )],
        )[0]
    }

    fn state(&mut self, name: &str, cols: u32, kind: StateKind) -> StateId {
        let name = NodeName::new(self.layer, name);
        self.states.push(StateSpec {
            name: name.as_str().into(),
            kind,
            cols,
        });
        StateId(self.states.len() as u32 - 1)
    }

    fn push(&mut self, name: &str, op: Op, inputs: &[Tid], outputs: &[(&str, Shape)]) -> Vec<Tid> {
        let name = NodeName::new(self.layer, name);
        debug_assert!(
            self.names.insert(name.clone()),
            "node name {name} recorded twice"
        );
        let first = self.values.len() as u32;
        for (suffix, shape) in outputs {
            let name = NodeName(format!("{name}{suffix}").into());
            self.values.push(ValueInfo {
                name,
                shape: *shape,
            });
        }
        let outputs: Vec<Tid> = (first..self.values.len() as u32).map(Tid).collect();
        self.nodes.push(Node {
            name,
            op,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
        });
        outputs
    }
}
