//! The built program, from outside.

use std::process::{Command, Output};

fn ds4(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ds4"))
        .args(arguments)
        .output()
        .expect("the program was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

#[test]
fn inspect_shows_the_demo_model() {
    let output = ds4(&["inspect", DEMO]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("general.architecture = \"deepseek4\"")
            && shown.contains("bytes per decoded token"),
        "{shown}"
    );
}

#[test]
fn inspect_as_json_is_json() {
    let output = ds4(&["inspect", "--json", DEMO]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["metadata"]["general.architecture"], "deepseek4");
}

#[test]
fn bench_measures_the_demo_model() {
    let output = ds4(&[
        "bench", "-m", DEMO, "-p", "8", "-g", "4", "-t", "1", "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let speed = |key: &str| json[key].as_f64().unwrap();
    assert!(
        speed("prefill_tokens_per_second") > 0.0 && speed("decode_tokens_per_second") > 0.0,
        "{json}"
    );
}

#[test]
fn every_kind_of_failure_has_its_code() {
    let folder = tempfile::TempDir::new().unwrap();
    let damaged = folder.path().join("damaged.gguf");
    std::fs::write(&damaged, "GGUF\u{3}\0\0\0 and no more").unwrap();
    let damaged = damaged.to_str().unwrap();
    for (arguments, code, words) in [
        (&["--version"] as &[&str], 0, ""),
        (&["help"], 0, ""),
        (&["inspect"], 2, "FILES"),
        (&["fly"], 2, "fly"),
        (&["bench", "-m", DEMO, "-p", "0"], 2, "--prompt"),
        (&["inspect", "nowhere.gguf"], 3, "nowhere.gguf"),
        (&["inspect", damaged], 3, "damaged.gguf"),
        (&["bench", "-m", damaged], 3, "damaged.gguf"),
    ] {
        let output = ds4(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
