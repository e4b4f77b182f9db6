//! `ds4 convert`, `imatrix` and `compare`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

#[path = "../../ds4-model/tests/convert/hf.rs"]
mod hf;

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

const TINY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../ds4-model/tests/data/deepseek-v4/tiny-f16.gguf"
);

#[test]
fn a_checkpoint_is_converted_or_nothing_is_left() {
    let folder = TempDir::new().unwrap();
    let checkpoint = folder.path().join("hf");
    fs::create_dir(&checkpoint).unwrap();
    let source = Gguf::open(TINY).unwrap();
    let mut tensors = hf::tensors(&source, hf::Names::Published);
    hf::write(&checkpoint, &source, &tensors, 2);
    let (forecast, _) = said(
        &folder,
        &["convert", "hf", "-r", "q8", "--dry-run", "--json"],
    );
    let forecast: serde_json::Value = serde_json::from_str(&forecast).unwrap();
    let arguments = [
        "convert",
        "hf",
        "out.gguf",
        "-r",
        "q8",
        "--dialect",
        "llama-cpp",
        "--name",
        "tiny",
    ];
    let (shown, _) = said(&folder, &arguments);
    assert!(shown.contains("bits a weight"), "{shown}");
    let made = Gguf::open(folder.path().join("out.gguf")).unwrap();
    assert_eq!(made.metadata().get::<&str>("general.name").unwrap(), "tiny");
    said(&folder, &["convert", "hf", "ds4.gguf", "-r", "q8"]);
    let size = fs::metadata(folder.path().join("ds4.gguf")).unwrap().len();
    assert_eq!(forecast["file_bytes"], size, "{forecast}");
    let (shown, _) = said(&folder, &["compare", TINY, "out.gguf"]);
    assert!(shown.contains("cosine 1.000000"), "{shown}");
    let (code, error) = failed(&folder, &arguments);
    assert_eq!(code, 2, "{error}");

    let wide = fs::read(checkpoint.join("model-00002-of-00002.safetensors")).unwrap();
    let nan = tensors
        .iter_mut()
        .find(|t| t.name == "layers.0.attn.wq_a.weight")
        .unwrap();
    nan.bytes[20..22].copy_from_slice(&[0, 0x7e]);
    hf::write(&checkpoint, &source, &tensors, 2);
    let (code, error) = failed(&folder, &["convert", "hf", "nan.gguf", "-r", "q8"]);
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("`blk.0.attn_q_a.weight`: weight 10 is NaN"),
        "{error}"
    );
    said(
        &folder,
        &["convert", "hf", "nan.gguf", "-r", "q8", "--allow-nonfinite"],
    );

    let cut = checkpoint.join("model-00002-of-00002.safetensors");
    fs::write(&cut, &wide[..wide.len() / 2]).unwrap();
    let (code, error) = failed(&folder, &["convert", "hf", "cut.gguf", "-r", "q8"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("the file ends at"), "{error}");
}

#[test]
fn types_that_need_importance_say_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let (code, error) = failed(&folder, &["quantize", STRIX, "out.gguf", "-r", "native"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("ds4 imatrix"), "{error}");
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
