//! Many answers at once on the demo model: each is the one it would be alone, whoever comes and goes.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod answers;
mod kept;

use std::collections::{BTreeMap, BTreeSet};

use ds4_model::chat::{Delta, ParseOptions, ThinkMode};
use ds4_model::serve::{
    Answer, Clients, End, Ended, Id, Readiness, Reading, Request, Scheduler, Settings, Store,
    StoreError, StoreEvent, Update,
};
use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Message, Options, Sampler, Token};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

fn engine() -> Engine {
    let mut options = Options::default();
    options.threads = 1;
    options.prefill_rows = 64;
    Engine::open(DEMO, options).unwrap()
}

fn prompt(engine: &Engine, messages: &[Message]) -> Vec<Token> {
    engine.render(messages).unwrap()
}

fn request(engine: &Engine, prompt: Vec<Token>) -> Request {
    let parser = engine.chat().stream_parser(&ParseOptions {
        think: ThinkMode::Off,
        evidence: true,
        ..ParseOptions::default()
    });
    Request {
        prompt,
        sampler: Sampler::default(),
        stop: engine.stops(),
        limit: 64,
        reading: Reading::Chat(Box::new(parser)),
        logprobs: None,
        #[cfg(feature = "grammar")]
        grammar: None,
    }
}

fn ask(engine: &Engine, question: &str) -> Request {
    request(engine, prompt(engine, &[Message::user(question)]))
}

/// Clients that keep what they get; some go away after so many updates, some are slow.
#[derive(Default)]
struct Crowd {
    text: BTreeMap<Id, String>,
    ends: BTreeMap<Id, End>,
    over: BTreeSet<Id>,
    updates: BTreeMap<Id, usize>,
    leave_after: BTreeMap<Id, usize>,
    busy_until: BTreeMap<Id, usize>,
    asked: usize,
}

impl Clients for Crowd {
    fn readiness(&mut self, id: Id) -> Readiness {
        self.asked += 1;
        let seen = self.updates.get(&id).copied().unwrap_or(0);
        if self.leave_after.get(&id).is_some_and(|&n| seen >= n) {
            Readiness::Gone
        } else if self.busy_until.get(&id).is_some_and(|&n| self.asked < n) {
            Readiness::Wait
        } else {
            Readiness::Ready
        }
    }

    fn update(&mut self, id: Id, update: Update) {
        *self.updates.entry(id).or_default() += 1;
        for delta in update.deltas {
            if let Delta::Content(text) = delta {
                *self.text.entry(id).or_default() += &text;
            }
        }
        if let Some(end) = update.end {
            self.ends.insert(id, end);
        }
    }

    fn over(&mut self, id: Id) {
        assert!(self.over.insert(id), "{id} is over twice");
    }
}

fn run(scheduler: &mut Scheduler, crowd: &mut Crowd) {
    for _ in 0..100_000 {
        let turn = scheduler.turn(crowd);
        if turn.active == 0 && turn.waiting == 0 {
            return;
        }
    }
    panic!("the scheduler does not come to an end");
}

fn settings(slots: usize, slice: usize) -> Settings {
    let mut settings = Settings::default();
    (settings.slots, settings.slice, settings.store_from) = (slots, slice, 16);
    settings
}

fn alone(engine: &Engine, request: Request) -> End {
    let mut session = engine.session().unwrap();
    let mut answer = Answer::new(engine, request).unwrap();
    loop {
        if let Some(end) = answer.turn(&mut session, usize::MAX).end {
            return end;
        }
    }
}

const QUESTIONS: [&str; 7] = [
    "What is the capital of France?",
    "What is the capital of Japan?",
    "What is 2 + 3?",
    "What is the opposite of hot?",
    "What is the capital of Peru?",
    "What currency is used in Japan?",
    "What is the capital of Italy?",
];

