//! Numbers about a prompt are those that a session gives.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::ops::ControlFlow;

use ds4_model::diagnose::{self, GIVEN};
use ds4_model::exec::NoTap;
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Error, Logits, Message, Options, Sampler, Token};

const TEXT: &str = "The capital of France is Paris. The capital of Italy is Rome. Water boils at a hundred degrees, \
    and freezes at none. A model that has learned a few facts is not surprised by them, but by everything else it is.";

fn demo(rows: usize) -> Engine {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
    let mut options = Options::default();
    options.context = Some(512);
    options.prefill_rows = rows;
    Engine::open(path, options).unwrap()
}

fn question(engine: &Engine) -> Vec<Token> {
    engine
        .render(&[Message::user("What is the capital of France?")])
        .unwrap()
}

fn on(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// `−ln p` of `token`, by the definition.
fn surprise(logits: &[f32], token: Token) -> f64 {
    let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    sum.ln() - f64::from(logits[token as usize])
}

/// Exponentials in single precision are off by at most 5e-7, and so is the logarithm of their sum: 1e-6 a token is enough.
#[test]
fn perplexity_is_what_it_is_by_hand() {
    let engine = demo(7);
    let tokens = engine.tokenizer().encode(TEXT, Special::None);
    assert!(tokens.len() > GIVEN + 10, "{}", tokens.len());
    let mut session = engine.session().unwrap();
    let mut all = Vec::new();
    session
        .run(&tokens, Logits::All, &mut NoTap, &mut |rows| {
            all.extend_from_slice(rows);
        })
        .unwrap();
    let vocab = engine.config().vocab;
    let by_hand = |scored: usize| -> f64 {
        (GIVEN..GIVEN + scored)
            .map(|i| surprise(&all[(i - 1) * vocab..i * vocab], tokens[i]))
            .sum()
    };
    for limit in [usize::MAX, 9, 1] {
        let mut seen = (0, 0);
        let found = diagnose::perplexity(&engine, &tokens, limit, &mut |done, total| {
            seen = (done, total);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(found.tokens, tokens.len());
        assert_eq!(found.scored, limit.min(tokens.len() - GIVEN));
        assert_eq!(seen, (GIVEN + found.scored - 1, GIVEN + found.scored - 1));
        let want = by_hand(found.scored);
        assert!(
            (found.nll - want).abs() < 1e-6 * found.scored as f64,
            "{} {want}",
            found.nll
        );
        assert!((found.value() - (want / found.scored as f64).exp()).abs() < 2e-6 * found.value());
    }
}

#[test]
fn a_text_without_a_token_to_score_is_an_error() {
    let engine = demo(32);
    let tokens = engine.tokenizer().encode(TEXT, Special::None);
    for (tokens, limit, option) in [
        (&tokens[..GIVEN], 9, "text"),
        (&tokens[..0], 9, "text"),
        (&tokens[..], 0, "tokens"),
    ] {
        let error = diagnose::perplexity(&engine, tokens, limit, &mut on).unwrap_err();
        assert!(
            matches!(error, Error::Option { option: name, .. } if name == option),
            "{error}"
        );
    }
    let stop = &mut |_, _| ControlFlow::Break(());
    let error = diagnose::perplexity(&engine, &tokens, 99, stop).unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
}

#[test]
fn dumped_logits_are_those_of_a_session() {
    let engine = demo(512);
    let prompt = question(&engine);
    let json = diagnose::logits(&engine, &prompt, &mut on).unwrap();
    // Through its text, as a reader has it.
    let json: serde_json::Value = serde_json::from_str(&json.to_string()).unwrap();
    let mut session = engine.session().unwrap();
    session.sync(&prompt).unwrap();
    let logits: Vec<f32> = json["logits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap() as f32)
        .collect();
    assert_eq!(logits, session.logits(), "the same bits");
    let best = Sampler::default().sample(session.logits());
    assert_eq!(json["argmax_token"]["id"], best);
    assert_eq!(json["argmax_token"]["text"], "The");
    assert_eq!(json["argmax_token"]["bytes"], serde_json::json!(b"The"));
    assert_eq!(json["prompt_tokens"], prompt.len());
    assert_eq!(json["vocab"], engine.config().vocab);
    let nothing = diagnose::logits(&engine, &[], &mut on).unwrap_err();
    assert!(matches!(nothing, Error::NoLogits), "{nothing}");
}

#[test]
fn dumped_logprobs_are_those_of_the_likeliest_answer() {
    let engine = demo(512);
    let prompt = question(&engine);
    let json = diagnose::logprobs(&engine, &prompt, 50, 4, &mut on).unwrap();
    let steps = json["steps"].as_array().unwrap();
    let text: String = steps
        .iter()
        .map(|step| step["selected"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "The capital of France is Paris.<｜end▁of▁sentence｜>");
    let mut session = engine.session().unwrap();
    session.sync(&prompt).unwrap();
    for (i, step) in steps.iter().enumerate() {
        assert_eq!(step["step"], i);
        let top = step["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 4);
        assert_eq!(top[0]["token"], step["selected"]);
        let mut before = f64::INFINITY;
        for alternative in top {
            let id = alternative["token"]["id"].as_u64().unwrap() as Token;
            let logit = alternative["logit"].as_f64().unwrap() as f32;
            assert_eq!(logit, session.logits()[id as usize]);
            let logprob = alternative["logprob"].as_f64().unwrap();
            assert!((logprob + surprise(session.logits(), id)).abs() < 1e-5);
            assert!(logprob <= before);
            before = logprob;
        }
        session
            .push(step["selected"]["id"].as_u64().unwrap() as Token)
            .unwrap();
    }
    let short = diagnose::logprobs(&engine, &prompt, 2, 4, &mut on).unwrap();
    assert_eq!(short["steps"].as_array().unwrap()[..], steps[..2]);
}

#[test]
fn decoding_and_reading_agree_to_the_bit() {
    let engine = demo(5);
    let prompt = question(&engine);
    let found = diagnose::consistency(&engine, &prompt, 6, &mut on).unwrap();
    assert_eq!(
        (found.largest, found.rms, found.decoded.len()),
        (0.0, 0.0, 6)
    );
    assert!(found.agrees());
    // The answer has seven tokens and its end: nothing is decoded after that.
    let found = diagnose::consistency(&engine, &prompt, 100, &mut on).unwrap();
    assert!(engine.stops().is_stop(*found.decoded.last().unwrap()));
    assert!(found.agrees() && found.largest == 0.0);
}

#[test]
fn tokens_are_listed_with_their_text() {
    let engine = demo(512);
    let ids = engine.tokenizer().encode("<｜User｜>Hi", Special::All);
    let tokens = diagnose::Tokens {
        tokenizer: engine.tokenizer(),
        ids: &ids,
    };
    let want = format!(
        "[{}, {}]\n{:>6}  <｜User｜>\n{:>6}  Hi",
        ids[0], ids[1], ids[0], ids[1]
    );
    assert_eq!(tokens.to_string(), want);
}
