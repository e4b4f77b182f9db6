//! Timelines: prefix reuse, rewinding, snapshots; every way to a length gives the same bits.

use crate::golden::*;
use ds4_model::{Engine, Error, Logits, NoTap, Session, SnapshotError, Token};

/// A prompt of `len` tokens without repeats of a short period.
fn prompt(len: usize, vocab: usize, seed: u32) -> Vec<Token> {
    (0..len as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 7) % vocab as u32)
        .collect()
}

/// tiny-f32 has every kind of layer: no compression, ratio 4 with indexer, ratio 128.
fn engine(prefill_rows: usize) -> Engine {
    Golden::open("tiny-f32").engine(|o| o.prefill_rows = prefill_rows)
}

fn fresh(engine: &Engine, tokens: &[Token]) -> Vec<u32> {
    let mut session = engine.session().expect("memory for a tiny session");
    session.sync(tokens).expect("the tokens fit");
    bits(session.logits())
}

#[test]
fn a_common_prefix_is_not_computed_again() {
    let engine = engine(32);
    let vocab = engine.config().vocab;
    let first = prompt(300, vocab, 1);
    let mut second = first[..250].to_vec();
    second.extend(prompt(40, vocab, 2));
    let mut session = engine.session().unwrap();
    session.sync(&first).unwrap();
    let reused = session.sync(&second).unwrap();
    assert_eq!((reused.reused, reused.computed), (250, 40));
    assert_eq!(bits(session.logits()), fresh(&engine, &second));
    // The same prompt again needs nothing; a shorter one only its last token.
    assert_eq!(session.sync(&second).unwrap().computed, 0);
    let reused = session.sync(&second[..200]).unwrap();
    assert_eq!((reused.reused, reused.computed), (199, 1));
    assert_eq!(bits(session.logits()), fresh(&engine, &second[..200]));
}

/// Rings of this engine hold 128 + 16 rows, so the longer ways back go through checkpoints or the beginning.
#[test]
fn rewinding_any_distance_restores_window_and_compressors_exactly() {
    let engine = engine(16);
    let vocab = engine.config().vocab;
    let tokens = prompt(700, vocab, 3);
    let tail = prompt(9, vocab, 4);
    let mut session = engine.session().unwrap();
    for stop in [150, 400, 700] {
        session.sync(&tokens[..stop]).unwrap();
    }
    for len in [
        699, 695, 690, 513, 512, 511, 401, 400, 399, 151, 129, 128, 127, 5, 4, 3, 1, 0,
    ] {
        session.sync(&tokens).unwrap();
        session.rewind(len).unwrap();
        assert_eq!(session.tokens(), &tokens[..len]);
        let mut whole = tokens[..len].to_vec();
        whole.extend(&tail);
        session
            .run(&tail, Logits::Last, &mut NoTap, &mut |_| {})
            .unwrap();
        assert_eq!(
            bits(session.logits()),
            fresh(&engine, &whole),
            "rewound to {len}"
        );
    }
}

#[test]
fn rewinding_twice_around_a_checkpoint_stays_exact() {
    let engine = engine(16);
    let vocab = engine.config().vocab;
    let tokens = prompt(600, vocab, 5);
    let mut session = engine.session().unwrap();
    session.sync(&tokens[..300]).unwrap();
    session.sync(&tokens).unwrap();
    session.rewind(310).unwrap();
    session.rewind(290).unwrap();
    session.push(7).unwrap();
    let mut whole = tokens[..290].to_vec();
    whole.push(7);
    assert_eq!(bits(session.logits()), fresh(&engine, &whole));
}

#[test]
fn a_snapshot_continues_where_the_session_was() {
    let engine = engine(64);
    let vocab = engine.config().vocab;
    for len in [0, 1, 5, 127, 128, 300] {
        let tokens = prompt(len, vocab, 6);
        let mut session = engine.session().unwrap();
        session.sync(&tokens).unwrap();
        let mut bytes = Vec::new();
        let written = session.save(&mut bytes).unwrap();
        assert_eq!(written, bytes.len() as u64);

        let mut restored = engine.session().unwrap();
        restored.sync(&prompt(40, vocab, 8)).unwrap();
        restored.load(&mut &bytes[..]).unwrap();
        assert_eq!(restored.tokens(), &tokens[..]);
        assert_eq!(bits(restored.logits()), bits(session.logits()));
        for token in prompt(10, vocab, 9) {
            session.push(token).unwrap();
            restored.push(token).unwrap();
            assert_eq!(
                bits(restored.logits()),
                bits(session.logits()),
                "after a snapshot of {len} tokens"
            );
        }
        // Further back than the snapshot's own window everything is computed again.
        if len > 200 {
            restored.rewind(150).unwrap();
            restored.push(3).unwrap();
            let mut whole = tokens[..150].to_vec();
            whole.push(3);
            assert_eq!(bits(restored.logits()), fresh(&engine, &whole));
        }
    }
}

