//! Importance files against expected vectors, and files that are wrong.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::path::Path;

use ds4_gguf::{Metadata, Plan, TensorType, Value, Writer};
use ds4_quant::{Imatrix, ImatrixError};
use proptest::prelude::*;

fn golden(file: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/imatrix")
            .join(file),
    )
    .unwrap()
}

fn f32s(file: &str) -> Vec<f32> {
    golden(file)
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

/// The manifest's entries: name, experts, columns.
const ENTRIES: [(&str, usize, usize); 3] = [
    ("blk.0.ffn_gate_exps.weight", 3, 64),
    ("blk.0.ffn_down_exps.weight", 3, 32),
    ("blk.0.attn_q_a.weight", 1, 64),
];

#[test]
fn both_kinds_give_the_expected_vectors() {
    for (file, expect) in [
        ("legacy.dat", "legacy_expect.f32"),
        ("imatrix.gguf", "gguf_expect.f32"),
    ] {
        let matrix = Imatrix::parse(golden(file)).unwrap();
        let want = f32s(expect);
        let mut want = &want[..];
        for (name, experts, cols) in ENTRIES {
            for expert in 0..experts {
                let (here, rest) = want.split_at(cols);
                let got = matrix.get(name, expert, experts, cols).unwrap().unwrap();
                assert_eq!(got, here, "{file}: {name}, expert {expert}");
                want = rest;
            }
        }
        assert!(want.is_empty());
        assert_eq!((matrix.len(), matrix.chunks()), (3, Some(7)));
        assert_eq!(matrix.datasets()[0], "calib_a.txt");
        assert!(
            matrix
                .get("blk.1.attn_q_a.weight", 0, 1, 64)
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn an_entry_of_another_size_is_an_error_and_one_vector_serves_all_experts() {
    let matrix = Imatrix::parse(golden("legacy.dat")).unwrap();
    let (name, ..) = ENTRIES[0];
    let error = matrix.get(name, 0, 4, 64).unwrap_err();
    assert!(
        matches!(
            error,
            ImatrixError::Shape {
                got: 192,
                experts: 4,
                cols: 64,
                ..
            }
        ),
        "{error}"
    );
    let shared = matrix.get(ENTRIES[2].0, 5, 8, 64).unwrap().unwrap();
    assert_eq!(shared, matrix.get(ENTRIES[2].0, 0, 1, 64).unwrap().unwrap());
}

/// A legacy file of one entry.
fn legacy(name: &[u8], calls: i32, values: &[f32]) -> Vec<u8> {
    let mut file = Vec::new();
    for part in [1, name.len() as i32] {
        file.extend(part.to_le_bytes());
    }
    file.extend(name);
    file.extend(calls.to_le_bytes());
    file.extend((values.len() as i32).to_le_bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

#[test]
fn experts_may_have_entries_of_their_own() {
    for spelled in ["w.expert.2", "w.expert_2"] {
        let matrix = Imatrix::parse(legacy(spelled.as_bytes(), 0, &[3.0, 4.0])).unwrap();
        assert_eq!(matrix.get("w", 2, 4, 2).unwrap(), Some(&[3.0, 4.0][..]));
        assert_eq!(matrix.get("w", 1, 4, 2).unwrap(), None);
        assert!(matches!(
            matrix.get("w", 2, 4, 3),
            Err(ImatrixError::Shape { got: 2, .. })
        ));
    }
}

#[test]
fn what_is_wrong_in_a_legacy_file_is_named() {
    let error = |bytes: &[u8]| Imatrix::parse(bytes.to_vec()).unwrap_err();
    let found = error(&legacy(b"w", 2, &[1.0, f32::NAN]));
    assert!(
        matches!(found, ImatrixError::Value { index: 1, .. }),
        "{found}"
    );
    let found = error(&legacy(b"w", 2, &[1.0, -1.0]));
    assert!(
        matches!(
            found,
            ImatrixError::Value {
                index: 1,
                value: -0.5,
                ..
            }
        ),
        "{found}"
    );
    let found = error(&legacy(b"\xff\xfe", 2, &[1.0]));
    assert!(matches!(found, ImatrixError::Name { entry: 0 }), "{found}");
    let found = error(&legacy(b"w", -1, &[1.0]));
    assert!(
        matches!(
            found,
            ImatrixError::Count {
                at: 9,
                value: -1,
                ..
            }
        ),
        "{found}"
    );
    let mut twice = legacy(b"w", 1, &[1.0]);
    let entry = twice[4..].to_vec();
    twice.extend(entry);
    twice[0] = 2;
    assert!(matches!(error(&twice), ImatrixError::Twice { .. }));
    let mut huge = legacy(b"w", 1, &[1.0]);
    huge[13..17].copy_from_slice(&i32::MAX.to_le_bytes());
    let found = error(&huge);
    assert!(
        matches!(
            found,
            ImatrixError::End {
                what: "importance values",
                at: 17,
                ..
            }
        ),
        "{found}"
    );
    let whole = golden("legacy.dat");
    for end in 0..whole.len() {
        // Where the optional tail begins a shorter file is whole as well.
        match Imatrix::parse(whole[..end].to_vec()) {
            Err(ImatrixError::End { len, .. }) => assert_eq!(len, end),
            Err(other) => panic!("cut at {end}: {other}"),
            Ok(_) => assert!(
                whole.len() - end == 19 || whole.len() - end == 15,
                "cut at {end}"
            ),
        }
    }
}

/// A GGUF with the keys of an importance file, changed by `edit`, and these F32 tensors.
fn gguf(edit: impl FnOnce(&mut Metadata), tensors: &[(&str, &[u64], &[f32])]) -> Vec<u8> {
    let mut metadata = Metadata::new();
    metadata.set("general.type", "imatrix");
    metadata.set("imatrix.datasets", Value::from(vec!["text".to_owned()]));
    metadata.set("imatrix.chunk_count", 1u32);
    metadata.set("imatrix.chunk_size", 512u32);
    edit(&mut metadata);
    let mut plan = Plan::new(metadata).unwrap();
    for (name, dims, _) in tensors {
        plan.add(name, dims, TensorType::F32).unwrap();
    }
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    for (name, _, values) in tensors {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        writer.tensor(name, &bytes).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn what_is_wrong_in_a_gguf_is_named() {
    let sums: (&str, &[u64], &[f32]) = ("w.in_sum2", &[2, 2], &[2.0, 4.0, 6.0, 8.0]);
    let counts: (&str, &[u64], &[f32]) = ("w.counts", &[1, 2], &[2.0, 0.0]);
    let matrix = Imatrix::parse(gguf(|_| {}, &[sums, counts])).unwrap();
    assert_eq!(matrix.get("w", 0, 2, 2).unwrap(), Some(&[1.0, 2.0][..]));
    assert_eq!(
        matrix.get("w", 1, 2, 2).unwrap(),
        Some(&[1.0, 1.0][..]),
        "never used"
    );

    let error = |file: Vec<u8>| Imatrix::parse(file).unwrap_err();
    let found = error(gguf(|m| drop(m.set("general.type", "model")), &[]));
    assert!(
        matches!(&found, ImatrixError::Type { found } if &**found == "model"),
        "{found}"
    );
    for key in [
        "general.type",
        "imatrix.datasets",
        "imatrix.chunk_count",
        "imatrix.chunk_size",
    ] {
        let found = error(gguf(|m| drop(m.remove(key)), &[]));
        assert!(matches!(found, ImatrixError::Gguf(_)), "{key}: {found}");
    }
    for alone in [sums, counts] {
        let found = error(gguf(|_| {}, &[alone]));
        assert!(
            matches!(&found, ImatrixError::Alone { name, .. } if **name == *alone.0),
            "{found}"
        );
    }
    let found = error(gguf(|_| {}, &[sums, ("w.counts", &[1, 3], &[1.0; 3])]));
    assert!(
        matches!(&found, ImatrixError::Tensor { name, .. } if &**name == "w.counts"),
        "{found}"
    );
    let found = error(gguf(|_| {}, &[sums, ("w.counts", &[1, 2], &[1.0, -1.0])]));
    assert!(
        matches!(&found, ImatrixError::Value { index: 2, .. }),
        "{found}"
    );
}

proptest! {
    /// Whatever bytes come, the answer is a value or an error.
    #[test]
    fn any_bytes_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        gguf in any::<bool>(),
    ) {
        let mut file = golden(if gguf { "imatrix.gguf" } else { "legacy.dat" });
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let _ = Imatrix::parse(file);
    }
}
