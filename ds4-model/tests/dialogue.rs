//! Question after question on one timeline; and what it needs of memory.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::ops::ControlFlow;

use ds4_gguf::Gguf;
use ds4_model::chat::{Role, ThinkMode};
use ds4_model::fit::{Fit, Machine, Need};
use ds4_model::serve::{Ended, Update};
use ds4_model::{Dialogue, Engine, Error, Message, Options, Sampler};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
const FRANCE: &str = "What is the capital of France?";
const ITALY: &str = "What is the capital of Italy?";

fn engine(context: usize) -> Engine {
    let mut options = Options::default();
    options.context = Some(context);
    options.prefill_rows = 8;
    Engine::open(DEMO, options).unwrap()
}

fn on(_: &Update) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn the_second_question_reads_only_what_is_new() {
    let engine = engine(256);
    let mut dialogue = Dialogue::new(&engine, Some("Be brief.")).unwrap();
    dialogue.render.think = ThinkMode::Off;
    let first = dialogue.ask(FRANCE, &mut on).unwrap();
    assert_eq!(first.parsed.content, "The capital of France is Paris.");
    assert_eq!((first.ended, first.usage.cached), (Ended::Stop, 0));
    let known = first.usage.prompt + first.usage.completion - 1;
    let second = dialogue.ask(ITALY, &mut on).unwrap();
    assert_eq!(second.usage.cached, known);
    // The same conversation, read at once, has the same answer.
    let mut messages = vec![Message::system("Be brief.")];
    messages.extend_from_slice(&dialogue.messages()[..2]);
    messages.push(Message::user(ITALY));
    let mut session = engine.session().unwrap();
    session.sync(&engine.render(&messages).unwrap()).unwrap();
    let text: String = session
        .generate(&mut Sampler::default(), &engine.stops())
        .map(|piece| piece.unwrap().text)
        .collect();
    assert_eq!(second.parsed.content, text);
    let roles: Vec<Role> = dialogue.messages().iter().map(|m| m.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::User, Role::Assistant]
    );
    dialogue.reset();
    assert!(dialogue.messages().is_empty());
    assert_eq!(
        dialogue.ask(FRANCE, &mut on).unwrap().parsed.content,
        first.parsed.content
    );
}

#[test]
fn reasoning_is_apart_and_later_prompts_do_without() {
    let mut dialogue = Dialogue::new(&engine(256), None).unwrap();
    let end = dialogue.ask(FRANCE, &mut on).unwrap();
    assert!(!end.parsed.reasoning.unwrap().is_empty());
    assert_eq!(end.parsed.content, "The capital of France is Paris.");
    let prompt = dialogue.prompt(ITALY).unwrap();
    let text = dialogue.engine().tokenizer().decode(&prompt);
    assert!(text.contains("</think>The capital of France is Paris.<｜end▁of▁sentence｜>"));
}

#[test]
fn a_draw_goes_on_where_the_last_one_ended() {
    let mut dialogue = Dialogue::new(&engine(256), None).unwrap();
    dialogue.sampler = Sampler {
        temperature: 1.0,
        ..Sampler::seeded(7)
    };
    let end = dialogue.ask(FRANCE, &mut on).unwrap();
    assert_eq!(dialogue.sampler.used, end.usage.completion as u64);
}

