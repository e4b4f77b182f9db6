//! Timelines on disk and in slots: which are kept, found again, and left alone.

use super::*;
use ds4_gguf::{Gguf, Rewrite};
use ds4_model::SnapshotError;
use ds4_model::chat::{Conversation, RenderOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect()
}

/// A store with the timelines of `lengths` first tokens.
fn filled(folder: &Path, limit: u64, engine: &Engine, lengths: &[usize]) -> Store {
    let mut store = Store::open(folder, limit, engine).unwrap();
    let mut session = engine.session().unwrap();
    let tokens: Vec<Token> = (100..400).collect();
    for &length in lengths {
        session.sync(&tokens[..length]).unwrap();
        store.save(&session, lengths);
    }
    store.settle();
    store
}

#[test]
fn a_model_with_other_numbers_does_not_take_up_state() {
    let folder = tempfile::TempDir::new().unwrap();
    let gguf = Gguf::open(DEMO).unwrap();
    let engine = engine();
    let mut session = engine.session().unwrap();
    session.sync(&[5, 6, 7]).unwrap();
    let mut bytes = Vec::new();
    session.save(&mut bytes).unwrap();
    assert_eq!(session.saved_bytes(), bytes.len() as u64);
    let scale = gguf
        .metadata()
        .find::<f32>("deepseek4.expert_weights_scale")
        .unwrap();
    for (key, value) in [
        ("deepseek4.expert_weights_scale", scale * 2.0),
        ("deepseek4.rope.freq_base", 12_345.0),
        ("deepseek4.attention.layer_norm_rms_epsilon", 1e-3),
        ("general.quantity_that_nobody_reads", 1.0),
    ] {
        let mut metadata = gguf.metadata().clone();
        metadata.set(key, value);
        let path = folder.path().join("edited.gguf");
        let copy = Rewrite::new(&gguf, metadata).unwrap();
        copy.write(&path, true, |_| ControlFlow::Continue(()))
            .unwrap();
        let mut options = Options::default();
        options.threads = 1;
        let edited = Engine::open(&path, options).unwrap();
        let loaded = edited.session().unwrap().load(&mut bytes.as_slice());
        if key.starts_with("general.") {
            loaded.unwrap();
            continue;
        }
        let is_refused = matches!(
            loaded,
            Err(ds4_model::Error::Snapshot(SnapshotError::Model { .. }))
        );
        assert!(is_refused, "{key}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_now_is_left_alone() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let mut store = filled(folder.path(), 1 << 30, &engine, &[20, 40]);
    let [file, _] = &files(folder.path(), "kv")[..] else {
        panic!("two entries");
    };
    // A folder opens like a file, and then cannot be read.
    let aside = folder.path().join("aside");
    std::fs::rename(file, &aside).unwrap();
    std::fs::create_dir(file).unwrap();
    let mut session = engine.session().unwrap();
    let prompt: Vec<Token> = (100..400).collect();
    let is_longest = file.to_string_lossy().ends_with("-40.kv");
    store.take_events();
    assert!(store.load(&prompt, &mut session));
    assert_eq!(session.tokens().len(), if is_longest { 20 } else { 40 });
    assert_eq!(store.len(), 2);
    drop(store);
    let mut store = Store::open(folder.path(), 1 << 30, &engine).unwrap();
    let events = store.take_events();
    assert!(
        matches!(&events[..], [StoreEvent::Skipped { path, .. }] if path == file),
        "{events:?}"
    );
    drop(store);
    std::fs::remove_dir(file).unwrap();
    std::fs::rename(&aside, file).unwrap();
    assert_eq!(
        Store::open(folder.path(), 1 << 30, &engine).unwrap().len(),
        2
    );
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let _store = filled(folder.path(), 1 << 30, &engine, &[20]);
    let file = &files(folder.path(), "kv")[0];
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_timeline_that_is_too_large_costs_nothing_and_is_reported_once() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let one = filled(folder.path(), 1 << 30, &engine, &[20]).bytes();
    let mut store = filled(folder.path(), one, &engine, &[20, 200, 250]);
    assert_eq!((store.len(), store.bytes()), (1, one));
    let events = store.take_events();
    assert!(
        matches!(&events[..], [StoreEvent::Failed { .. }]),
        "{events:?}"
    );
}

#[test]
fn a_longer_timeline_takes_the_place_of_its_beginnings() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let mut store = filled(folder.path(), 1 << 30, &engine, &[20, 40]);
    assert_eq!(store.len(), 2);
    let mut session = engine.session().unwrap();
    let tokens: Vec<Token> = (100..400).collect();
    session.sync(&tokens[..60]).unwrap();
    assert!(store.save(&session, &[20]));
    store.settle();
    assert_eq!(store.len(), 2);
    assert_eq!(files(folder.path(), "kv").len(), 2);
    assert_eq!(store.longest(&tokens[..59]), Some(20));
    assert_eq!(store.longest(&tokens), Some(60));
}

/// A chat with thinking on.
fn thinking(engine: &Engine, messages: &[Message]) -> Request {
    let conversation = Conversation::from(messages);
    let prompt = engine
        .render_with(&conversation, &RenderOptions::default())
        .unwrap();
    let mut asked = request(engine, prompt);
    let parser = engine.chat().stream_parser(&ParseOptions {
        evidence: true,
        ..ParseOptions::default()
    });
    asked.reading = Reading::Chat(Box::new(parser));
    asked.limit = 24;
    asked
}

fn answered(scheduler: &mut Scheduler, crowd: &mut Crowd, id: Id, request: Request) -> End {
    scheduler.ask(id, request).unwrap().unwrap();
    run(scheduler, crowd);
    crowd.ends[&id].clone()
}

#[test]
fn with_thinking_the_next_turn_and_other_questions_find_what_they_share() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let open = || {
        let store = Store::open(folder.path(), 1 << 30, &engine).unwrap();
        Scheduler::new(engine.clone(), settings(2, 64), Some(store)).unwrap()
    };
    let mut crowd = Crowd::default();
    let system = Message::system("Answer in one short sentence. ".repeat(12));
    let first = [system.clone(), Message::user(QUESTIONS.join(" "))];
    let asked = thinking(&engine, &first);
    let turn = asked.prompt.len();
    let mut scheduler = open();
    let end = answered(&mut scheduler, &mut crowd, 1, asked);
    scheduler.shut_down(&mut crowd);
    drop(scheduler);

    let next = [
        first[0].clone(),
        first[1].clone(),
        Message::assistant(end.parsed.content),
        Message::user(QUESTIONS[0]),
    ];
    let usage = answered(&mut open(), &mut crowd, 2, thinking(&engine, &next)).usage;
    assert_eq!(usage.cached, turn - 1, "{usage:?}");

    let other = thinking(&engine, &[system.clone(), Message::user(QUESTIONS[2])]);
    let alone = alone(
        &engine,
        thinking(&engine, &[system.clone(), Message::user(QUESTIONS[2])]),
    );
    let system = engine
        .tokenizer()
        .encode(&system.content, Special::None)
        .len();
    let end = answered(&mut open(), &mut crowd, 3, other);
    assert!(
        end.usage.cached >= system,
        "{:?}, system {system}",
        end.usage
    );
    assert_eq!(end.parsed, alone.parsed);
}

