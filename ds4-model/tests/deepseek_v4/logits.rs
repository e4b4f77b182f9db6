//! The tiny DeepSeek-V4 models against transformers (plain arithmetic) and the reference engine's rounding.

use crate::golden::*;
use ds4_model::arch::deepseek4::CacheRounding;
use ds4_model::{Options, Precision};

const MODELS: [&str; 4] = ["tiny-f32", "tiny-f16", "tiny-q2", "tiny-mix"];

/// The arithmetic of the goldens: weights decoded exactly, activations and cached rows in f32.
fn exact(options: &mut Options) {
    options.precision = Precision::Exact;
    options.rounding = CacheRounding::None;
}

fn long_rows(golden: &Golden) -> Vec<usize> {
    golden
        .tokens("long.rows")
        .into_iter()
        .map(|r| r as usize)
        .collect()
}

#[test]
fn logits_of_every_position_equal_transformers() {
    for name in MODELS {
        let golden = Golden::open(name);
        let engine = golden.engine(exact);
        let short = all_logits(&mut engine.session().unwrap(), &golden.tokens("short.ids"));
        let error = max_abs_difference(&short, &golden.f32("short.logits"));
        println!("{name}: short {error:.1e}");
        assert!(
            error <= golden.tolerance("short_f32_max_abs"),
            "{name}: short prompt off by {error}"
        );

        let long = all_logits(&mut engine.session().unwrap(), &golden.tokens("long.ids"));
        let long = pick(&long, golden.vocab(), &long_rows(&golden));
        let error = max_abs_difference(&long, &golden.f32("long.logits"));
        println!("{name}: long {error:.1e}");
        assert!(
            error <= golden.tolerance("long_f32_max_abs"),
            "{name}: long prompt off by {error}"
        );
    }
}

#[test]
fn logits_with_reference_rounding_are_within_its_own_spread() {
    for name in MODELS {
        let golden = Golden::open(name);
        let engine = golden.engine(|o| o.precision = Precision::Exact);
        let short = all_logits(&mut engine.session().unwrap(), &golden.tokens("short.ids"));
        let error = rms_difference(&short, &golden.f32("short.engine.logits"));
        println!("{name}: short rms {error:.1e}");
        assert!(
            error <= golden.tolerance("engine_rms"),
            "{name}: short prompt rms {error}"
        );

        let long = all_logits(&mut engine.session().unwrap(), &golden.tokens("long.ids"));
        let long = pick(&long, golden.vocab(), &long_rows(&golden));
        let error = rms_difference(&long, &golden.f32("long.engine.logits"));
        println!("{name}: long rms {error:.1e}");
        assert!(
            error <= golden.tolerance("engine_rms"),
            "{name}: long prompt rms {error}"
        );
    }
}

/// Signed bytes as activations cost what they cost in the reference implementations: rms 0.12 at logit deviation 2.
#[test]
fn byte_activations_keep_the_answer() {
    for name in MODELS {
        let golden = Golden::open(name);
        let engine = golden.engine(|o| o.rounding = CacheRounding::None);
        for (ids, logits, rows) in [
            ("short.ids", "short.logits", None),
            ("long.ids", "long.logits", Some(())),
        ] {
            let mut got = all_logits(&mut engine.session().unwrap(), &golden.tokens(ids));
            if rows.is_some() {
                got = pick(&got, golden.vocab(), &long_rows(&golden));
            }
            let want = golden.f32(logits);
            let (rms, argmax) = (
                rms_difference(&got, &want),
                same_argmax(&got, &want, golden.vocab()),
            );
            println!(
                "{name}: {ids} rms {rms:.1e}, argmax {:.1} %",
                100.0 * argmax
            );
            assert!(rms <= 0.12, "{name}: {ids} rms {rms}");
            assert!(argmax >= 0.85, "{name}: {ids} argmax {argmax}");
        }
    }
}

#[test]
fn logits_have_the_same_bits_for_any_chunks_and_threads() {
    for name in MODELS {
        let golden = Golden::open(name);
        let tokens = golden.tokens("long.ids");
        for precision in [Precision::Exact, Precision::Fast] {
            let mut first: Option<Vec<u32>> = None;
            for (chunk, threads) in [(512, 1), (1, 1), (7, 2), (64, 1), (64, 2), (512, 2)] {
                let engine = golden.engine(|o| {
                    o.precision = precision;
                    o.prefill_rows = chunk;
                    o.threads = threads;
                });
                let got = bits(&all_logits(&mut engine.session().unwrap(), &tokens));
                let want = first.get_or_insert_with(|| got.clone());
                assert!(
                    got == *want,
                    "{name} {precision:?}: chunks of {chunk} on {threads} threads differ"
                );
            }
        }
    }
}

