//! One step: every node of the list, in order; one arm an operation.

use std::cell::RefCell;
use std::ops::Range;

use ds4_quant::{Pool, Precision};

use super::experts::{self, Experts};
use super::state::CpuState;
use super::{CpuExecutor, Prepared, attend, compress, hyper, index, norm, rope, round, route};
use crate::exec::{ExecError, PlanId, StateSet, Step, Tap, Token, Values};
use crate::graph::{Dtype, Graph, Node, Op, Plan, Rows, StateId, Tid};
use crate::weights::Weights;

thread_local! {
    /// Scratch of the attention and the indexer, one a worker thread.
    static SCORES: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    static INDEX: RefCell<index::Scratch> = RefCell::default();
}

pub(super) fn run<'e>(
    executor: &'e mut CpuExecutor,
    plan: PlanId,
    set: &StateSet,
    step: &Step,
    tokens: &[Token],
    tap: &mut dyn Tap,
) -> Result<&'e [f32], ExecError> {
    let foreign = |what, index| ExecError::Foreign { what, index };
    let Prepared { graph, plan } = executor.plans.get(plan.0).ok_or(foreign("plan", plan.0))?;
    let state = executor
        .states
        .get_mut(set.0)
        .and_then(Option::as_mut)
        .ok_or(foreign("state set", set.0))?;
    if tokens.len() != step.rows as usize || tokens.len() > plan.rows() {
        return Err(ExecError::Rows {
            rows: tokens.len(),
            most: plan.rows(),
        });
    }
    executor.angles.start(step);
    let mut walk = Walk {
        weights: &executor.weights,
        pool: &executor.pool,
        precision: executor.precision,
        graph,
        plan,
        step,
        tokens,
        state,
        arena: &mut executor.arena,
        angles: &mut executor.angles,
        experts: &mut executor.experts,
    };
    // Inside the pool: its hundreds of small regions then start without a hand-over from this thread.
    let logits = executor.pool.run(|| {
        for node in graph.nodes() {
            // With no window closed, or no logits wanted, there is nothing to do.
            if node
                .outputs
                .first()
                .or(node.inputs.first())
                .is_some_and(|&t| walk.rows(t) == 0)
            {
                continue;
            }
            walk.node(node)?;
            walk.show(node, tap);
        }
        Ok::<_, ExecError>(walk.range(graph.logits()))
    })?;
    Ok(&executor.arena[logits])
}

