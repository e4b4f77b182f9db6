//! Named rewriting rules. Each keeps every value's bits; a test runs fused and unfused graphs against each other.

use std::collections::HashMap;

use super::op::{Op, Tid};
use super::{Graph, Node};

/// Apply every rule.
pub fn fuse(graph: Graph) -> Graph {
    linears_of_one_input(graph)
}

/// `Linear(x, A) … Linear(x, B)` → `Linears(x, [A, B])` at the place of the first:
/// the input is quantized once and the pool is entered once.
fn linears_of_one_input(mut graph: Graph) -> Graph {
    let mut groups: HashMap<Tid, Vec<usize>> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if let Op::Linear { .. } = node.op {
            groups.entry(node.inputs[0]).or_default().push(index);
        }
    }
    let mut moved = vec![false; graph.nodes.len()];
    let mut merged: HashMap<usize, Node> = HashMap::new();
    for group in groups.into_values().filter(|g| g.len() > 1) {
        let first = &graph.nodes[group[0]];
        let node = Node {
            name: first.name.clone(),
            op: Op::Linears {
                weights: group
                    .iter()
                    .flat_map(|&i| graph.nodes[i].op.matrices())
                    .collect(),
            },
            inputs: first.inputs.clone(),
            outputs: group
                .iter()
                .flat_map(|&i| graph.nodes[i].outputs.clone())
                .collect(),
        };
        merged.insert(group[0], node);
        for &index in &group[1..] {
            moved[index] = true;
        }
    }
    let nodes = std::mem::take(&mut graph.nodes);
    graph.nodes = nodes
        .into_iter()
        .enumerate()
        .filter(|(index, _)| !moved[*index])
        .map(|(index, node)| merged.remove(&index).unwrap_or(node))
        .collect();
    graph
}
