//! The recorded graph as data: rewriting, memory, dumps.

use crate::golden::*;
use ds4_model::graph::{Op, Plan, Rows, Tid, check, fuse, to_dot, to_json};

#[test]
fn fused_and_unfused_graphs_give_the_same_bits() {
    for name in ["tiny-f32", "tiny-mix"] {
        let golden = Golden::open(name);
        let tokens = &golden.tokens("long.ids")[..200];
        let run = |fuse: bool| {
            let engine = golden.engine(|o| o.fuse = fuse);
            bits(&all_logits(&mut engine.session().unwrap(), tokens))
        };
        assert!(run(true) == run(false), "{name}");
    }
}

#[test]
fn fusing_joins_the_projections_of_one_input() {
    let engine = Golden::open("tiny-f32").engine(|o| o.fuse = false);
    let plain = engine.graph().clone();
    let fused = fuse(plain.clone());
    check(&fused, engine.weights()).unwrap();
    let count = |g: &ds4_model::graph::Graph, name: &str| {
        g.nodes().iter().filter(|n| n.op.name() == name).count()
    };
    assert!(count(&plain, "Linears") == 0 && count(&fused, "Linears") > 0);
    let matrices = |g: &ds4_model::graph::Graph| {
        let mut all: Vec<_> = g
            .nodes()
            .iter()
            .flat_map(|n| n.op.matrices())
            .map(|m| format!("{m:?}"))
            .collect();
        all.sort();
        all
    };
    assert_eq!(matrices(&plain), matrices(&fused));
}

/// Independent of the planner's own bookkeeping: walk the list and look for a write into memory that is still needed.
#[test]
fn values_alive_together_never_share_memory() {
    for name in ["tiny-f32", "tiny-f16", "tiny-q2", "tiny-mix"] {
        let engine = Golden::open(name).engine(|_| {});
        let graph = engine.graph();
        for rows in [1, 5, 64] {
            let plan = Plan::new(graph, rows, true);
            let mut last = vec![0; graph.values().len()];
            for (i, node) in graph.nodes().iter().enumerate() {
                node.inputs.iter().for_each(|t| last[t.0 as usize] = i);
            }
            last[graph.logits().0 as usize] = graph.nodes().len();
            let len = |t: Tid| {
                let shape = graph.shape(t);
                let most = match shape.rows {
                    Rows::Windows(ratio) => rows.div_ceil(ratio as usize),
                    Rows::Tokens | Rows::Head => rows,
                };
                most * shape.cols as usize
            };
            let mut alive: Vec<Tid> = Vec::new();
            for (i, node) in graph.nodes().iter().enumerate() {
                for &out in &node.outputs {
                    let (a, b) = (plan.slot(out).offset, plan.slot(out).offset + len(out));
                    assert!(b <= plan.arena() && a.is_multiple_of(16));
                    for &other in &alive {
                        let (c, d) = (
                            plan.slot(other).offset,
                            plan.slot(other).offset + len(other),
                        );
                        let reused = node.op.in_place()
                            && node.inputs[0] == other
                            && last[other.0 as usize] == i;
                        assert!(
                            b <= c || d <= a || reused,
                            "{} overwrites a value still needed",
                            node.name
                        );
                    }
                }
                alive.extend(&node.outputs);
                alive.retain(|t| last[t.0 as usize] > i);
            }
        }
    }
}

#[test]
fn dumps_name_every_node_and_are_stable() {
    let engine = Golden::open("tiny-f32").engine(|_| {});
    let dot = to_dot(engine.graph(), engine.weights());
    let plan = Plan::new(engine.graph(), 4, false);
    let json = to_json(engine.graph(), engine.weights(), Some(&plan));
    assert_eq!(
        json["nodes"].as_array().unwrap().len(),
        engine.graph().nodes().len()
    );
    assert_eq!(
        json["values"].as_array().unwrap().len(),
        engine.graph().values().len()
    );
    for node in engine.graph().nodes() {
        assert!(dot.contains(node.name.as_str()), "{}", node.name);
    }
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    assert_eq!(json, to_json(engine.graph(), engine.weights(), Some(&plan)));
}

#[test]
fn the_checker_finds_what_is_planted() {
    use ds4_model::graph::GraphError;
    let engine = Golden::open("tiny-f32").engine(|o| o.fuse = false);
    let weights = engine.weights();
    let plant = |change: fn(&mut Vec<ds4_model::graph::Node>)| {
        let mut nodes = engine.graph().nodes().to_vec();
        change(&mut nodes);
        check(&engine.graph().with_nodes(nodes), weights)
    };
    assert_eq!(plant(|_| {}), Ok(()));
    assert!(matches!(
        plant(|n| n.swap(2, 3)),
        Err(GraphError::ReadBeforeWrite { .. })
    ));
    assert!(matches!(
        plant(|n| n.insert(1, n[0].clone())),
        Err(GraphError::DuplicateName { .. })
    ));
    assert!(matches!(
        plant(|n| n.truncate(10)),
        Err(GraphError::ReadBeforeWrite { .. })
    ));
    assert!(matches!(
        plant(|n| n[1].inputs.clear()),
        Err(GraphError::Arity { .. })
    ));
    assert!(matches!(
        plant(|n| {
            let at = n
                .iter()
                .position(|n| {
                    matches!(
                        n.op,
                        Op::RmsNorm {
                            weight: Some(_),
                            ..
                        }
                    )
                })
                .unwrap();
            if let Op::RmsNorm { group, .. } = &mut n[at].op {
                *group /= 2;
            }
        }),
        Err(GraphError::Columns { .. })
    ));
}

/// The table for readers lists exactly the variants of the enum.
#[test]
fn every_operation_has_its_row_in_the_table() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let source = std::fs::read_to_string(format!("{root}/ds4-model/src/graph/op.rs")).unwrap();
    let variants: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Op::")?.split_once("=> \""))
        .map(|(_, name)| name.trim_end_matches("\","))
        .collect();
    assert!(variants.len() > 20);
    let table = std::fs::read_to_string(format!("{root}/docs/ops.md")).unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    for variant in &variants {
        assert!(
            rows.contains(variant),
            "{variant} has no row in docs/ops.md"
        );
    }
    assert_eq!(rows.len(), variants.len());
}