/// What an arm needs. Fields are separate borrows, so that an arm may write the arena while it reads the rest.
pub(super) struct Walk<'a> {
    pub(super) weights: &'a Weights,
    pub(super) pool: &'a Pool,
    pub(super) precision: Precision,
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a Plan,
    pub(super) step: &'a Step,
    pub(super) tokens: &'a [Token],
    pub(super) state: &'a mut CpuState,
    pub(super) arena: &'a mut [f32],
    pub(super) angles: &'a mut rope::Angles,
    pub(super) experts: &'a mut experts::Scratch,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node) -> Result<(), ExecError> {
        let weights = self.weights;
        match &node.op {
            Op::Embed { table } => return self.embed(node, *table),
            Op::Streams { streams } => {
                let [x, y] = views(
                    self.arena,
                    [self.range(node.inputs[0]), self.range(node.outputs[0])],
                );
                let dim = y.len() / self.step.rows as usize / *streams as usize;
                for (x, y) in x
                    .chunks_exact(dim)
                    .zip(y.chunks_exact_mut(dim * *streams as usize))
                {
                    y.chunks_exact_mut(dim).for_each(|y| y.copy_from_slice(x));
                }
            }
            Op::RmsNorm { weight, group, eps } => {
                let weight = weight.map(|w| weights.vector(w));
                let (rows, cols) = self.settle(node);
                self.pool.for_chunks(&mut self.arena[rows], cols, |_, row| {
                    norm::rms_norm(row, weight, *group as usize, *eps);
                });
            }
            Op::Linear { weight } => return self.linears(node, &[*weight]),
            Op::Linears { weights } => return self.linears(node, weights),
            Op::GroupedLinear { weight, groups } => {
                return self.grouped_linear(node, *weight, *groups as usize);
            }
            Op::HcWeights {
                scale,
                base,
                streams,
                iterations,
                eps,
            } => {
                let (scale, base) = (weights.vector(*scale), weights.vector(*base));
                let (rows, cols) = self.settle(node);
                self.pool.for_chunks(&mut self.arena[rows], cols, |_, m| {
                    hyper::weights(
                        m,
                        scale,
                        base,
                        *streams as usize,
                        *iterations as usize,
                        *eps,
                    );
                });
            }
            Op::HcHeadWeights { scale, base, eps } => {
                let (scale, base) = (weights.vector(*scale)[0], weights.vector(*base));
                let (rows, cols) = self.settle(node);
                for row in self.arena[rows].chunks_exact_mut(cols) {
                    row.iter_mut()
                        .zip(base)
                        .for_each(|(m, b)| *m = hyper::sigmoid(scale * *m + b) + eps);
                }
            }
            Op::HcCollapse { streams } => {
                let dim = self.cols(node.outputs[0]);
                let (wide, mixed) = (dim * *streams as usize, self.cols(node.inputs[1]));
                let ranges =
                    [node.inputs[0], node.inputs[1], node.outputs[0]].map(|t| self.range(t));
                let [x, m, y] = views(self.arena, ranges);
                let (x, m) = (&*x, &*m);
                self.pool.for_chunks(y, dim, |r, y| {
                    hyper::collapse(
                        &x[r * wide..(r + 1) * wide],
                        &m[r * mixed..(r + 1) * mixed],
                        y,
                    );
                });
            }
            Op::HcExpand { streams } => {
                let (dim, mixed) = (self.cols(node.inputs[1]), self.cols(node.inputs[2]));
                let (streams, wide) = (*streams as usize, dim * *streams as usize);
                let ranges = [
                    node.inputs[0],
                    node.inputs[1],
                    node.inputs[2],
                    node.outputs[0],
                ]
                .map(|t| self.range(t));
                let [x, y, m, out] = views(self.arena, ranges);
                let (x, y, m) = (&*x, &*y, &*m);
                self.pool.for_chunks(out, wide, |r, out| {
                    let row = |cols: usize| r * cols..(r + 1) * cols;
                    hyper::expand(&x[row(wide)], &y[row(dim)], &m[row(mixed)], streams, out);
                });
            }
            Op::RopeTail {
                heads,
                rope_dim,
                rope,
                turn,
            } => {
                let shape = self.graph.shape(node.outputs[0]);
                let dim = (shape.cols / heads) as usize;
                let half = *rope_dim as usize / 2;
                let (rows, cols) = self.settle(node);
                let turns = self.angles.get(rope, *rope_dim as usize, shape.rows);
                self.pool.for_chunks(&mut self.arena[rows], cols, |r, row| {
                    rope::rotate(row, dim, &turns[r * half..(r + 1) * half], *turn);
                });
            }
            Op::Round { dim, rounding } => {
                let (rows, cols) = self.settle(node);
                self.pool.for_chunks(&mut self.arena[rows], cols, |_, row| {
                    row.chunks_exact_mut(*dim as usize)
                        .for_each(|group| round::round(group, *rounding));
                });
            }
            Op::Store { state } => return self.store(node, *state),
            Op::StoreGate { state, ape, ratio } => {
                self.store(node, *state)?;
                let ape = weights.vector(*ape);
                for position in self.step.pos..self.step.end() {
                    let row = self.state.get_mut(*state).row_mut(position as usize)?;
                    let at = (position % ratio) as usize * row.len();
                    row.iter_mut().zip(&ape[at..]).for_each(|(s, a)| *s += a);
                }
            }
            Op::Pool {
                values,
                gates,
                ratio,
                halves,
            } => {
                let first = (self.step.pos / ratio) as usize;
                let (out, cols) = (self.range(node.outputs[0]), self.cols(node.outputs[0]));
                let (values, gates) = (self.state.get(*values), self.state.get(*gates));
                self.pool.for_chunks(&mut self.arena[out], cols, |w, row| {
                    compress::pool(
                        values,
                        gates,
                        first + w,
                        *ratio as usize,
                        *halves as usize,
                        row,
                    );
                });
            }
            Op::IndexTopK {
                keys,
                heads,
                dim,
                top_k,
                ratio,
            } => {
                let ranges =
                    [node.inputs[0], node.inputs[1], node.outputs[0]].map(|t| self.range(t));
                let [q, w, ids] = views(self.arena, ranges);
                let (heads, wide, ratio) =
                    (*heads as usize, (heads * dim) as usize, *ratio as usize);
                let (q, w, pos, keys) = (&*q, &*w, self.step.pos as usize, self.state.get(*keys));
                let ids: &mut [i32] = bytemuck::cast_slice_mut(ids);
                self.pool.for_chunks(ids, *top_k as usize, |r, ids| {
                    let (q, w) = (&q[r * wide..(r + 1) * wide], &w[r * heads..(r + 1) * heads]);
                    INDEX.with_borrow_mut(|s| {
                        index::choose(q, w, keys, (pos + r + 1) / ratio, s, ids)
                    });
                });
            }
            Op::Attend {
                raw,
                compressed,
                sinks,
                heads,
                dim,
                window,
            } => {
                let visible = attend::Visible {
                    raw: self.state.get(*raw),
                    window: *window as usize,
                    compressed: compressed
                        .map(|(state, ratio)| (self.state.get(state), ratio as usize)),
                };
                let (heads, dim, sinks) = (*heads as usize, *dim as usize, weights.vector(*sinks));
                let ids = node.inputs.get(1).map(|&t| (self.range(t), self.cols(t)));
                let (ids, top_k) = ids.unwrap_or((0..0, 0));
                let ranges = [self.range(node.inputs[0]), ids, self.range(node.outputs[0])];
                let [q, ids, out] = views(self.arena, ranges);
                let (q, ids): (_, &[i32]) = (&*q, bytemuck::cast_slice(ids));
                let pos = self.step.pos as usize;
                // One token: its heads are shared out. Several: each worker takes whole tokens.
                let parts = if self.step.rows == 1 {
                    self.pool.threads().min(heads)
                } else {
                    1
                };
                let share = heads.div_ceil(parts);
                // A last, smaller share would put the chunks of the next token out of step.
                let share = if heads.is_multiple_of(share) {
                    share
                } else {
                    heads
                };
                self.pool.for_chunks(out, share * dim, |part, out| {
                    let row = part * share / heads;
                    let first = part * share % heads;
                    let ids = (top_k > 0).then(|| &ids[row * top_k..(row + 1) * top_k]);
                    let mut rows = Vec::new();
                    visible.rows(pos + row, ids, &mut rows);
                    let at = (row * heads + first) * dim;
                    let (q, sinks) = (&q[at..at + out.len()], &sinks[first..first + share]);
                    SCORES
                        .with_borrow_mut(|scores| attend::heads(q, &rows, sinks, dim, scores, out));
                });
            }
            Op::Affinity => {
                let (rows, cols) = self.settle(node);
                self.pool
                    .for_chunks(&mut self.arena[rows], cols, |_, row| route::affinity(row));
            }
            Op::RouteTopK { bias, scale, .. } => {
                let bias = bias.map(|b| weights.vector(b));
                let (mut scores, mut order) = (Vec::new(), Vec::new());
                self.route(node, *scale, |affinity, _, ids| {
                    scores.clear();
                    scores.extend_from_slice(affinity);
                    if let Some(bias) = bias {
                        scores.iter_mut().zip(bias).for_each(|(s, b)| *s += b);
                    }
                    route::top_k(&scores, &mut order, ids.len());
                    ids.iter_mut()
                        .zip(&order)
                        .for_each(|(id, &e)| *id = e as i32);
                });
            }
            Op::RouteHash { table, scale, .. } => {
                let table = weights.table(*table);
                self.route(node, *scale, |_, token, ids| {
                    let at = token as usize * ids.len();
                    ids.copy_from_slice(&table[at..at + ids.len()]);
                });
            }
            Op::Experts {
                gate,
                up,
                down,
                clamp,
            } => {
                let experts = Experts {
                    gate: *gate,
                    up: *up,
                    down: *down,
                    clamp: *clamp,
                };
                return self.experts(node, &experts);
            }
            Op::SwiGlu { clamp } => {
                let (gate, cols) = self.settle(node);
                let [up, gate] = views(self.arena, [self.range(node.inputs[1]), gate]);
                let up = &*up;
                self.pool.for_chunks(gate, cols, |r, gate| {
                    experts::swiglu(gate, &up[r * cols..(r + 1) * cols], *clamp);
                });
            }
            Op::Add => {
                let (sum, _) = self.settle(node);
                let [b, sum] = views(self.arena, [self.range(node.inputs[1]), sum]);
                sum.iter_mut().zip(b).for_each(|(a, b)| *a += *b);
            }
            Op::SelectRows => {
                let first = self.step.head_row as usize * self.cols(node.inputs[0]);
                let [x, y] = views(
                    self.arena,
                    [self.range(node.inputs[0]), self.range(node.outputs[0])],
                );
                y.copy_from_slice(&x[first..]);
            }
        }
        Ok(())
    }

    fn show(&self, node: &Node, tap: &mut dyn Tap) {
        if let Op::Experts { .. } = node.op
            && tap.wants_experts(&node.name)
        {
            // The output has memory of its own: the inputs are still there.
            let [x, ids] = [node.inputs[0], node.inputs[1]].map(|t| &self.arena[self.range(t)]);
            let (ids, rows) = (bytemuck::cast_slice(ids), self.rows(node.inputs[0]));
            experts::each(x, ids, rows, self.experts, |expert, input, inner| {
                tap.see_expert(&node.name, expert, input, inner);
            });
        }
        for &t in &node.outputs {
            let value = &self.graph.values()[t.0 as usize];
            if tap.wants(&value.name) {
                let data = &self.arena[self.range(t)];
                let values = match value.shape.dtype {
                    Dtype::F32 => Values::F32(data),
                    Dtype::I32 => Values::I32(bytemuck::cast_slice(data)),
                };
                tap.see(&value.name, self.step.pos, self.rows(t), values);
            }
        }
    }

    /// Rows of a value in this step.
    pub(super) fn rows(&self, t: Tid) -> usize {
        self.step.count(self.graph.shape(t).rows)
    }

    pub(super) fn cols(&self, t: Tid) -> usize {
        self.graph.shape(t).cols as usize
    }

    /// Where a value's rows of this step lie in the arena.
    pub(super) fn range(&self, t: Tid) -> Range<usize> {
        let offset = self.plan.slot(t).offset;
        offset..offset + self.rows(t) * self.cols(t)
    }

    /// For an operation that works in place: make the output hold the first input. Returns its range and columns.
    fn settle(&mut self, node: &Node) -> (Range<usize>, usize) {
        let (from, to) = (self.range(node.inputs[0]), self.range(node.outputs[0]));
        if from.start != to.start {
            self.arena.copy_within(from, to.start);
        }
        (to, self.cols(node.outputs[0]))
    }

    fn store(&mut self, node: &Node, state: StateId) -> Result<(), ExecError> {
        let input = node.inputs[0];
        let first = match self.graph.shape(input).rows {
            Rows::Windows(ratio) => self.step.pos / ratio,
            _ => self.step.pos,
        };
        let rows = self.state.get_mut(state);
        let offset = self.plan.slot(input).offset;
        let cols = self.graph.shape(input).cols as usize;
        for i in 0..self.step.count(self.graph.shape(input).rows) {
            let row = &self.arena[offset + i * cols..offset + (i + 1) * cols];
            rows.row_mut(first as usize + i)?.copy_from_slice(row);
        }
        Ok(())
    }

    /// Router: `choose(affinity, token, ids)` for each row, then the weights of the chosen.
    fn route(
        &mut self,
        node: &Node,
        scale: f32,
        mut choose: impl FnMut(&[f32], Token, &mut [i32]),
    ) {
        let (experts, used) = (self.cols(node.inputs[0]), self.cols(node.outputs[0]));
        let ranges = [node.inputs[0], node.outputs[0], node.outputs[1]].map(|t| self.range(t));
        let [affinity, ids, weights] = views(self.arena, ranges);
        let ids: &mut [i32] = bytemuck::cast_slice_mut(ids);
        let rows = affinity
            .chunks_exact(experts)
            .zip(ids.chunks_exact_mut(used))
            .zip(weights.chunks_exact_mut(used));
        for (((affinity, ids), weights), &token) in rows.zip(self.tokens) {
            choose(affinity, token, ids);
            route::weights(affinity, ids, scale, weights);
        }
    }
}

/// Several values of the arena at once.
pub(super) fn views<const N: usize>(
    arena: &mut [f32],
    ranges: [Range<usize>; N],
) -> [&mut [f32]; N] {
    arena
        .get_disjoint_mut(ranges)
        .expect("the plan keeps values that are alive together apart")
}