#[test]
fn damaged_snapshots_leave_the_session_as_it_was() {
    let engine = engine(64);
    let vocab = engine.config().vocab;
    let mut session = engine.session().unwrap();
    session.sync(&prompt(33, vocab, 10)).unwrap();
    let mut bytes = Vec::new();
    session.save(&mut bytes).unwrap();

    let mut other = engine.session().unwrap();
    other.sync(&prompt(20, vocab, 11)).unwrap();
    let (tokens, logits) = (other.tokens().to_vec(), bits(other.logits()));
    let mut check = |bytes: &[u8], what: &str, expected: fn(&SnapshotError) -> bool| {
        match other.load(&mut &*bytes) {
            Err(Error::Snapshot(error)) => assert!(expected(&error), "{what}: {error}"),
            result => panic!("{what}: {result:?}"),
        }
        assert_eq!(
            (other.tokens(), bits(other.logits())),
            (&tokens[..], logits.clone()),
            "{what}"
        );
    };
    for cut in [0, 7, 11, 19, 27, 30, bytes.len() / 2, bytes.len() - 1] {
        check(&bytes[..cut], "cut short", |e| {
            matches!(e, SnapshotError::Io(_))
        });
    }
    let flipped = |at: usize| {
        let mut copy = bytes.clone();
        copy[at] ^= 1;
        copy
    };
    check(&flipped(0), "magic", |e| {
        matches!(e, SnapshotError::Magic { .. })
    });
    check(&flipped(8), "version", |e| {
        matches!(e, SnapshotError::Version { .. })
    });
    check(&flipped(12), "model", |e| {
        matches!(e, SnapshotError::Model { .. })
    });
    check(&flipped(27), "logits", |e| {
        matches!(e, SnapshotError::Field { .. })
    });
    check(&flipped(23), "tokens", |e| {
        matches!(e, SnapshotError::Tokens { .. })
    });
    check(&flipped(bytes.len() - 100), "rows", |e| {
        matches!(e, SnapshotError::Checksum { .. })
    });
    check(&flipped(bytes.len() - 1), "checksum", |e| {
        matches!(e, SnapshotError::Checksum { .. })
    });
}

#[test]
fn a_snapshot_of_another_model_is_refused() {
    let mut bytes = Vec::new();
    engine(64).session().unwrap().save(&mut bytes).unwrap();
    let other = Golden::open("tiny-f16").engine(|_| {});
    let error = other.session().unwrap().load(&mut &bytes[..]).unwrap_err();
    assert!(
        matches!(error, Error::Snapshot(SnapshotError::Model { .. })),
        "{error}"
    );
}

#[test]
fn wrong_use_has_a_typed_answer() {
    let engine = Golden::open("tiny-f32").engine(|o| o.context = Some(16));
    let vocab = engine.config().vocab as u32;
    let mut session = engine.session().unwrap();
    assert!(matches!(
        session.sync(&[0; 17]),
        Err(Error::Context {
            wanted: 17,
            limit: 16
        })
    ));
    assert!(matches!(
        session.rewind(1),
        Err(Error::Rewind { wanted: 1, have: 0 })
    ));
    assert!(matches!(session.push(vocab), Err(Error::Exec(_))));
    assert!(session.tokens().is_empty());
    session.sync(&[1; 16]).unwrap();
    assert!(matches!(session.push(1), Err(Error::Context { .. })));
    let mut sampler = ds4_model::Sampler::default();
    let stops = engine.stops();
    let mut empty = engine.session().unwrap();
    assert!(matches!(
        empty.generate(&mut sampler, &stops).next(),
        Some(Err(Error::NoLogits))
    ));
}

#[test]
fn sessions_of_one_engine_do_not_touch_each_other() {
    let engine = engine(64);
    let vocab = engine.config().vocab;
    let (a, b) = (prompt(140, vocab, 12), prompt(90, vocab, 13));
    let (want_a, want_b) = (fresh(&engine, &a), fresh(&engine, &b));
    let mut sessions: Vec<(Session, &[Token])> = vec![
        (engine.session().unwrap(), &a),
        (engine.session().unwrap(), &b),
    ];
    for i in 0..140 {
        for (session, tokens) in &mut sessions {
            if let Some(&token) = tokens.get(i) {
                session.push(token).unwrap();
            }
        }
    }
    assert_eq!(bits(sessions[0].0.logits()), want_a);
    assert_eq!(bits(sessions[1].0.logits()), want_b);
}
