//! The tap that adds up squares.

use std::collections::HashMap;

use super::Entry;
use crate::error::Error;
use crate::exec::{Tap, Values};
use crate::graph::{Graph, NodeName, Op};
use crate::weights::{MatrixId, Weights};

/// Sums for every matrix that reads values, filled while a graph runs.
pub(super) struct Collector {
    entries: Vec<Entry>,
    /// Entries by the name of the value that their matrices read: one for each number of columns that it is read in.
    values: HashMap<NodeName, Vec<usize>>,
    /// By the name of the node of routed experts: the entry of gate and up, and that of down.
    experts: HashMap<NodeName, (usize, usize)>,
}

impl Collector {
    pub(super) fn new(graph: &Graph, weights: &Weights) -> Self {
        let mut this = Self {
            entries: Vec::new(),
            values: HashMap::new(),
            experts: HashMap::new(),
        };
        for node in graph.nodes() {
            match &node.op {
                Op::Linear { .. } | Op::Linears { .. } | Op::GroupedLinear { .. } => {
                    let value = &graph.values()[node.inputs[0].0 as usize].name;
                    for matrix in node.op.matrices() {
                        this.reads(weights, matrix, value);
                    }
                }
                Op::Experts { gate, up, down, .. } => {
                    let outer = this.entry(weights, &[*gate, *up]);
                    let inner = this.entry(weights, &[*down]);
                    this.entries[inner].inner = true;
                    this.experts.insert(node.name.clone(), (outer, inner));
                }
                _ => {}
            }
        }
        this
    }

    /// What was seen; matrices that read nothing are left out.
    pub(super) fn finish(self) -> Vec<Entry> {
        let read = |entry: &Entry| entry.counts.iter().any(|&count| count > 0);
        self.entries.into_iter().filter(read).collect()
    }

    /// Whether all sums are numbers after `tokens` tokens.
    pub(super) fn check(&self, tokens: usize) -> Result<(), Error> {
        self.entries.iter().try_for_each(|entry| {
            let Some(at) = entry.sums.iter().position(|sum| !sum.is_finite()) else {
                return Ok(());
            };
            Err(Error::Importance {
                tensor: entry.tensors[0].clone(),
                expert: (entry.counts.len() > 1).then_some(at / entry.cols),
                column: at % entry.cols,
                value: entry.sums[at],
                tokens,
            })
        })
    }

    /// `matrix` reads `value`: with the others that read it by as many columns. Groups of a row go to different rows of a
    /// matrix and to the same columns.
    fn reads(&mut self, weights: &Weights, matrix: MatrixId, value: &NodeName) {
        let info = weights.info(matrix);
        let known = self.values.get(value).into_iter().flatten();
        let same = |&&entry: &&usize| self.entries[entry].cols == info.cols;
        if let Some(&entry) = known.clone().find(same) {
            self.entries[entry].tensors.push(info.name.clone());
            return;
        }
        let entry = self.entry(weights, &[matrix]);
        self.values.entry(value.clone()).or_default().push(entry);
    }

    fn entry(&mut self, weights: &Weights, matrices: &[MatrixId]) -> usize {
        let info = weights.info(matrices[0]);
        self.entries.push(Entry {
            tensors: matrices
                .iter()
                .map(|&matrix| weights.info(matrix).name.clone())
                .collect(),
            cols: info.cols,
            sums: vec![0.0; info.slices * info.cols],
            counts: vec![0; info.slices],
            inner: false,
        });
        self.entries.len() - 1
    }
}

impl Entry {
    /// Add a row that `expert` read.
    fn add(&mut self, expert: usize, row: &[f32]) {
        let sums = &mut self.sums[expert * self.cols..][..self.cols];
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
        self.counts[expert] += 1;
    }
}

impl Tap for Collector {
    fn wants(&self, name: &NodeName) -> bool {
        self.values.contains_key(name)
    }

    fn see(&mut self, name: &NodeName, _: u32, _: usize, values: Values<'_>) {
        let Values::F32(x) = values else { return };
        for &entry in self.values.get(name).into_iter().flatten() {
            let entry = &mut self.entries[entry];
            let cols = entry.cols;
            x.chunks_exact(cols).for_each(|row| entry.add(0, row));
        }
    }

    fn wants_experts(&self, node: &NodeName) -> bool {
        self.experts.contains_key(node)
    }

    fn see_expert(&mut self, node: &NodeName, expert: usize, input: &[&[f32]], inner: &[&[f32]]) {
        let Some(&(outer, down)) = self.experts.get(node) else {
            return;
        };
        for (entry, rows) in [(outer, input), (down, inner)] {
            rows.iter()
                .for_each(|row| self.entries[entry].add(expert, row));
        }
    }
}
