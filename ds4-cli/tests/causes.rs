//! What `ds4` says when it fails: every cause once, and which file it is about once.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::process::Command;

use ds4_gguf::{Metadata, Plan, TensorType, Writer};
use ds4_quant::Imatrix;
use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

/// A GGUF with one tensor.
fn model(name: &str, dims: &[u64], ty: TensorType, bytes: &[u8]) -> Vec<u8> {
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add(name, dims, ty).unwrap();
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    writer.write(bytes).unwrap();
    writer.finish().unwrap()
}

/// An importance file of the older kind with one entry.
fn importance(name: &str, values: &[f32]) -> Vec<u8> {
    let int = |n: usize| i32::try_from(n).unwrap().to_le_bytes();
    let mut bytes = [int(1), int(name.len())].concat();
    bytes.extend(name.bytes());
    bytes.extend([int(0), int(values.len())].concat());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    Imatrix::parse(bytes.clone()).unwrap();
    bytes
}

#[test]
fn each_cause_is_said_once() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let huge: Vec<u8> = (0..512).flat_map(|_| 1e30f32.to_le_bytes()).collect();
    write(
        "huge.gguf",
        &model("a.weight", &[256, 2], TensorType::F32, &huge),
    );
    let zeros = vec![0; 512 * 4];
    write(
        "whole.gguf",
        &model("a.weight", &[256, 2], TensorType::F32, &zeros),
    );
    let mut cut = fs::read(folder.path().join("whole.gguf")).unwrap();
    cut.truncate(cut.len() - 1);
    write("cut.gguf", &cut);
    write("im.dat", &importance("a.weight", &[1.0; 7]));
    write("cut.dat", &importance("a.weight", &[1.0; 7])[..30]);
    write("r.toml", b"[[rule]]\ntype = \"Q4_K\"\n");
    write("bad.toml", b"[[rule]]\ntype = \"Q4_K\n");
    write("text.txt", b"x");
    let whole = "whole.gguf";
    for (arguments, file, cause) in [
        (
            &["inspect", "none.gguf"] as &[&str],
            "none.gguf",
            "No such file",
        ),
        (&["inspect", "cut.gguf"], "cut.gguf", "the file ends at"),
        (&["inspect", "text.txt"], "text.txt", "the file ends at"),
        (
            &["bench", "-m", whole],
            "whole.gguf",
            "general.architecture",
        ),
        (
            &["quantize", "huge.gguf", "o", "-r", "r.toml"],
            "a.weight",
            "too large for Q4_K",
        ),
        (
            &[
                "quantize",
                whole,
                "o",
                "-r",
                "r.toml",
                "--imatrix",
                "im.dat",
            ],
            "im.dat",
            "has 7 values; expected one for each of 256 columns",
        ),
        (
            &[
                "requant",
                whole,
                "--in-place",
                "-r",
                "r.toml",
                "--imatrix",
                "im.dat",
            ],
            "im.dat",
            "has 7 values; expected one for each of 256 columns",
        ),
        (
            &["requant", "none.gguf", "--in-place"],
            "none.gguf",
            "No such file",
        ),
        (
            &[
                "quantize",
                whole,
                "o",
                "-r",
                "r.toml",
                "--imatrix",
                "cut.dat",
            ],
            "cut.dat",
            "ends at byte 30",
        ),
        (
            &["quantize", whole, "o", "-r", "bad.toml"],
            "bad.toml",
            "line 2",
        ),
        (
            &["quantize", whole, "none/o", "-r", "r.toml"],
            "none/o",
            "No such file",
        ),
        (
            &["quantize", whole, whole, "-r", "r.toml"],
            "whole.gguf",
            "exists",
        ),
        (
            &["imatrix", DEMO, "text.txt", "o"],
            "text.txt",
            "has 1 token",
        ),
        (
            &["compare", DEMO, DEMO, "--text", "text.txt"],
            "text.txt",
            "has 1 token",
        ),
        (&["merge", "cut.gguf", "o"], "cut.gguf", "the file ends at"),
        (&["edit", whole, "--remove", "nobody"], "nobody", "no key"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_ds4"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        for words in [cause, file] {
            assert_eq!(
                said.matches(words).count(),
                1,
                "{words} of {arguments:?}: {said}"
            );
        }
        assert!(!folder.path().join("o").exists(), "{arguments:?}");
    }
}
