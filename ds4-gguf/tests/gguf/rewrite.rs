//! Split, merged and edited files: the same tensors, other files around them.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::ops::ControlFlow;
use std::path::Path;

use ds4_gguf::{
    Copied, Edit, Error, Gguf, Limit, Metadata, Plan, Rewrite, Split, TensorType, Writer,
};

fn go(_: Copied<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Seven tensors of 100 to 700 bytes, aligned to 64.
fn model() -> Vec<u8> {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "test");
    metadata.set("general.alignment", 64u32);
    metadata.set("tokenizer.ggml.tokens", vec!["a", "b"]);
    let mut plan = Plan::new(metadata).unwrap();
    for i in 1..=7 {
        plan.add(&format!("t{i}"), &[25 * i], TensorType::F32)
            .unwrap();
    }
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    for i in 1..=7u8 {
        writer
            .tensor(&format!("t{i}"), &vec![i; 100 * usize::from(i)])
            .unwrap();
    }
    writer.finish().unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_split_model_opens_as_one_and_merges_to_the_same_bytes() {
    let whole = model();
    let source = Gguf::from_vec(whole.clone()).unwrap();
    for (limit, count) in [
        (Limit::Tensors(1), 7),
        (Limit::Tensors(3), 3),
        (Limit::Tensors(100), 1),
        // Padded: 128 + 256 + 320, then 448, 512, 640 and 704.
        (Limit::Bytes(704), 5),
        (Limit::Bytes(703), 6),
        (Limit::Bytes(1), 7),
        (Limit::Bytes(u64::MAX), 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("m.x");
        let split = Split::new(&source, limit).unwrap();
        let announced = split.files(&prefix);
        let paths = split.write(&prefix, false, go).unwrap();
        assert_eq!(paths.len(), count, "{limit:?}");
        assert_eq!(files(folder.path()).len(), count);
        for ((path, bytes), written) in announced.iter().zip(&paths) {
            assert_eq!(path, written);
            assert_eq!(path.metadata().unwrap().len(), *bytes);
        }
        let name = format!("m.x-00001-of-{count:05}.gguf");
        assert_eq!(files(folder.path())[0], name);
        let open = Gguf::open(paths.last().unwrap()).unwrap();
        assert_eq!(open.tensors().len(), 7);
        let merged = folder.path().join("merged.gguf");
        let rewrite = Rewrite::merge(&open).unwrap();
        rewrite.write(&merged, false, go).unwrap();
        assert_eq!(rewrite.file_bytes(), whole.len() as u64);
        assert!(std::fs::read(&merged).unwrap() == whole, "{limit:?}");
    }
}

#[test]
fn the_keys_of_a_split_model_are_those_of_other_tools() {
    let source = Gguf::from_vec(model()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let split = Split::new(&source, Limit::Tensors(4)).unwrap();
    let paths = split.write(&folder.path().join("m"), false, go).unwrap();
    for (i, path) in paths.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        for (key, ty, value) in [
            ("split.no", 2u32, &(i as u16).to_le_bytes()[..]),
            ("split.count", 2, &2u16.to_le_bytes()),
            ("split.tensors.count", 5, &7i32.to_le_bytes()),
        ] {
            let line = [key.as_bytes(), &ty.to_le_bytes(), value].concat();
            assert!(
                bytes.windows(line.len()).any(|part| part == line),
                "{key} of {i}"
            );
        }
        let tokens = bytes
            .windows(20)
            .any(|part| part == b"tokenizer.ggml.token");
        assert_eq!(tokens, i == 0);
    }
}

#[test]
fn an_edit_replaces_the_file_it_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, model()).unwrap();
    let source = Gguf::open(&path).unwrap();
    let mut metadata = source.metadata().clone();
    for edit in [
        Edit::set("general.name=string:a longer name than there was room for"),
        Edit::rename("tokenizer.ggml.tokens=tokens"),
        Edit::set("general.alignment=256"),
    ] {
        edit.unwrap().apply(&mut metadata).unwrap();
    }
    let rewrite = Rewrite::new(&source, metadata.clone()).unwrap();
    assert!(matches!(
        rewrite.write(&path, false, go),
        Err(Error::Exists { .. })
    ));
    rewrite.write(&path, true, go).unwrap();
    let edited = Gguf::open(&path).unwrap();
    assert_eq!(edited.metadata(), &metadata);
    assert_eq!(edited.alignment(), 256);
    for info in source.tensors() {
        assert_eq!(
            edited.tensor(&info.name).unwrap().bytes,
            source.tensor(&info.name).unwrap().bytes
        );
    }
    assert_eq!(files(folder.path()), ["m.gguf"]);
}

#[test]
fn stopping_leaves_no_file() {
    let source = Gguf::from_vec(model()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let split = Split::new(&source, Limit::Tensors(2)).unwrap();
    for stop in 0..7 {
        let mut heard = 0;
        let stopped = split.write(&folder.path().join("m"), false, |copied| {
            assert!(copied.done < copied.total);
            heard += 1;
            if heard > stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn nothing_cannot_be_split() {
    let empty = Writer::new(Vec::new(), Plan::new(Metadata::new()).unwrap()).unwrap();
    let empty = Gguf::from_vec(empty.finish().unwrap()).unwrap();
    let error = Split::new(&empty, Limit::Tensors(1)).unwrap_err();
    assert!(
        error.to_string().contains("there are no tensors"),
        "{error}"
    );
}

#[test]
fn a_half_requantized_file_says_what_it_is() {
    for magic in [b"GGRQ", b"GGRF", b"GGUQ"] {
        let mut bytes = model();
        bytes[..4].copy_from_slice(magic);
        let error = Gguf::from_vec(bytes).unwrap_err();
        assert!(
            error.to_string().contains("ds4 requant --resume"),
            "{error}"
        );
    }
}