#[test]
fn greedy_continuation_equals_transformers() {
    for name in MODELS {
        let golden = Golden::open(name);
        let engine = golden.engine(exact);
        let mut session = engine.session().unwrap();
        session.sync(&golden.tokens("short.ids")).unwrap();
        for want in golden.tokens("short.greedy") {
            let logits = session.logits();
            let best = (0..logits.len())
                .max_by(|&i, &j| logits[i].total_cmp(&logits[j]))
                .unwrap();
            assert_eq!(best as u32, want, "{name}");
            session.push(want).unwrap();
        }
    }
}

#[test]
fn the_indexer_chooses_what_the_reference_chooses() {
    for name in MODELS {
        let golden = Golden::open(name);
        let engine = golden.engine(exact);
        let mut recorder = Recorder::default();
        let tokens = golden.tokens("long.ids");
        let mut session = engine.session().unwrap();
        session
            .run(&tokens, ds4_model::Logits::None, &mut recorder, &mut |_| {})
            .unwrap();
        let mut compared = 0;
        for layer in 0..golden.layers() {
            if let Some((shape, want)) = golden.try_i32(&format!("long.L{layer}.indexer_topk")) {
                let got = &recorder.i32[&format!("l{layer:02}.index.top_k")];
                for (i, row) in long_rows(&golden).into_iter().enumerate() {
                    let k = shape[1];
                    assert_eq!(
                        got[row * k..(row + 1) * k],
                        want[i * k..(i + 1) * k],
                        "{name} layer {layer} row {row}"
                    );
                    compared += 1;
                }
            }
            if let Some((_, want)) = golden.try_f32(&format!("long.L{layer}.comp_kv")) {
                let got = &recorder.f32[&format!("l{layer:02}.attn.comp.rope")];
                let scale = want.iter().fold(0f32, |m, v| m.max(v.abs()));
                assert!(
                    max_abs_difference(got, &want) <= golden.tolerance("trace_rel") * scale,
                    "{name} layer {layer}"
                );
            }
        }
        assert!(compared > 0, "{name} has indexer goldens");
    }
}

/// Golden name, node name, and what the node's value must be multiplied by.
const TRACE: &[(&str, &str)] = &[
    ("attn_in", "attn.hc.collapse"),
    ("attn_norm", "attn.norm"),
    ("q_lora_norm", "attn.q_a.norm"),
    ("q", "attn.q"),
    ("kv", "attn.kv"),
    ("attn_heads", "attn.heads"),
    ("attn_low", "attn.low"),
    ("attn_out", "attn.out"),
    ("after_attn", "attn.hc.expand"),
    ("ffn_in", "ffn.hc.collapse"),
    ("ffn_norm", "ffn.norm"),
    ("router_prob", "ffn.affinity"),
    ("moe_out", "ffn.experts"),
    ("shexp_out", "ffn.shared.down"),
    ("ffn_out", "ffn.out"),
    ("layer_out", "ffn.hc.expand"),
    ("indexer_q", "index.q"),
];