#[test]
fn each_answer_is_the_one_it_would_be_alone() {
    let engine = engine();
    let mut scheduler = Scheduler::new(engine.clone(), settings(3, 4), None).unwrap();
    // One leaves while its prompt is read, one while it is answered, one is slow.
    let mut crowd = Crowd {
        leave_after: BTreeMap::from([(1, 1), (4, 4)]),
        busy_until: BTreeMap::from([(2, 200)]),
        ..Crowd::default()
    };
    for (id, question) in (0..).zip(QUESTIONS) {
        scheduler.ask(id, ask(&engine, question)).unwrap().unwrap();
    }
    run(&mut scheduler, &mut crowd);
    assert_eq!(crowd.over.len(), QUESTIONS.len());
    for (id, question) in (0..).zip(QUESTIONS) {
        if crowd.leave_after.contains_key(&id) {
            assert!(!crowd.ends.contains_key(&id), "{question}");
            continue;
        }
        let want = alone(&engine, ask(&engine, question));
        let got = &crowd.ends[&id];
        assert_eq!(got.parsed, want.parsed, "{question}");
        assert_eq!(got.text, want.text);
        assert_eq!(
            crowd.text[&id], want.parsed.content,
            "the stream and its sum"
        );
        assert_eq!(got.ended, Ended::Stop);
    }
    assert_eq!(crowd.text[&0], "The capital of France is Paris.");
}

#[test]
fn a_prompt_read_in_slices_has_the_same_logits() {
    let engine = engine();
    let text = QUESTIONS.join(" ").repeat(8);
    let tokens = engine.tokenizer().encode(&text, Special::None);
    let mut whole = engine.session().unwrap();
    whole.sync(&tokens).unwrap();
    let mut sliced = engine.session().unwrap();
    // Something else was there before.
    sliced.sync(&tokens[..70]).unwrap();
    sliced
        .sync(&[&tokens[..30], &tokens[40..300]].concat())
        .unwrap();
    let mut computed = 0;
    for _ in 0..1000 {
        let progress = sliced.sync_some(&tokens, 7).unwrap();
        assert!(progress.computed <= 7);
        computed += progress.computed;
        if progress.left == 0 {
            break;
        }
    }
    assert!(computed <= tokens.len());
    assert_eq!(sliced.tokens(), tokens);
    let bits = |l: &[f32]| l.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(sliced.logits()), bits(whole.logits()));
    let again = sliced.sync_some(&tokens, 7).unwrap();
    assert_eq!((again.computed, again.left), (0, 0));
}

#[test]
fn the_next_turn_of_a_conversation_finds_its_timeline() {
    let engine = engine();
    let mut scheduler = Scheduler::new(engine.clone(), settings(2, 64), None).unwrap();
    let mut crowd = Crowd::default();
    scheduler
        .ask(1, ask(&engine, QUESTIONS[0]))
        .unwrap()
        .unwrap();
    scheduler
        .ask(2, ask(&engine, QUESTIONS[2]))
        .unwrap()
        .unwrap();
    run(&mut scheduler, &mut crowd);
    let messages = [
        Message::user(QUESTIONS[0]),
        Message::assistant(crowd.text[&1].clone()),
        Message::user(QUESTIONS[1]),
    ];
    let next = prompt(&engine, &messages);
    scheduler
        .ask(3, request(&engine, next.clone()))
        .unwrap()
        .unwrap();
    run(&mut scheduler, &mut crowd);
    let usage = crowd.ends[&3].usage;
    assert_eq!(usage.prompt, next.len());
    let first = prompt(&engine, &messages[..1]).len();
    assert!(usage.cached >= first, "{usage:?}, first turn {first}");
    assert_eq!(crowd.ends[&1].usage.cached, 0);
}

