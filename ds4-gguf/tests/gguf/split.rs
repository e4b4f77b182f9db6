//! Models in several files: any of them opens all, and what is missing or foreign is named.

use std::path::{Path, PathBuf};

use ds4_gguf::{Error, Gguf, Metadata, OpenOptions, Plan, TensorType, Writer};

/// A change to the metadata of a part.
type Edit = fn(&mut Metadata);

/// Part `index` of a model of `count` files with two tensors each, filled with `index`.
fn part(index: u16, count: u16, edit: impl FnOnce(&mut Metadata)) -> Vec<u8> {
    let mut metadata = Metadata::new();
    if index == 0 {
        metadata.set("general.architecture", "deepseek4");
    }
    metadata.set("split.no", index);
    metadata.set("split.count", count);
    metadata.set("split.tensors.count", i32::from(2 * count));
    edit(&mut metadata);
    let mut plan = Plan::new(metadata).expect("no alignment is set");
    plan.add(&format!("blk.{index}.a"), &[8], TensorType::F32)
        .expect("whole blocks");
    plan.add(&format!("blk.{index}.b"), &[32], TensorType::Q8_0)
        .expect("whole blocks");
    let mut writer = Writer::new(Vec::new(), plan).expect("in memory");
    while let Some(bytes) = writer.current().map(|info| info.extent.bytes) {
        writer
            .write(&vec![index as u8; bytes as usize])
            .expect("in memory");
    }
    writer.finish().expect("all is written")
}

fn path(dir: &Path, part: u16, count: u16) -> PathBuf {
    dir.join(format!("tiny-{part:05}-of-{count:05}.gguf"))
}

/// A directory with the three parts of a model.
fn three() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for index in 0..3 {
        std::fs::write(path(dir.path(), index + 1, 3), part(index, 3, |_| {}))
            .expect("room for 500 bytes");
    }
    dir
}

#[test]
fn any_part_opens_the_whole_model() {
    let dir = three();
    for opened in 1..=3 {
        let model = Gguf::open(path(dir.path(), opened, 3)).unwrap();
        let names: Vec<&str> = model.tensors().iter().map(|info| &*info.name).collect();
        assert_eq!(
            names,
            [
                "blk.0.a", "blk.0.b", "blk.1.a", "blk.1.b", "blk.2.a", "blk.2.b"
            ]
        );
        assert_eq!(model.path(), Some(&*path(dir.path(), 1, 3)));
        assert_eq!(model.shards().len(), 3);
        for (i, info) in model.tensors().iter().enumerate() {
            assert_eq!(info.shard as usize, i / 2);
            let tensor = model.tensor(&info.name).unwrap();
            assert!(tensor.bytes.iter().all(|&byte| byte as usize == i / 2));
            // The extent is a range of that part's file, for readers that bypass the mapping.
            let file = std::fs::read(model.shards()[info.shard as usize].path().unwrap()).unwrap();
            let start = info.extent.offset as usize;
            assert_eq!(
                tensor.bytes,
                &file[start..start + info.extent.bytes as usize]
            );
            assert_eq!(model.shards()[info.shard as usize].bytes(), file);
        }
    }
}

#[test]
fn an_open_model_is_whole_its_metadata_speaks_of_no_parts() {
    let dir = three();
    let model = Gguf::open(path(dir.path(), 2, 3)).unwrap();
    let keys: Vec<&str> = model.metadata().iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["general.architecture"]);
    let joined = Gguf::from_vec(crate::exercise::write(&model)).unwrap();
    assert_eq!((joined.shards().len(), joined.tensors().len()), (1, 6));
}

#[test]
fn parts_in_memory_make_a_model_too() {
    let parts = (0..3).map(|index| part(index, 3, |_| {})).collect();
    let model = Gguf::from_vecs(parts, &OpenOptions::default()).unwrap();
    assert_eq!(model.tensor("blk.2.b").unwrap().bytes, [2; 34]);
    let error = Gguf::from_vec(part(0, 3, |_| {})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GGUF in memory: split.count should be 1, found 3"
    );
}

#[test]
fn all_missing_parts_are_named_at_once() {
    let dir = three();
    std::fs::remove_file(path(dir.path(), 1, 3)).unwrap();
    std::fs::remove_file(path(dir.path(), 3, 3)).unwrap();
    let error = Gguf::open(path(dir.path(), 2, 3)).unwrap_err();
    let (first, third) = (path(dir.path(), 1, 3), path(dir.path(), 3, 3));
    assert_eq!(
        error.to_string(),
        format!(
            "a split model of 3 files lacks {}, {}",
            first.display(),
            third.display()
        )
    );
    assert!(matches!(error, Error::MissingShards { missing, .. } if missing == [first, third]));
}

