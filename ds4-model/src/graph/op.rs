//! The closed vocabulary of the recorded graph: operations of the model, never of tensor algebra.
//!
//! Shapes in the comments are `[rows, cols]`; R is the number of tokens of the step.
//! A new variant needs an arm in `exec/cpu/run.rs`, a test that names it, and shows up in `docs/ops.md`.

use crate::config::Rope;
use crate::weights::{MatrixId, TableId, VectorId};

/// A value of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tid(pub u32);

/// Persistent memory of a session, updated in place by the operations that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// How many rows a value has; resolved for each step from [`Step`](crate::exec::Step).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// One row a token of the step.
    Tokens,
    /// One row a token whose logits are wanted.
    Head,
    /// One row a compression window of this many tokens that closes in the step; may be none.
    Windows(u32),
}

/// Element type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// Numbers.
    F32,
    /// Indices (experts, compressed rows); -1 = unused.
    I32,
}

/// Shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Row count, symbolic.
    pub rows: Rows,
    /// Elements of a row.
    pub cols: u32,
    /// Element type.
    pub dtype: Dtype,
}

/// Direction of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// By `+position · θ`.
    Forward,
    /// By `−position · θ`; applied to attention output, because values carry the rotation too.
    Back,
}

/// The rounding of a cached row that the model was trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// FP8 E4M3 in blocks of 64 with a power-of-two scale on all but the last `exact` channels, then F16.
    Kv {
        /// Channels left out of the FP8 step: the rotary tail.
        exact: u32,
    },
    /// 128-point Hadamard, FP4 E2M1 in blocks of 32 with a power-of-two scale.
    Index {
        /// Also round to F16, as cached keys are; queries are not cached.
        store: bool,
    },
}

/// One operation. Inputs and outputs stand in the [`Node`](super::Node), in the order given here.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `→ [R, D]`: one decoded row of the table for each token id of the step.
    Embed {
        /// `[V, D]`
        table: MatrixId,
    },
    /// `[R, D] → [R, N·D]`: repeat into N residual streams.
    Streams {
        /// N
        streams: u32,
    },
    /// `x / sqrt(mean(x²) + ε) ⊙ w` over each `group` of a row.
    RmsNorm {
        /// `[group]`, or none for a plain normalisation.
        weight: Option<VectorId>,
        /// Values normalised together: the row, or one head.
        group: u32,
        /// ε
        eps: f32,
    },
    /// `[R, in] → [R, out]`: `y = W·x`.
    Linear {
        /// `[out, in]`
        weight: MatrixId,
    },
    /// `[R, G·in] → [R, G·out]`: block g of the output is `W_g · x_g`.
    GroupedLinear {
        /// `[G·out, in]`
        weight: MatrixId,
        /// G
        groups: u32,
    },
    /// Several [`Op::Linear`] over one input: `[R, in] → [R, out_0], [R, out_1], …`. Made by `fuse.rs`.
    Linears {
        /// `[out_i, in]` each
        weights: Vec<MatrixId>,
    },
    /// `[R, M] → [R, M]`: the mixing weights of a hyper-connection, `M = 2N + N²`:
    /// `pre = σ(s₀m + b) + ε`, `post = 2σ(s₁m + b)`, `comb = Sinkhorn(softmax(s₂m + b))`, `[source, destination]`.
    HcWeights {
        /// `[3]`
        scale: VectorId,
        /// `[M]`
        base: VectorId,
        /// N
        streams: u32,
        /// Normalisations of `comb`.
        iterations: u32,
        /// ε
        eps: f32,
    },
    /// `[R, N] → [R, N]`: the collapse weights before the head, `σ(s·m + b) + ε`.
    HcHeadWeights {
        /// `[1]`
        scale: VectorId,
        /// `[N]`
        base: VectorId,
        /// ε
        eps: f32,
    },
    /// `[R, N·D], [R, ≥ N] → [R, D]`: `Σ pre_i · x_i`.
    HcCollapse {
        /// N
        streams: u32,
    },
    /// `[R, N·D], [R, D], [R, M] → [R, N·D]`: `x'_b = post_b · y + Σ_a comb[a, b] · x_a`.
    HcExpand {
        /// N
        streams: u32,
    },
    /// Rotate the last `rope_dim` channels of every head: interleaved pairs turn by `position · f_i`.
    RopeTail {
        /// Heads in a row.
        heads: u32,
        /// Rotary channels.
        rope_dim: u32,
        /// Frequencies.
        rope: Rope,
        /// Forward, or back.
        turn: Turn,
    },
    /// Round each group of `dim` values as the cache of the reference does.
    Round {
        /// Values rounded together (a key/value row, or one indexer head).
        dim: u32,
        /// Which rounding.
        rounding: Rounding,
    },
    /// `[rows, cols]` → state: the row of each token, or of each closed window, at its own index.
    Store {
        /// Destination.
        state: StateId,
    },
    /// `[R, w]` → state ring, with the gate's position embedding added: `s + ape[position mod ratio]`.
    StoreGate {
        /// Destination.
        state: StateId,
        /// `[ratio, w]`
        ape: VectorId,
        /// Tokens a window.
        ratio: u32,
    },
    /// state rings → `[windows, dim]`: per channel, the gate-softmax-weighted sum over each window that closes in this step.
    /// With two halves, first halves of the window before and second halves of this one are pooled together.
    Pool {
        /// Values, `[tokens, halves · dim]`.
        values: StateId,
        /// Gates, same shape.
        gates: StateId,
        /// Tokens a window.
        ratio: u32,
        /// 1, or 2 when neighbouring windows overlap.
        halves: u32,
    },
    /// `q [R, h·d], weights [R, h] → ids [R, K]`: the K visible entries with the largest `Σ_h w_h · relu(q_h · key)`,
    /// ascending, −1 = unused; all of them when no more than K are visible. Equal scores: the lower index.
    IndexTopK {
        /// Keys, one a window.
        keys: StateId,
        /// h
        heads: u32,
        /// d
        dim: u32,
        /// K
        top_k: u32,
        /// Tokens a window.
        ratio: u32,
    },
    /// `q [R, H·d] (, ids [R, K]) → [R, H·d]`: one softmax over the sliding window, the compressed rows
    /// (all closed windows, or those in `ids`) and a per-head sink without value.
    Attend {
        /// Sliding-window rows; key and value are the same row.
        raw: StateId,
        /// Compressed rows and their ratio.
        compressed: Option<(StateId, u32)>,
        /// Logit of the sink, `[H]`.
        sinks: VectorId,
        /// H
        heads: u32,
        /// d
        dim: u32,
        /// Tokens of the window, the query itself included.
        window: u32,
    },
    /// `[R, E] → [R, E]`: `sqrt(softplus(z))`.
    Affinity,
    /// `affinity [R, E] → ids [R, k], weights [R, k]`: highest `affinity + bias`; weights are the affinities,
    /// normalised to sum to `scale`. Equal scores: the lower expert.
    RouteTopK {
        /// `[E]`, only for the choice.
        bias: Option<VectorId>,
        /// k
        used: u32,
        /// Sum of the weights.
        scale: f32,
    },
    /// As [`Op::RouteTopK`], with experts from a table over token ids.
    RouteHash {
        /// `[V, k]`
        table: TableId,
        /// k
        used: u32,
        /// Sum of the weights.
        scale: f32,
    },
    /// `x [R, D], ids [R, k], weights [R, k] → [R, D]`: `Σ_k w_k · down_k · act(gate_k · x, up_k · x)`.
    /// Segment boundary when experts are streamed.
    Experts {
        /// `[E, F, D]`
        gate: MatrixId,
        /// `[E, F, D]`
        up: MatrixId,
        /// `[E, D, F]`
        down: MatrixId,
        /// SwiGLU limit.
        clamp: Option<f32>,
    },
    /// `gate [R, F], up [R, F] → [R, F]`: `silu(min(g, c)) · clamp(u, ±c)`.
    SwiGlu {
        /// c
        clamp: Option<f32>,
    },
    /// `[R, D], [R, D] → [R, D]`.
    Add,
    /// `[R, n] → [head rows, n]`: the rows whose logits are wanted.
    SelectRows,
}

