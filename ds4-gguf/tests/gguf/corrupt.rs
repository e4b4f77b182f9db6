//! Each broken rule is an error that names it, and what was expected and found.

use ds4_gguf::{Gguf, Limits, Malformed, OpenOptions};

use crate::cases::cases;
use crate::exercise::{Outcome, exercise};
use crate::raw::Raw;

const F32: u32 = 0;
const ARRAY: u32 = 9;

#[test]
fn every_broken_rule_is_named_with_what_was_expected_and_found() {
    for (name, raw, want) in cases() {
        let got = Gguf::from_vec(raw.0)
            .err()
            .map(|error| error.fault().expect("a fault of the bytes").clone());
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn cases_called_ok_open_and_the_others_do_not() {
    for (name, raw, _) in cases() {
        match exercise(&raw.0) {
            Outcome::Opened => assert!(name.starts_with("ok-"), "{name} opens"),
            Outcome::Refused(error) => assert!(!name.starts_with("ok-"), "{name}: {error}"),
        }
    }
}

/// Every prefix of a valid file is a download that was cut off.
#[test]
fn a_file_cut_anywhere_before_its_last_tensor_ends_is_refused() {
    let whole = include_bytes!("../data/gguf_py.gguf");
    let end = Gguf::from_vec(whole.to_vec())
        .unwrap()
        .tensors()
        .iter()
        .map(|info| info.extent.offset + info.extent.bytes)
        .max()
        .unwrap() as usize;
    for len in 0..end {
        let error = Gguf::from_vec(whole[..len].to_vec()).unwrap_err();
        let fault = error.fault().expect("a fault of the bytes");
        assert!(
            matches!(
                fault,
                Malformed::Truncated { .. } | Malformed::OutOfFile { .. }
            ),
            "{len}: {fault:?}"
        );
    }
    Gguf::from_vec(whole[..end].to_vec()).unwrap();
}

#[test]
fn messages_escape_control_characters_and_cut_long_names() {
    let name = format!("\x1b[31m{}", "n".repeat(500));
    let raw = Raw::new(1, 0).tensor(&name, &[0], F32, 0).data(32);
    let message = Gguf::from_vec(raw.0).unwrap_err().to_string();
    assert!(
        message.starts_with("GGUF in memory: tensor `\\u{1b}[31mnnn"),
        "{message}"
    );
    assert!(message.len() < 300 && message.contains("…`"), "{message}");
}

#[test]
fn limits_are_errors_that_say_which_option_raises_them() {
    let raw = Raw::new(0, 1)
        .key("k", ARRAY)
        .u32(0)
        .u64(1000)
        .bytes(&[0; 1000])
        .0;
    let open = |limits| {
        Gguf::from_vec_with(
            raw.clone(),
            &OpenOptions {
                limits,
                ..Default::default()
            },
        )
    };
    open(Limits::default()).unwrap();
    let message = open(Limits {
        header_bytes: 500,
        ..Limits::default()
    })
    .unwrap_err()
    .to_string();
    assert_eq!(
        message,
        "GGUF in memory: the value of metadata key `k` lies beyond the first 500 bytes; \
         raise the limit with OpenOptions::limits.header_bytes"
    );
    let message = open(Limits {
        keys: 0,
        ..Limits::default()
    })
    .unwrap_err()
    .to_string();
    assert_eq!(
        message,
        "GGUF in memory: the header announces 1 keys, at most 0 are accepted; \
         raise the limit with OpenOptions::limits.keys"
    );
}

fn corpus() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// The corpus the fuzzer starts from: the cases above that are small, one file each, and whatever it has found since.
#[test]
fn the_fuzz_corpus_holds_every_small_case_and_each_file_keeps_its_promise() {
    for (name, raw, _) in cases().into_iter().filter(|(_, raw, _)| raw.0.len() < 2048) {
        let stored = std::fs::read(corpus().join(format!("{name}.gguf"))).unwrap();
        assert_eq!(
            stored, raw.0,
            "{name}: run the ignored test of this file to write the corpus again"
        );
    }
    let mut files = 0;
    for entry in std::fs::read_dir(corpus()).unwrap() {
        exercise(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 50, "{files}");
}

#[test]
#[ignore = "writes tests/corpus; run it after changing a case"]
fn write_the_fuzz_corpus() {
    std::fs::create_dir_all(corpus()).unwrap();
    for (name, raw, _) in cases().into_iter().filter(|(_, raw, _)| raw.0.len() < 2048) {
        std::fs::write(corpus().join(format!("{name}.gguf")), raw.0).unwrap();
    }
}
