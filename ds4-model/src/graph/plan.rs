//! Gives every value a place in one arena, by liveness: a value's memory is free again after its last reader.

use super::op::{Rows, Tid};
use super::{Graph, Node};

/// Offsets are multiples of this many elements (64 bytes).
const ALIGN: usize = 16;

/// Place of one value in the arena, in 4-byte elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// First element.
    pub offset: usize,
    /// Elements reserved: the most rows a step of the plan can have, times columns.
    pub len: usize,
}

/// Memory plan of a graph for steps of up to `rows` tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    rows: usize,
    slots: Vec<Slot>,
    arena: usize,
}

impl Plan {
    /// Plan `graph` for steps of up to `rows` tokens, all of which may want logits when `all_logits`; else one does.
    pub fn new(graph: &Graph, rows: usize, all_logits: bool) -> Self {
        let head = if all_logits { rows } else { 1 };
        let capacity = |t: Tid| {
            let shape = graph.shape(t);
            let most = match shape.rows {
                Rows::Tokens => rows,
                Rows::Head => head,
                // A step of n tokens closes at most ⌈n / ratio⌉ windows.
                Rows::Windows(ratio) => rows.div_ceil(ratio as usize),
            };
            (most * shape.cols as usize).next_multiple_of(ALIGN)
        };
        let last = last_uses(graph);
        let mut slots = vec![Slot { offset: 0, len: 0 }; graph.values().len()];
        let mut free = FreeList::default();
        for (index, node) in graph.nodes().iter().enumerate() {
            let reused = aliased(graph, node, &last, index);
            for &t in &node.outputs {
                let len = capacity(t);
                slots[t.0 as usize] = match reused {
                    Some(input) => slots[input.0 as usize],
                    None => Slot {
                        offset: free.take(len),
                        len,
                    },
                };
            }
            // A value nobody reads (ids seen only by a tap) dies at once; inputs die at their last reader.
            let dead = node
                .inputs
                .iter()
                .chain(&node.outputs)
                .filter(|t| last[t.0 as usize] == index);
            let mut dead: Vec<Tid> = dead.copied().collect();
            dead.sort_unstable();
            dead.dedup();
            for t in dead
                .into_iter()
                .filter(|t| Some(*t) != reused && *t != graph.logits())
            {
                free.give(slots[t.0 as usize]);
            }
        }
        Plan {
            rows,
            slots,
            arena: free.end,
        }
    }

    /// Most tokens a step of this plan may have.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where a value lives.
    ///
    /// # Panics
    /// When the handle is of another graph.
    pub fn slot(&self, t: Tid) -> Slot {
        self.slots[t.0 as usize]
    }

    /// Elements of the whole arena.
    pub fn arena(&self) -> usize {
        self.arena
    }
}

/// The input whose memory the node's output takes over, when the op allows it and nothing reads the input later.
pub(crate) fn aliased(graph: &Graph, node: &Node, last: &[usize], index: usize) -> Option<Tid> {
    let &input = node.inputs.first()?;
    let distinct = !node.inputs[1..].contains(&input);
    let fits = node.op.in_place()
        && node.outputs.len() == 1
        && graph.shape(node.outputs[0]) == graph.shape(input);
    (distinct && fits && last[input.0 as usize] == index && input != graph.logits())
        .then_some(input)
}

/// Index of the last node that reads (or, unread, writes) each value.
pub(crate) fn last_uses(graph: &Graph) -> Vec<usize> {
    let mut last = vec![0; graph.values().len()];
    for (index, node) in graph.nodes().iter().enumerate() {
        for t in node.outputs.iter().chain(&node.inputs) {
            last[t.0 as usize] = index;
        }
    }
    last
}

/// Holes in the arena, by offset; best fit, neighbours merged.
#[derive(Default)]
struct FreeList {
    holes: Vec<Slot>,
    end: usize,
}

impl FreeList {
    fn take(&mut self, len: usize) -> usize {
        let best = (0..self.holes.len())
            .filter(|&i| self.holes[i].len >= len)
            .min_by_key(|&i| self.holes[i].len);
        match best {
            Some(i) => {
                let offset = self.holes[i].offset;
                self.holes[i].offset += len;
                self.holes[i].len -= len;
                if self.holes[i].len == 0 {
                    self.holes.remove(i);
                }
                offset
            }
            None => {
                // A hole at the very end grows instead of leaving a gap.
                let tail = self.holes.pop_if(|hole| hole.offset + hole.len == self.end);
                let offset = tail.map_or(self.end, |hole| hole.offset);
                self.end = offset + len;
                offset
            }
        }
    }

    fn give(&mut self, slot: Slot) {
        if slot.len == 0 {
            return;
        }
        let at = self.holes.partition_point(|hole| hole.offset < slot.offset);
        self.holes.insert(at, slot);
        if at + 1 < self.holes.len() && slot.offset + slot.len == self.holes[at + 1].offset {
            self.holes[at].len += self.holes.remove(at + 1).len;
        }
        if at > 0 && self.holes[at - 1].offset + self.holes[at - 1].len == self.holes[at].offset {
            self.holes[at - 1].len += self.holes.remove(at).len;
        }
    }
}
