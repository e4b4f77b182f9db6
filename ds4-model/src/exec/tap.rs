//! Watching values by name while a graph runs: per-layer goldens, dumps, curiosity.

use crate::graph::NodeName;

/// A value handed to a [`Tap`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values<'a> {
    /// Numbers, row-major.
    F32(&'a [f32]),
    /// Indices, row-major; −1 = unused.
    I32(&'a [i32]),
}

/// Sees named values as they are computed, on a worker thread of the executor.
pub trait Tap: Send {
    /// Whether [`Tap::see`] should be called for this value; asked for every value of every step.
    fn wants(&self, name: &NodeName) -> bool;

    /// A value of the step, `[rows, cols]` row-major; `position` is that of the step's first token.
    fn see(&mut self, name: &NodeName, position: u32, rows: usize, values: Values<'_>);

    /// Whether [`Tap::see_expert`] should be called for the routed experts of this node.
    fn wants_experts(&self, _node: &NodeName) -> bool {
        false
    }

    /// The rows that one routed expert read in a step, once an expert that read any: `input` are what gate and up read,
    /// `[rows, D]`, and `inner` what down read for each of them, `[rows, F]`, before routing weights.
    fn see_expert(
        &mut self,
        _node: &NodeName,
        _expert: usize,
        _input: &[&[f32]],
        _inner: &[&[f32]],
    ) {
    }
}

/// Two that see the same.
pub(crate) struct Both<'a>(pub(crate) &'a mut dyn Tap, pub(crate) &'a mut dyn Tap);

impl Tap for Both<'_> {
    fn wants(&self, name: &NodeName) -> bool {
        self.0.wants(name) || self.1.wants(name)
    }

    fn see(&mut self, name: &NodeName, position: u32, rows: usize, values: Values<'_>) {
        for tap in [&mut *self.0, &mut *self.1] {
            if tap.wants(name) {
                tap.see(name, position, rows, values);
            }
        }
    }

    fn wants_experts(&self, node: &NodeName) -> bool {
        self.0.wants_experts(node) || self.1.wants_experts(node)
    }

    fn see_expert(&mut self, node: &NodeName, expert: usize, input: &[&[f32]], inner: &[&[f32]]) {
        for tap in [&mut *self.0, &mut *self.1] {
            if tap.wants_experts(node) {
                tap.see_expert(node, expert, input, inner);
            }
        }
    }
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {
    fn wants(&self, _: &NodeName) -> bool {
        false
    }

    fn see(&mut self, _: &NodeName, _: u32, _: usize, _: Values<'_>) {}
}