#[test]
fn every_tapped_layer_value_equals_the_reference() {
    let compared = std::cell::Cell::new(0);
    for name in ["tiny-f32", "tiny-q2"] {
        let golden = Golden::open(name);
        let engine = golden.engine(exact);
        let mut tap = Recorder::default();
        let tokens = golden.tokens("short.ids");
        engine
            .session()
            .unwrap()
            .run(&tokens, ds4_model::Logits::All, &mut tap, &mut |_| {})
            .unwrap();
        let positions: Vec<usize> = golden
            .tokens("trace.pos")
            .into_iter()
            .map(|p| p as usize)
            .collect();
        let rows = tokens.len();
        let close = |label: String, got: &[f32], want: &[f32]| {
            let scale = want.iter().fold(0f32, |m, v| m.max(v.abs()));
            let error = max_abs_difference(got, want) / scale;
            assert!(
                error <= golden.tolerance("trace_rel"),
                "{name} {label}: relative error {error}"
            );
            compared.set(compared.get() + 1);
        };
        let streams = golden.config("hc");
        for layer in 0..golden.layers() {
            let node = |n: &str| format!("l{layer:02}.{n}");
            for (trace, value) in TRACE {
                let Some((_, want)) = golden.try_f32(&format!("trace.L{layer}.{trace}")) else {
                    continue;
                };
                let got = &tap.f32[&node(value)];
                close(
                    format!("L{layer}.{trace}"),
                    &pick(got, got.len() / rows, &positions),
                    &want,
                );
            }
            // pre, post and comb share one row.
            for (side, value) in [("attn", "attn.hc.weights"), ("ffn", "ffn.hc.weights")] {
                let got = &tap.f32[&node(value)];
                let mixed = pick(got, got.len() / rows, &positions);
                let cut = |from: usize, to: usize| -> Vec<f32> {
                    mixed
                        .chunks_exact(got.len() / rows)
                        .flat_map(|m| m[from..to].to_vec())
                        .collect()
                };
                let end = 2 * streams + streams * streams;
                for (part, from, to) in [("post", streams, 2 * streams), ("comb", 2 * streams, end)]
                {
                    if let Some((_, want)) =
                        golden.try_f32(&format!("trace.L{layer}.{side}_hc_{part}"))
                    {
                        close(format!("L{layer}.{side}_hc_{part}"), &cut(from, to), &want);
                    }
                }
            }
            // Compressed rows: every closed window, not only the traced positions.
            for (trace, value) in [
                ("comp_kv", "attn.comp.rope"),
                ("indexer_kv", "index.comp.rope"),
            ] {
                if let Some((_, want)) = golden.try_f32(&format!("trace.L{layer}.{trace}")) {
                    close(format!("L{layer}.{trace}"), &tap.f32[&node(value)], &want);
                }
            }
            if let Some((_, want)) = golden.try_f32(&format!("trace.L{layer}.indexer_w")) {
                // The graph leaves out the constant factor, which changes no order.
                let scale =
                    1.0 / ((golden.config("idx_heads") * golden.config("idx_dim")) as f32).sqrt();
                let got = &tap.f32[&node("index.weights")];
                let got: Vec<f32> = got.iter().map(|w| w * scale).collect();
                close(
                    format!("L{layer}.indexer_w"),
                    &pick(&got, got.len() / rows, &positions),
                    &want,
                );
            }
            if let Some((shape, want)) = golden.try_i32(&format!("trace.L{layer}.indexer_topk")) {
                let got = &tap.i32[&node("index.top_k")];
                for (i, p) in positions.iter().enumerate() {
                    let k = shape[1];
                    assert_eq!(
                        got[p * k..(p + 1) * k],
                        want[i * k..(i + 1) * k],
                        "{name} L{layer} position {p}"
                    );
                }
                compared.set(compared.get() + 1);
            }
            // Experts may come in any order; their weights go with them.
            if let Some((shape, ids)) = golden.try_i32(&format!("trace.L{layer}.expert_ids")) {
                let weights = golden.f32(&format!("trace.L{layer}.expert_w"));
                let (got_ids, got_weights) = (
                    &tap.i32[&node("ffn.route.ids")],
                    &tap.f32[&node("ffn.route.weights")],
                );
                let k = shape[1];
                for (i, p) in positions.iter().enumerate() {
                    let sorted = |ids: &[i32], w: &[f32]| {
                        let mut pairs: Vec<(i32, f32)> =
                            ids.iter().copied().zip(w.iter().copied()).collect();
                        pairs.sort_by_key(|(id, _)| *id);
                        pairs
                    };
                    let got = sorted(
                        &got_ids[p * k..(p + 1) * k],
                        &got_weights[p * k..(p + 1) * k],
                    );
                    let want = sorted(&ids[i * k..(i + 1) * k], &weights[i * k..(i + 1) * k]);
                    assert!(
                        got.iter()
                            .map(|(id, _)| id)
                            .eq(want.iter().map(|(id, _)| id)),
                        "{name} L{layer}"
                    );
                    let (got, want): (Vec<f32>, Vec<f32>) = (
                        got.into_iter().map(|p| p.1).collect(),
                        want.into_iter().map(|p| p.1).collect(),
                    );
                    close(format!("L{layer}.expert_w"), &got, &want);
                }
            }
        }
        for (trace, value) in [("head_in", "head.hc.collapse"), ("head_norm", "head.norm")] {
            let Some((_, want)) = golden.try_f32(&format!("trace.{trace}")) else {
                continue;
            };
            let got = &tap.f32[value];
            close(
                trace.into(),
                &pick(got, got.len() / rows, &positions),
                &want,
            );
        }
    }
    println!("{} arrays compared", compared.get());
    assert!(compared.get() > 100);
}