#[test]
fn a_full_queue_is_said_at_once_and_prompts_that_fill_the_context_are_refused() {
    let engine = engine();
    let mut settings = settings(1, 64);
    settings.queue = 2;
    let mut scheduler = Scheduler::new(engine.clone(), settings, None).unwrap();
    for id in 0..3 {
        scheduler
            .ask(id, ask(&engine, QUESTIONS[0]))
            .unwrap()
            .unwrap();
    }
    let busy = scheduler
        .ask(3, ask(&engine, QUESTIONS[0]))
        .unwrap()
        .unwrap_err();
    assert_eq!((busy.waiting, busy.limit), (3, 2));
    let long = request(&engine, vec![5; engine.context()]);
    assert!(matches!(
        scheduler.ask(4, long),
        Err(ds4_model::Error::Context { .. })
    ));
}

#[test]
fn stop_strings_end_content_and_limits_are_kept() {
    let engine = engine();
    let mut stopped = ask(&engine, QUESTIONS[0]);
    stopped.stop = engine.stops().with_strings(["nce is P"]);
    let end = alone(&engine, stopped);
    assert_eq!(end.parsed.content, "The capital of Fra");
    assert_eq!(end.ended, Ended::StopString("nce is P".to_owned()));
    let mut short = ask(&engine, QUESTIONS[0]);
    short.limit = 2;
    let end = alone(&engine, short);
    assert_eq!((end.ended, end.usage.completion), (Ended::Length, 2));
    assert!("The capital of France is Paris.".starts_with(&end.parsed.content));
}

#[test]
fn logprobs_cover_the_content_and_sum_to_less_than_one() {
    let engine = engine();
    let mut asked = ask(&engine, QUESTIONS[0]);
    asked.logprobs = Some(3);
    let mut session = engine.session().unwrap();
    let mut answer = Answer::new(&engine, asked).unwrap();
    let (mut bytes, mut content) = (Vec::new(), String::new());
    while !answer.is_over() {
        let update = answer.turn(&mut session, 64);
        for logprob in &update.logprobs {
            bytes.extend_from_slice(&logprob.bytes);
            assert_eq!(logprob.top.len(), 3);
            // Greedy: the drawn token is the likeliest.
            assert_eq!(logprob.top[0], (logprob.bytes.clone(), logprob.logprob));
            let total: f32 = logprob.top.iter().map(|(_, p)| p.exp()).sum();
            assert!(total <= 1.0 + 1e-5, "{total}");
        }
        content += &update
            .end
            .map_or_else(String::new, |end| end.parsed.content);
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), content);
}

#[test]
fn kept_timelines_come_back_after_a_restart_and_damaged_ones_are_dropped() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let mut crowd = Crowd::default();
    let open = || Store::open(folder.path(), 1 << 30, &engine).unwrap();
    let mut scheduler = Scheduler::new(engine.clone(), settings(1, 64), Some(open())).unwrap();
    let question = QUESTIONS.join(" ");
    scheduler.ask(1, ask(&engine, &question)).unwrap().unwrap();
    run(&mut scheduler, &mut crowd);
    scheduler.shut_down(&mut crowd);
    drop(scheduler);
    // What this program left is removed, what others have is not.
    let name = "0123456789abcdef-0123456789abcdef-40.partial";
    std::fs::write(folder.path().join(name), b"left over").unwrap();
    std::fs::write(folder.path().join("x.partial"), b"a download").unwrap();

    let mut scheduler = Scheduler::new(engine.clone(), settings(1, 64), Some(open())).unwrap();
    assert!(!folder.path().join(name).exists());
    assert!(folder.path().join("x.partial").exists());
    scheduler.ask(2, ask(&engine, &question)).unwrap().unwrap();
    run(&mut scheduler, &mut crowd);
    assert_eq!(crowd.ends[&2].parsed, crowd.ends[&1].parsed);
    let usage = crowd.ends[&2].usage;
    // All but the marker that says whether to think.
    assert!(usage.cached + 2 >= usage.prompt, "{usage:?}");
    drop(scheduler);

    // Every byte of the file matters.
    let mut state = 1u64;
    for _ in 0..40 {
        let store = open();
        let entries = store.len();
        assert!(entries > 0);
        drop(store);
        let file = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path())
            .find(|path| path.extension().is_some_and(|e| e == "kv"))
            .unwrap();
        let sound = std::fs::read(&file).unwrap();
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut damaged = sound.clone();
        let at = (state >> 33) as usize % sound.len();
        damaged[at] ^= 0x10;
        std::fs::write(&file, damaged).unwrap();
        let mut store = open();
        let mut session = engine.session().unwrap();
        let all = ask(&engine, &question).prompt;
        store.load(&all, &mut session);
        assert!(all.starts_with(session.tokens()));
        let dropped = store
            .take_events()
            .iter()
            .filter(|e| matches!(e, StoreEvent::Dropped { path, .. } if *path == file))
            .count();
        let longest_is_other = store.len() == entries;
        assert!(dropped == 1 || longest_is_other, "byte {at}");
        std::fs::write(&file, sound).unwrap();
    }
}