#[test]
fn a_part_under_another_name_says_that_the_others_cannot_be_found() {
    let dir = three();
    for name in [
        "renamed.gguf",
        "tiny-00002-of-00004.gguf",
        "tiny-2-of-00003.gguf",
        "tiny-00004-of-00003.gguf",
    ] {
        let renamed = dir.path().join(name);
        std::fs::write(&renamed, part(1, 3, |_| {})).unwrap();
        let error = Gguf::open(&renamed).unwrap_err();
        assert!(
            matches!(
                error,
                Error::ShardName {
                    index: 1,
                    count: 3,
                    ..
                }
            ),
            "{name}: {error}"
        );
        assert!(
            error
                .to_string()
                .contains("part 2 of 3, but the name does not end in `-00002-of-00003.gguf`")
        );
    }
}

#[test]
fn parts_that_do_not_belong_together_are_named_with_what_they_should_say() {
    let cases: [(Edit, &str); 5] = [
        (
            |m| drop(m.set("split.no", 1u16)),
            "split.no should be 2, found 1",
        ),
        (
            |m| drop(m.set("split.count", 4u16)),
            "split.count should be 3, found 4",
        ),
        (
            |m| drop(m.remove("split.count")),
            "split.count should be 3, found no such key",
        ),
        (
            |m| drop(m.set("split.no", "two")),
            "split.no should be 2, found \"two\"",
        ),
        (
            |m| drop(m.set("split.tensors.count", 7i32)),
            "split.tensors.count should be 6, found 7",
        ),
    ];
    for (edit, want) in cases {
        let dir = three();
        let third = path(dir.path(), 3, 3);
        std::fs::write(&third, part(2, 3, edit)).unwrap();
        let error = Gguf::open(path(dir.path(), 1, 3)).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: {want}", third.display()));
    }
}

/// Names are bytes there; other systems and file systems refuse these.
#[cfg(target_os = "linux")]
#[test]
fn parts_are_found_whatever_the_bytes_of_their_name() {
    use std::os::unix::ffi::OsStrExt;
    let dir = three();
    let named = |i: u16| {
        let name = [
            b"m\xff-\xfe".as_slice(),
            format!("-{i:05}-of-00003.gguf").as_bytes(),
        ]
        .concat();
        dir.path().join(std::ffi::OsStr::from_bytes(&name))
    };
    for i in 1..=3 {
        std::fs::rename(path(dir.path(), i, 3), named(i)).unwrap();
    }
    assert_eq!(Gguf::open(named(2)).unwrap().shards().len(), 3);
    std::fs::remove_file(named(1)).unwrap();
    let error = Gguf::open(named(2)).unwrap_err();
    assert!(
        matches!(&error, ds4_gguf::Error::MissingShards { missing, .. } if *missing == [named(1)]),
        "{error}"
    );
}

#[test]
fn a_tensor_in_two_parts_is_refused() {
    let dir = three();
    // The second part's tensors again, under the third part's number.
    let twice = part(1, 3, |metadata| drop(metadata.set("split.no", 2u16)));
    std::fs::write(path(dir.path(), 3, 3), twice).unwrap();
    let error = Gguf::open(path(dir.path(), 1, 3)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("tiny-00003-of-00003.gguf: tensor `blk.1.a` appears twice"),
        "{error}"
    );
}

#[test]
fn a_part_number_that_contradicts_its_file_name_is_refused() {
    let dir = three();
    let (first, second) = (path(dir.path(), 1, 3), path(dir.path(), 2, 3));
    let third = path(dir.path(), 3, 3);
    std::fs::rename(&second, &first).unwrap();
    std::fs::copy(&third, &second).unwrap();
    let error = Gguf::open(&third).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: split.no should be 0, found 1", first.display())
    );
}

#[test]
fn a_count_that_no_model_has_is_refused_and_one_part_is_a_whole_model() {
    for count in [0u16, 1] {
        let whole = part(0, 1, |metadata| drop(metadata.set("split.count", count)));
        assert_eq!(Gguf::from_vec(whole).unwrap().tensors().len(), 2);
    }
    let edits: [(Edit, &str); 2] = [
        (|m| drop(m.set("split.count", 70_000u32)), "70000"),
        (
            |m| drop(m.set("split.count", "three")),
            "the string \"three\"",
        ),
    ];
    for (edit, found) in edits {
        let error = Gguf::from_vec(part(0, 1, edit)).unwrap_err();
        let want = format!(
            "GGUF in memory: metadata key `split.count` should be an integer from 1 to 65535, found {found}"
        );
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn what_cannot_be_mapped_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent.gguf");
    for path in [absent.as_path(), dir.path()] {
        let error = Gguf::open(path).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read {}", path.display()));
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause == "not a regular file", path == dir.path(), "{cause}");
    }
    let empty = dir.path().join("empty.gguf");
    std::fs::write(&empty, []).unwrap();
    let error = Gguf::open(&empty).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: the header needs 4 bytes at offset 0, the file ends at 0",
            empty.display()
        )
    );
}
