//! Graphs: nodes and what they come after.

use crate::queue::Work;

/// A node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) handle: usize,
    pub(crate) work: Work,
    /// Places of nodes in the graph.
    pub(crate) after: Vec<usize>,
}

/// A graph. A node comes after nodes that were added before it, so the order of adding is an order of doing.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    pub(crate) fn place(&self, handle: usize) -> Option<usize> {
        self.nodes.iter().position(|n| n.handle == handle)
    }

    /// An order of doing that keeps every dependency and is otherwise as far from the order of adding as can be: a dependency
    /// that was forgotten shows.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut done = vec![false; self.nodes.len()];
        while order.len() < self.nodes.len() {
            let ready = (0..self.nodes.len())
                .rev()
                .find(|&n| !done[n] && self.nodes[n].after.iter().all(|&a| done[a]));
            let Some(next) = ready else { break };
            done[next] = true;
            order.push(next);
        }
        order
    }

    /// The language of Graphviz.
    pub(crate) fn dot(&self) -> String {
        let mut text = String::from("digraph g {\n");
        for (i, node) in self.nodes.iter().enumerate() {
            text.push_str(&format!("  n{i} [label=\"{}\"];\n", node.work.label()));
            for after in &node.after {
                text.push_str(&format!("  n{after} -> n{i};\n"));
            }
        }
        text.push_str("}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(after: &[usize]) -> Node {
        Node {
            handle: 0,
            work: Work::Fill {
                to: 0,
                byte: 0,
                bytes: 0,
            },
            after: after.to_vec(),
        }
    }

    #[test]
    fn nodes_without_an_order_are_done_last_first() {
        let chain = Graph {
            nodes: vec![node(&[]), node(&[0]), node(&[1])],
        };
        assert_eq!(chain.order(), [0, 1, 2]);
        let fork = Graph {
            nodes: vec![node(&[]), node(&[0]), node(&[0]), node(&[1, 2])],
        };
        assert_eq!(fork.order(), [0, 2, 1, 3]);
        let loose = Graph {
            nodes: vec![node(&[]), node(&[])],
        };
        assert_eq!(loose.order(), [1, 0]);
    }
}