/// A system, a turn, and a last question that begins with `word`: too long to be found in the rings again.
fn edited(answer: &str, word: &str) -> [Message; 4] {
    [
        Message::system("Answer in one short sentence. ".repeat(12)),
        Message::user(QUESTIONS[0]),
        Message::assistant(answer),
        Message::user(format!("{word} {}", QUESTIONS.join(" ").repeat(2))),
    ]
}

#[test]
fn of_a_conversation_edited_in_its_last_turn_only_the_tail_is_read() {
    let engine = engine();
    for (slots, restart) in [(1, false), (2, false), (1, true)] {
        let folder = tempfile::TempDir::new().unwrap();
        let open = || {
            let store = restart.then(|| Store::open(folder.path(), 1 << 30, &engine).unwrap());
            Scheduler::new(engine.clone(), settings(slots, 64), store).unwrap()
        };
        let mut crowd = Crowd::default();
        let mut scheduler = open();
        let first = &edited("", "")[..2];
        let end = answered(&mut scheduler, &mut crowd, 1, thinking(&engine, first));
        let content = end.parsed.content;
        let one = thinking(&engine, &edited(&content, "One:"));
        let one_tokens = one.prompt.len();
        let one_end = answered(&mut scheduler, &mut crowd, 2, one);
        if restart {
            scheduler.shut_down(&mut crowd);
            drop(scheduler);
            scheduler = open();
        }
        let two = || thinking(&engine, &edited(&content, "Two:"));
        let marks = engine.chat().marks(engine.tokenizer(), &two().prompt);
        let [_, user, _] = marks[..] else {
            panic!("{marks:?}")
        };
        assert!(two().prompt.len() > user + 96);
        let end = answered(&mut scheduler, &mut crowd, 3, two());
        let case = format!("{slots} slots, restart {restart}");
        assert_eq!(end.usage.cached, user, "{case}");
        let want = alone(&engine, two());
        assert_eq!((end.parsed, end.text), (want.parsed, want.text), "{case}");
        if slots == 2 {
            // The one that was edited is still there, whole.
            let one = thinking(&engine, &edited(&content, "One:"));
            let end = answered(&mut scheduler, &mut crowd, 4, one);
            assert_eq!(end.usage.cached, one_tokens, "{case}");
            assert_eq!(end.text, one_end.text);
        }
    }
}