impl Op {
    /// The variant's name, as used in dumps and in `docs/ops.md`.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Embed { .. } => "Embed",
            Op::Streams { .. } => "Streams",
            Op::RmsNorm { .. } => "RmsNorm",
            Op::Linear { .. } => "Linear",
            Op::GroupedLinear { .. } => "GroupedLinear",
            Op::Linears { .. } => "Linears",
            Op::HcWeights { .. } => "HcWeights",
            Op::HcHeadWeights { .. } => "HcHeadWeights",
            Op::HcCollapse { .. } => "HcCollapse",
            Op::HcExpand { .. } => "HcExpand",
            Op::RopeTail { .. } => "RopeTail",
            Op::Round { .. } => "Round",
            Op::Store { .. } => "Store",
            Op::StoreGate { .. } => "StoreGate",
            Op::Pool { .. } => "Pool",
            Op::IndexTopK { .. } => "IndexTopK",
            Op::Attend { .. } => "Attend",
            Op::Affinity => "Affinity",
            Op::RouteTopK { .. } => "RouteTopK",
            Op::RouteHash { .. } => "RouteHash",
            Op::Experts { .. } => "Experts",
            Op::SwiGlu { .. } => "SwiGlu",
            Op::Add => "Add",
            Op::SelectRows => "SelectRows",
        }
    }

    /// Whether the output may take the memory of the first input when nobody reads that input afterwards.
    pub fn in_place(&self) -> bool {
        matches!(
            self,
            Op::RmsNorm { .. }
                | Op::HcWeights { .. }
                | Op::HcHeadWeights { .. }
                | Op::RopeTail { .. }
                | Op::Round { .. }
                | Op::Affinity
                | Op::SwiGlu { .. }
                | Op::Add
        )
    }

    /// States read and written.
    pub fn states(&self) -> Vec<StateId> {
        match *self {
            Op::Store { state } | Op::StoreGate { state, .. } => vec![state],
            Op::Pool { values, gates, .. } => vec![values, gates],
            Op::IndexTopK { keys, .. } => vec![keys],
            Op::Attend {
                raw, compressed, ..
            } => std::iter::once(raw)
                .chain(compressed.map(|(state, _)| state))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Packed matrices read.
    pub fn matrices(&self) -> Vec<MatrixId> {
        match self {
            Op::Embed { table } => vec![*table],
            Op::Linear { weight } | Op::GroupedLinear { weight, .. } => vec![*weight],
            Op::Linears { weights } => weights.clone(),
            Op::Experts { gate, up, down, .. } => vec![*gate, *up, *down],
            _ => Vec::new(),
        }
    }
}