#[test]
fn what_is_stopped_while_it_is_written_is_remembered() {
    for think in [ThinkMode::Off, ThinkMode::On] {
        let mut dialogue = Dialogue::new(&engine(256), None).unwrap();
        dialogue.render.think = think;
        let mut parts = 0;
        let end = dialogue
            .ask(FRANCE, &mut |update| {
                parts += update.deltas.len();
                match parts {
                    3.. => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            })
            .unwrap();
        assert_eq!(end.ended, Ended::Length);
        assert_eq!(dialogue.messages().len(), 2);
        let said = &dialogue.messages()[1];
        let text = said.content.clone() + said.reasoning.as_deref().unwrap_or_default();
        assert!(!text.is_empty() && text == end.text, "{text}: {}", end.text);
        // Reasoning that was cut off is not taken for an answer.
        let prompt = dialogue.prompt(ITALY).unwrap();
        let prompt = dialogue.engine().tokenizer().decode(&prompt);
        assert_eq!(prompt.contains(&end.text), !think.is_on(), "{prompt}");
        let next = dialogue.ask(ITALY, &mut on).unwrap();
        assert!(!next.parsed.content.is_empty());
    }
}

#[test]
fn a_question_that_is_not_answered_was_not_asked() {
    let engine = engine(40);
    let mut dialogue = Dialogue::new(&engine, None).unwrap();
    let stopped = dialogue.ask(FRANCE, &mut |_| ControlFlow::Break(()));
    assert!(
        matches!(stopped, Err(Error::Stopped { done: 8, total: 11 })),
        "{stopped:?}"
    );
    // Nor when all of the prompt was read, but nothing of an answer was there.
    let stopped = dialogue.ask(FRANCE, &mut |update| match update.read {
        11 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(
        matches!(
            stopped,
            Err(Error::Stopped {
                done: 11,
                total: 11
            })
        ),
        "{stopped:?}"
    );
    let long = FRANCE.repeat(20);
    let error = dialogue.ask(&long, &mut on);
    assert!(matches!(error, Err(Error::Context { .. })), "{error:?}");
    assert!(dialogue.messages().is_empty());
    // Another context has room, and the conversation goes on there.
    dialogue.move_to(&self::engine(4096)).unwrap();
    dialogue.ask(&long, &mut on).unwrap();
    assert_eq!(dialogue.messages().len(), 2);
}

#[test]
fn the_end_of_the_context_ends_an_answer() {
    let mut dialogue = Dialogue::new(&engine(14), None).unwrap();
    let end = dialogue.ask(FRANCE, &mut on).unwrap();
    assert_eq!(end.ended, Ended::Length);
    assert_eq!(dialogue.tokens(), 14);
}

#[test]
fn a_need_is_what_engines_and_sessions_take() {
    let gguf = Gguf::open(DEMO).unwrap();
    let need = |context, rows, sessions| {
        let mut options = Options::default();
        options.context = Some(context);
        options.prefill_rows = rows;
        Need::of(&gguf, options, sessions).unwrap()
    };
    let small = need(64, 8, 1);
    let engine = engine(64);
    let states = engine.graph().states();
    assert_eq!(small.session, states.bytes(64, 8));
    let matrices: u64 = engine
        .weights()
        .matrices()
        .map(|(_, m)| (m.slice_bytes() * m.slices) as u64)
        .sum();
    assert_eq!(small.weights, matrices);
    let long = need(4096, 8, 3);
    assert!(long.session > small.session && long.arena == small.arena);
    let three = 3 * (long.session + long.checkpoints);
    assert_eq!(
        long.total(),
        long.weights + long.decoded + long.arena + long.experts + three
    );
    let wide = need(64, 32, 1);
    assert!(wide.arena > 3 * small.arena && wide.experts == 4 * small.experts);
    // No step is wider than the context, no context longer than the model's.
    assert_eq!(need(64, 512, 1).rows, 64);
    assert_eq!(need(usize::MAX, 8, 1).context, engine.config().context);
}

#[test]
fn a_verdict_is_a_comparison() {
    let gguf = Gguf::open(DEMO).unwrap();
    let need = Need::of(&gguf, Options::default(), 1).unwrap();
    let fit = |total, available| Fit {
        need,
        machine: Machine { total, available },
    };
    let bytes = need.total();
    assert!(fit(bytes, bytes).fits());
    for (fit, words) in [
        (fit(bytes, bytes - 1), "would not fit now"),
        (fit(bytes - 1, bytes), "would not fit: 1 B too much"),
        (fit(bytes - 1, 0), "would not fit: 1 B too much"),
    ] {
        assert!(!fit.fits() && fit.verdict().starts_with(words), "{fit}");
        assert_eq!(fit.to_json()["fits"], false);
    }
}