#[test]
fn a_folder_has_one_user_at_a_time() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let open = || Store::open(folder.path(), 1 << 30, &engine);
    let first = open().unwrap();
    assert!(matches!(open(), Err(StoreError::Busy { path }) if path == folder.path()));
    drop(first);
    open().unwrap();
}

#[test]
fn the_store_stays_within_its_bytes_and_keeps_what_was_used_last() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let mut session = engine.session().unwrap();
    let tokens: Vec<Token> = (100..400).collect();
    let mut store = Store::open(folder.path(), u64::MAX, &engine).unwrap();
    session.sync(&tokens[..40]).unwrap();
    assert!(store.save(&session, &[]));
    store.settle();
    let one = store.bytes();
    drop(store);
    let mut store = Store::open(folder.path(), 4 * one, &engine).unwrap();
    for start in 1..20 {
        session.sync(&tokens[start..start + 40]).unwrap();
        assert!(store.save(&session, &[]));
        store.settle();
        assert!(store.bytes() <= 4 * one);
        assert_eq!(store.longest(&tokens[start..start + 50]), Some(40));
    }
    let on_disk: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(on_disk, store.bytes());
}

#[cfg(feature = "grammar")]
mod grammar {
    use super::*;
    use ds4_model::grammar::{GrammarError, Grammars};
    use serde_json::{Value, json};

    #[test]
    fn an_answer_follows_its_schema() {
        let engine = engine();
        let grammars = Grammars::new(engine.tokenizer()).unwrap();
        let schema = json!({
            "type": "object",
            "properties": {
                "city": { "enum": ["Paris", "Lima"] },
                "large": { "type": "boolean" },
                "where": { "$ref": "#/$defs/place" }
            },
            "$defs": { "place": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 9 }, "minItems": 2, "maxItems": 2 } },
            "required": ["city", "large", "where"],
            "additionalProperties": false
        });
        for temperature in [0.0, 1.5] {
            let mut asked = ask(&engine, QUESTIONS[0]);
            asked.sampler.temperature = temperature;
            asked.limit = 500;
            asked.grammar = Some(grammars.json_schema(&schema).unwrap());
            let end = alone(&engine, asked);
            assert_eq!(end.ended, Ended::Stop, "{}", end.text);
            let value: Value = serde_json::from_str(&end.parsed.content).unwrap();
            assert!(["Paris", "Lima"].contains(&value["city"].as_str().unwrap()));
            assert!(value["large"].is_boolean());
            assert_eq!(value["where"].as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let grammars = Grammars::new(engine().tokenizer()).unwrap();
        for bad in [
            json!(3),
            json!({ "type": "nothing" }),
            json!({ "$ref": "#/nowhere" }),
        ] {
            assert!(
                matches!(grammars.json_schema(&bad), Err(GrammarError::Schema { .. })),
                "{bad}"
            );
        }
        grammars.json_object().unwrap();
    }
}
