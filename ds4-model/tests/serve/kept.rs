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
