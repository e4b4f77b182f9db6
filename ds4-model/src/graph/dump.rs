//! The recorded graph as DOT (for eyes) and JSON (for diffs).

use std::fmt::Write;

use serde_json::{Value, json};

use super::op::{Dtype, Op, Rows, Tid};
use super::plan::Plan;
use super::state::StateKind;
use super::{Graph, Node};
use crate::weights::Weights;

/// Graphviz source: one box a node, clustered by layer, edges along values.
pub fn to_dot(graph: &Graph, weights: &Weights) -> String {
    let mut out =
        String::from("digraph ds4 {\n  rankdir=TB; node [shape=box, fontname=\"monospace\"];\n");
    let mut writer = vec![0; graph.values().len()];
    let mut open: Option<&str> = None;
    for (index, node) in graph.nodes().iter().enumerate() {
        let layer = node
            .name
            .as_str()
            .split_once('.')
            .map(|(l, _)| l)
            .filter(|l| is_layer(l));
        if layer != open {
            if open.is_some() {
                out.push_str("  }\n");
            }
            if let Some(layer) = layer {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "  subgraph cluster_{layer} {{ label=\"{layer}\";");
            }
            open = layer;
        }
        let _ = writeln!(
            out,
            "    n{index} [label=\"{}\"];",
            label(graph, weights, node)
        );
        for t in &node.outputs {
            writer[t.0 as usize] = index;
        }
    }
    if open.is_some() {
        out.push_str("  }\n");
    }
    for (index, node) in graph.nodes().iter().enumerate() {
        for t in &node.inputs {
            let _ = writeln!(
                out,
                "  n{} -> n{index} [label=\"{}\"];",
                writer[t.0 as usize],
                shape(graph, *t)
            );
        }
    }
    out.push_str("}\n");
    out
}

/// Nodes, values, states and (with a plan) arena slots; stable order, no addresses, so two dumps diff cleanly.
pub fn to_json(graph: &Graph, weights: &Weights, plan: Option<&Plan>) -> Value {
    let nodes = graph.nodes().iter().map(|node| {
        json!({
            "name": node.name.as_str(),
            "op": node.op.name(),
            "detail": format!("{:?}", node.op),
            "inputs": names(graph, &node.inputs),
            "outputs": names(graph, &node.outputs),
            "weights": node.op.matrices().iter().map(|&m| &*weights.info(m).name).collect::<Vec<_>>(),
            "states": node.op.states().iter().map(|&s| &*graph.states().spec(s).name).collect::<Vec<_>>(),
        })
    });
    let values = (0..graph.values().len() as u32).map(|i| {
        let t = Tid(i);
        let mut value =
            json!({ "name": graph.values()[i as usize].name.as_str(), "shape": shape(graph, t) });
        if let Some(plan) = plan {
            let slot = plan.slot(t);
            value["offset"] = json!(slot.offset);
            value["len"] = json!(slot.len);
        }
        value
    });
    let states = graph.states().specs.iter().map(|spec| {
        let kind = match spec.kind {
            StateKind::Ring { keep } => format!("ring of tokens, keeps {} rows", keep.most()),
            StateKind::Windows { ratio } => format!("one row every {ratio} tokens"),
        };
        json!({ "name": &*spec.name, "cols": spec.cols, "kind": kind })
    });
    let mut dump = json!({
        "version": 1,
        "nodes": nodes.collect::<Vec<_>>(),
        "values": values.collect::<Vec<_>>(),
        "states": states.collect::<Vec<_>>(),
        "logits": graph.values()[graph.logits().0 as usize].name.as_str(),
    });
    if let Some(plan) = plan {
        dump["plan"] = json!({ "rows": plan.rows(), "arena_elements": plan.arena() });
    }
    dump
}

fn is_layer(prefix: &str) -> bool {
    prefix
        .strip_prefix('l')
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn names<'g>(graph: &'g Graph, values: &[Tid]) -> Vec<&'g str> {
    values
        .iter()
        .map(|t| graph.values()[t.0 as usize].name.as_str())
        .collect()
}

fn shape(graph: &Graph, t: Tid) -> String {
    let shape = graph.shape(t);
    let rows = match shape.rows {
        Rows::Tokens => "R".to_owned(),
        Rows::Head => "head".to_owned(),
        Rows::Windows(ratio) => format!("R/{ratio}"),
    };
    let dtype = match shape.dtype {
        Dtype::F32 => "f32",
        Dtype::I32 => "i32",
    };
    format!("{dtype} [{rows}, {}]", shape.cols)
}

fn label(graph: &Graph, weights: &Weights, node: &Node) -> String {
    let mut text = format!("{}\\n{}", node.name, node.op.name());
    for m in node.op.matrices() {
        let info = weights.info(m);
        let _ = write!(text, "\\n{} {}", info.name, info.ty.name());
    }
    if let Op::Store { .. } | Op::StoreGate { .. } | Op::Pool { .. } = node.op {
        for state in node.op.states() {
            let _ = write!(text, "\\n({})", graph.states().spec(state).name);
        }
    }
    text
}