#[test]
fn a_beginning_is_copied_from_an_answer_in_progress() {
    let engine = engine();
    let mut scheduler = Scheduler::new(engine.clone(), settings(2, 64), None).unwrap();
    let mut crowd = Crowd::default();
    let one = thinking(&engine, &edited("Paris.", "One:"));
    let two = || thinking(&engine, &edited("Paris.", "Two:"));
    scheduler.ask(1, one).unwrap().unwrap();
    while !crowd.text.contains_key(&1) && !crowd.ends.contains_key(&1) {
        scheduler.turn(&mut crowd);
    }
    assert!(!crowd.ends.contains_key(&1));
    let end = answered(&mut scheduler, &mut crowd, 2, two());
    let marks = engine.chat().marks(engine.tokenizer(), &two().prompt);
    assert_eq!(end.usage.cached, marks[1]);
    assert_eq!(end.text, alone(&engine, two()).text);
    let one = thinking(&engine, &edited("Paris.", "One:"));
    assert_eq!(crowd.ends[&1].text, alone(&engine, one).text);
}

/// As long an answer as is wanted: longer than the rings.
fn endless(engine: &Engine) -> Request {
    let mut asked = request(engine, (100..300).collect());
    asked.reading = Reading::Text;
    (asked.stop, asked.limit) = (ds4_model::Stop::default(), 150);
    asked
}

#[test]
fn of_a_prompt_that_was_answered_before_nothing_is_read_again() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let open = || {
        let store = Store::open(folder.path(), 1 << 30, &engine).unwrap();
        Scheduler::new(engine.clone(), settings(2, 64), Some(store)).unwrap()
    };
    let mut scheduler = open();
    let mut crowd = Crowd::default();
    let first = answered(&mut scheduler, &mut crowd, 1, endless(&engine));
    assert_eq!((first.usage.cached, first.usage.completion), (0, 150));
    let again = answered(&mut scheduler, &mut crowd, 2, endless(&engine));
    assert_eq!((again.usage.cached, again.text), (200, first.text.clone()));
    scheduler.shut_down(&mut crowd);
    drop(scheduler);
    let again = answered(&mut open(), &mut crowd, 3, endless(&engine));
    assert_eq!((again.usage.cached, again.text), (200, first.text));
}

#[test]
fn what_a_prompt_that_waits_will_take_up_is_not_deleted_before() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let one = filled(folder.path(), 1 << 30, &engine, &[40]).bytes();
    let mut store = Store::open(folder.path(), 2 * one, &engine).unwrap();
    let wanted: Vec<Token> = (100..400).collect();
    let hold = store.hold(&wanted);
    let mut session = engine.session().unwrap();
    for start in 200..206 {
        let tokens: Vec<Token> = (start..start + 40).collect();
        session.sync(&tokens).unwrap();
        assert!(store.save(&session, &[]));
        store.settle();
        assert!(store.bytes() <= 2 * one);
        assert_eq!(store.longest(&wanted), Some(40));
        assert_eq!(store.longest(&tokens), Some(40), "the new one");
    }
    drop(hold);
    session.sync(&wanted[200..240]).unwrap();
    assert!(store.save(&session, &[]));
    store.settle();
    assert_eq!(store.longest(&wanted), None, "the oldest goes first");
}

#[test]
fn a_store_that_is_dropped_has_written_all() {
    let engine = engine();
    let folder = tempfile::TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), 1 << 30, &engine).unwrap();
    let mut session = engine.session().unwrap();
    let mut taken = 0;
    for start in 100..120 {
        session
            .sync(&(start..start + 40).collect::<Vec<_>>())
            .unwrap();
        // What comes too fast is left out, and said.
        taken += usize::from(store.save(&session, &[]));
    }
    let left_out = |event: &StoreEvent| *event == StoreEvent::Behind { tokens: 40 };
    let events = store.take_events();
    assert_eq!(events.iter().filter(|e| left_out(e)).count(), 20 - taken);
    assert!(taken > 0);
    drop(store);
    assert_eq!(files(folder.path(), "kv").len(), taken);
    assert!(files(folder.path(), "partial").is_empty());
    let store = Store::open(folder.path(), 1 << 30, &engine).unwrap();
    assert_eq!(store.len(), taken);
}

#[test]
fn conversations_that_begin_the_same_keep_their_slots() {
    let engine = engine();
    let mut scheduler = Scheduler::new(engine.clone(), settings(2, 64), None).unwrap();
    let mut crowd = Crowd::default();
    let system = Message::system("Answer in one short sentence. ".repeat(12));
    let long = |order: &[&str]| vec![system.clone(), Message::user(order.join(" ").repeat(2))];
    let one = long(&QUESTIONS);
    let mut two = QUESTIONS;
    two.reverse();
    let two = long(&two);
    for (id, messages) in (1..).zip([&one, &two, &one, &two]) {
        let asked = thinking(&engine, messages);
        let prompt = asked.prompt.len();
        let usage = answered(&mut scheduler, &mut crowd, id, asked).usage;
        if id > 2 {
            assert!(usage.cached + 2 >= prompt, "{id}: {usage:?}");
        }
    }
}
