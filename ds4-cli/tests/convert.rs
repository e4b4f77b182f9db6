//! `ds4 convert`, `imatrix` and `compare`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::process::{Command, Output};

use ds4_gguf::Gguf;
use ds4_quant::Imatrix;
use tempfile::TempDir;

const NATIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
const STRIX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo-strix.gguf");

fn ds4(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4"));
    command
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

/// Standard output and standard error of a success.
fn said(folder: &TempDir, arguments: &[&str]) -> (String, String) {
    let output = ds4(folder, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// Exit code and standard error of a failure, which leaves the folder as it was.
fn failed(folder: &TempDir, arguments: &[&str]) -> (i32, String) {
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let before = names();
    let output = ds4(folder, arguments);
    assert_eq!(names(), before, "{arguments:?}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn with_text() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("text.txt"),
        "The capital of France is Paris. ".repeat(4),
    )
    .unwrap();
    folder
}

#[test]
fn an_importance_matrix_is_collected_and_used() {
    let folder = with_text();
    let (shown, warned) = said(
        &folder,
        &["imatrix", NATIVE, "text.txt", "im.gguf", "--chunk", "16"],
    );
    assert!(
        shown.contains("im.gguf: ") && shown.contains("matrices"),
        "{shown}"
    );
    assert!(
        warned.contains("warning: ") && warned.contains("saw no token"),
        "{warned}"
    );
    let matrix = Imatrix::parse(fs::read(folder.path().join("im.gguf")).unwrap()).unwrap();
    assert!(
        matrix
            .get("blk.3.ffn_down_exps.weight", 5, 16, 256)
            .unwrap()
            .is_some()
    );

    let (code, error) = failed(&folder, &["imatrix", NATIVE, "text.txt", "im.gguf"]);
    assert_eq!(code, 2, "{error}");
    said(
        &folder,
        &[
            "imatrix", NATIVE, "text.txt", "im.dat", "--legacy", "--chunks", "1", "-t", "1",
        ],
    );
    let legacy = Imatrix::parse(fs::read(folder.path().join("im.dat")).unwrap()).unwrap();
    assert_eq!(legacy.len(), matrix.len());

    said(
        &folder,
        &[
            "quantize",
            STRIX,
            "out.gguf",
            "--recipe",
            "native",
            "--imatrix",
            "im.gguf",
        ],
    );
    let made = Gguf::open(folder.path().join("out.gguf")).unwrap();
    let file: &str = made.metadata().get("quantize.imatrix.file").unwrap();
    assert_eq!(file, "im.gguf");
}

#[test]
fn models_are_compared_by_weights_and_by_text() {
    let folder = with_text();
    let (shown, _) = said(&folder, &["compare", NATIVE, STRIX, "--text", "text.txt"]);
    for words in [
        "blk.3.ffn_down_exps.weight",
        "cosine",
        "KL divergence",
        "perplexity",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let (json, _) = said(
        &folder,
        &["compare", NATIVE, NATIVE, "--text", "text.txt", "--json"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["text"]["kl_divergence"]["max"], 0.0);
    let same = |t: &serde_json::Value| t["rmse"] == 0.0;
    assert!(json["tensors"].as_array().unwrap().iter().all(same));
}

#[test]
fn every_failure_has_its_code_and_leaves_nothing() {
    let folder = with_text();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("empty")).unwrap();
    fs::create_dir(path("cut")).unwrap();
    fs::write(path("cut/config.json"), "{\"model_type\": \"deepseek_v4\"}").unwrap();
    for (arguments, code, words) in [
        (
            &["convert", "empty", "out.gguf", "-r", "q8"] as &[&str],
            3,
            "config.json",
        ),
        (
            &["convert", "cut", "out.gguf", "-r", "q8"],
            3,
            "hc_mult is missing",
        ),
        (&["convert", "cut", "out.gguf", "-r", "q99"], 2, "q99"),
        (&["convert", "cut", "out.gguf"], 2, "--recipe"),
        (
            &["imatrix", "text.txt", "text.txt", "im.gguf"],
            3,
            "text.txt",
        ),
        (
            &["imatrix", NATIVE, "nowhere.txt", "im.gguf"],
            1,
            "nowhere.txt",
        ),
        (&["compare", NATIVE, "nowhere.gguf"], 3, "nowhere.gguf"),
    ] {
        let (got, error) = failed(&folder, arguments);
        assert_eq!(got, code, "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}
