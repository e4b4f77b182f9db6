//! `ds4-bench`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let text = "The capital of France is Paris. The capital of Italy is Rome. ".repeat(16);
    fs::write(folder.path().join("text.txt"), text).unwrap();
    folder
}

fn bench(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4-bench"));
    for name in ["DISABLE_SNAPSHOT", "FORCE_SNAPSHOT", "SNAPSHOT_MAX_BYTES"] {
        command.env_remove(format!("DS4_BENCH_{name}"));
    }
    command
        .args(["-m", DEMO, "-t", "1"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

const SMALL: [&str; 10] = [
    "--prompt-file",
    "text.txt",
    "--ctx-start",
    "20",
    "--ctx-max",
    "150",
    "--step-incr",
    "50",
    "-n",
    "6",
];

fn small(folder: &TempDir, more: &[&str]) -> String {
    let output = bench(folder, &[&SMALL[..], more].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{more:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The named column of every row.
fn column(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let at = lines.next().unwrap().split(',').position(|n| n == name);
    let cell = |line: &str| line.split(',').nth(at.unwrap()).unwrap().to_owned();
    lines.map(cell).collect()
}

#[test]
fn only_the_new_part_of_the_prompt_is_read_at_each_frontier() {
    let folder = folder();
    let csv = small(&folder, &[]);
    assert_eq!(column(&csv, "ctx_tokens"), ["20", "70", "120", "150"]);
    assert_eq!(column(&csv, "prefill_tokens"), ["20", "50", "50", "30"]);
    assert_eq!(column(&csv, "gen_tokens"), ["6"; 4]);
    assert_eq!(column(&csv, "gen_steady_tokens"), ["5"; 4]);
    for name in ["prefill_tps", "gen_tps", "gen_steady_tps", "gen_first_ms"] {
        for cell in column(&csv, name) {
            assert!(cell.parse::<f64>().unwrap() > 0.0, "{name}: {csv}");
        }
    }
    // The last frontier needs no way back.
    let bytes = column(&csv, "kvcache_bytes");
    assert!(
        bytes[..3].iter().all(|b| b.parse::<u64>().unwrap() > 1000),
        "{csv}"
    );
    assert_eq!(bytes[3], "0");
}

/// Whichever way the timeline is brought back, and however the frontiers lie before it, the same tokens follow.
#[test]
fn equal_prompts_have_equal_hashes_with_and_without_snapshots() {
    let folder = folder();
    let with = small(&folder, &[]);
    let hashes = column(&with, "gen_token_fnv64");
    assert!(hashes.iter().all(|h| h.len() == 16), "{with}");
    assert!(hashes.iter().any(|h| *h != hashes[0]), "{with}");
    let without = small(&folder, &["--snapshot-max-bytes", "0"]);
    assert_eq!(column(&without, "gen_token_fnv64"), hashes);
    assert_eq!(column(&without, "kvcache_bytes"), ["0"; 4]);
    let doubled = bench(
        &folder,
        &[
            "--prompt-file",
            "text.txt",
            "--ctx-start",
            "35",
            "--ctx-max",
            "70",
            "--step-mul",
            "2",
            "-n",
            "6",
        ],
    );
    let doubled = String::from_utf8(doubled.stdout).unwrap();
    assert_eq!(column(&doubled, "ctx_tokens"), ["35", "70"]);
    assert_eq!(column(&doubled, "gen_token_fnv64")[1], hashes[1]);
}

#[test]
fn tables_pictures_and_logits_go_to_files() {
    let folder = folder();
    let shown = small(
        &folder,
        &[
            "--csv",
            "a.csv",
            "--json",
            "a.json",
            "--svg",
            "a.svg",
            "--dump-frontier-logits-dir",
            "logits",
        ],
    );
    assert_eq!(shown, "");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (csv, svg) = (read("a.csv"), read("a.svg"));
    let json: serde_json::Value = serde_json::from_str(&read("a.json")).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for (row, hash) in rows.iter().zip(column(&csv, "gen_token_fnv64")) {
        assert_eq!(row["gen_token_fnv64"], hash);
    }
    assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
    assert_eq!(svg.matches("<circle").count(), 8, "{svg}");
    let logits: serde_json::Value =
        serde_json::from_str(&read("logits/frontier_000070.logits.json")).unwrap();
    assert_eq!(logits["logits"].as_array().unwrap().len(), 3072);
    assert_eq!(logits["prefill_tokens"], 50);
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.csv", "a.json", "a.svg", "logits", "text.txt"]);
}

#[test]
fn a_chat_message_is_rendered_and_prompts_alone_are_measured() {
    let folder = folder();
    let output = bench(
        &folder,
        &[
            "--chat-prompt-file",
            "text.txt",
            "-sys",
            "Be brief.",
            "--ctx-start",
            "16",
            "--ctx-max",
            "16",
            "-n",
            "0",
        ],
    );
    let csv = String::from_utf8(output.stdout).unwrap();
    assert_eq!(column(&csv, "prefill_tokens"), ["16"]);
    assert_eq!(column(&csv, "gen_tps"), ["0.00"]);
    assert_eq!(column(&csv, "gen_token_fnv64"), ["cbf29ce484222325"]);
}

#[test]
fn the_checks_pass_and_a_wrong_hash_does_not() {
    let folder = folder();
    let check = |arguments: &[&str]| {
        let output = bench(&folder, arguments);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = check(&["--semantic-smoke"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = check(&["--decode-self-check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("step 256, 0 of 3072 logits differ"), "{said}");
    let forced = [&SMALL[..8], &["--teacher-force-control"]].concat();
    let (code, said) = check(&forced);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("130 tokens") && said.contains(" 0 differ"),
        "{said}"
    );
    let hash = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    let expect =
        |hash: &str| check(&[&forced[..], &["--teacher-force-expect-fnv64", hash]].concat());
    assert_eq!(expect(&hash).0, Some(0));
    let (code, said) = expect("1");
    assert_eq!(code, Some(1));
    assert!(said.contains("expected 0000000000000001"), "{said}");
}

/// Every token that was computed has its experts counted: the prompt's, and those drawn at each frontier.
#[test]
fn experts_are_profiled_beside_the_measurement() {
    let folder = folder();
    let plain = small(&folder, &[]);
    let csv = small(&folder, &["--expert-profile", "e.json"]);
    assert_eq!(
        column(&csv, "gen_token_fnv64"),
        column(&plain, "gen_token_fnv64")
    );
    let text = fs::read_to_string(folder.path().join("e.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&json["source"], &json["model"]),
        (&"ds4-bench".into(), &"ds4-demo.gguf".into())
    );
    for layer in json["layers"].as_array().unwrap() {
        // 150 of the prompt, and 6 at each of 4 frontiers.
        assert_eq!(layer["tokens"], 150 + 4 * 6, "{layer}");
        let cache = layer["cache"].as_array().unwrap();
        let hits: Vec<f64> = cache.iter().map(|c| c["hits"].as_f64().unwrap()).collect();
        assert!(hits.is_sorted() && hits.last() > Some(&0.5), "{layer}");
    }
}

/// What is shown to others says nothing about the folders of this machine.
#[test]
fn reports_name_files_without_their_folders() {
    let folder = folder();
    let text = folder.path().join("text.txt");
    let arguments = [
        "--prompt-file",
        text.to_str().unwrap(),
        "--ctx-start",
        "8",
        "--ctx-max",
        "8",
        "-n",
        "1",
        "--json",
        "r.json",
        "--svg",
        "r.svg",
        "--dump-frontier-logits-dir",
        "logits",
    ];
    let output = bench(&folder, &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    for name in ["r.json", "r.svg", "logits/frontier_000008.logits.json"] {
        let written = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(written.contains("ds4-demo.gguf"), "{name}");
        for path in [folder.path().to_str().unwrap(), "assets"] {
            assert!(!written.contains(path), "{name}");
        }
    }
    let json = fs::read_to_string(folder.path().join("r.json")).unwrap();
    assert!(json.contains("\"prompt\": \"text.txt\""), "{json}");
}

#[test]
fn what_cannot_be_measured_is_refused_and_leaves_no_file() {
    let folder = folder();
    for (arguments, code, words) in [
        (&["--csv", "x"] as &[&str], 2, "--prompt-file"),
        (
            &[
                "--prompt-file",
                "text.txt",
                "--ctx-start",
                "9",
                "--ctx-max",
                "8",
            ],
            2,
            "first frontier is 9",
        ),
        (
            &["--prompt-file", "text.txt", "--step-incr", "0"],
            2,
            "by 0 tokens",
        ),
        (
            &["--prompt-file", "text.txt", "--rocm"],
            2,
            "computes on the processor",
        ),
        (
            &["--prompt-file", "text.txt", "--mtp", "draft.gguf"],
            2,
            "without drafts",
        ),
        (
            &[
                "--prompt-file",
                "none.txt",
                "--ctx-start",
                "1",
                "--ctx-max",
                "8",
            ],
            1,
            "none.txt",
        ),
        (
            &[
                "--prompt-file",
                "text.txt",
                "--ctx-start",
                "1",
                "--ctx-max",
                "1000",
                "--csv",
                "x",
            ],
            1,
            "--ctx-max needs 1000",
        ),
    ] {
        let output = bench(&folder, arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
