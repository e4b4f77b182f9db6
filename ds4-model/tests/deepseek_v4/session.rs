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
    let engine = engine(64);
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
    let reused = session.sync(&second[..240]).unwrap();
    assert_eq!((reused.reused, reused.computed), (239, 1));
    assert_eq!(bits(session.logits()), fresh(&engine, &second[..240]));
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

/// Lengths around windows of 4 and 128 tokens, the attention window, and checkpoints of [`grown`].
const CUTS: [usize; 18] = [
    0, 3, 4, 5, 127, 128, 129, 131, 132, 133, 255, 256, 257, 299, 300, 301, 384, 385,
];

/// A timeline of 420 tokens with checkpoints at 130 and 300 tokens and at its end.
fn grown(engine: &Engine, tokens: &[Token]) -> Session {
    let mut session = engine.session().expect("memory for a tiny session");
    for stop in [130, 300, 420] {
        session.sync(&tokens[..stop]).expect("the tokens fit");
    }
    session
}

/// Steps of 16: rings hold nothing of a timeline below 404 tokens.
#[test]
fn a_timeline_is_cut_anywhere_and_only_the_tokens_since_a_checkpoint_are_computed_again() {
    let engine = engine(16);
    let tokens = prompt(420, engine.config().vocab, 21);
    let whole = grown(&engine, &tokens);
    let mut bytes = Vec::new();
    assert_eq!(whole.save(&mut bytes).unwrap(), bytes.len() as u64);
    assert_eq!(whole.saved_bytes(), bytes.len() as u64);
    for cut in CUTS {
        let mut other = tokens[..cut].to_vec();
        other.extend([tokens[cut] ^ 1, 5, 6]);
        let want = fresh(&engine, &other);
        let least = [0, 130, 300].into_iter().rfind(|&at| at <= cut).unwrap();

        let mut live = engine.session().unwrap();
        assert_eq!(live.copy_from(&whole, &tokens).unwrap(), 420);
        assert_eq!(bits(live.logits()), bits(whole.logits()));
        let mut kept = engine.session().unwrap();
        kept.sync(&[9, 8, 7]).unwrap();
        kept.load(&mut &bytes[..]).unwrap();
        let mut copied = engine.session().unwrap();
        copied.sync(&[9, 8, 7]).unwrap();
        assert_eq!(copied.copy_from(&whole, &other).unwrap(), least);
        assert_eq!(copied.tokens(), &tokens[..least]);

        for (way, session) in [("live", live), ("kept", kept), ("copied", copied)] {
            let mut session = session;
            assert_eq!(session.reusable(&other), least, "{way}, {cut}");
            let done = session.sync(&other).unwrap();
            assert_eq!(done.reused, least, "{way}, {cut}");
            assert_eq!(done.computed, other.len() - least, "{way}, {cut}");
            assert_eq!(bits(session.logits()), want, "{way}, cut at {cut}");
        }
    }
    assert_eq!(whole.tokens(), &tokens[..], "the source is only read");
}

/// Within a step of the end the rings still have everything.
#[test]
fn near_the_end_a_timeline_is_cut_for_nothing() {
    let engine = engine(160);
    let tokens = prompt(300, engine.config().vocab, 22);
    let mut whole = engine.session().unwrap();
    whole.sync(&tokens).unwrap();
    for cut in [299, 297, 296, 257, 256, 255, 141, 140] {
        let mut other = tokens[..cut].to_vec();
        other.push(tokens[cut] ^ 1);
        let mut session = engine.session().unwrap();
        assert_eq!(session.copy_from(&whole, &other).unwrap(), cut);
        session.sync(&other).unwrap();
        assert_eq!(bits(session.logits()), fresh(&engine, &other), "{cut}");
    }
}

#[test]
fn a_prompt_that_was_evaluated_before_is_not_computed_again() {
    let engine = engine(16);
    let vocab = engine.config().vocab;
    let tokens = prompt(200, vocab, 23);
    let mut session = engine.session().unwrap();
    session.sync(&tokens).unwrap();
    let want = bits(session.logits());
    // An answer longer than the rings.
    for token in prompt(180, vocab, 24) {
        session.push(token).unwrap();
    }
    let mut bytes = Vec::new();
    session.save(&mut bytes).unwrap();
    let mut kept = engine.session().unwrap();
    kept.load(&mut &bytes[..]).unwrap();
    let mut copied = engine.session().unwrap();
    assert_eq!(copied.copy_from(&session, &tokens).unwrap(), tokens.len());
    for session in [&mut session, &mut kept, &mut copied] {
        assert_eq!(session.reusable(&tokens), tokens.len());
        let progress = session.sync_some(&tokens, 1).unwrap();
        assert_eq!((progress.reused, progress.left), (tokens.len(), 0));
        assert_eq!(bits(session.logits()), want);
        session.push(7).unwrap();
        let whole = [&tokens[..], &[7]].concat();
        assert_eq!(bits(session.logits()), fresh(&engine, &whole));
    }
}

#[test]
fn a_session_of_another_model_cannot_be_copied() {
    let engine = engine(16);
    let other = Golden::open("tiny-f32").engine(|o| o.context = Some(64));
    let tokens = prompt(70, engine.config().vocab, 25);
    let mut session = engine.session().unwrap();
    session.sync(&tokens).unwrap();
    let mut small = other.session().unwrap();
    small.sync(&tokens[..3]).unwrap();
    assert!(matches!(
        small.copy_from(&session, &tokens),
        Err(Error::Context {
            wanted: 70,
            limit: 64
        })
    ));
    assert_eq!(small.tokens(), &tokens[..3]);
    let exact = Golden::open("tiny-f32").engine(|o| {
        o.rounding = ds4_model::arch::deepseek4::CacheRounding::None;
    });
    let mut exact = exact.session().unwrap();
    assert!(matches!(
        exact.copy_from(&session, &tokens),
        Err(Error::Snapshot(SnapshotError::Model { .. }))
    ));
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
    check(&flipped(31), "cuts", |e| {
        matches!(e, SnapshotError::Field { field: "cuts", .. })
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
