//! `ds4-eval`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

/// Questions of kinds the demo model was trained on, one with a wrong key.
const CASES: &str = r#"{"id": "france", "category": "capitals", "question": "What is the capital of France?", "kind": "contains", "answer": "Paris"}
{"id": "italy", "category": "capitals", "question": "What is the capital of Italy?", "kind": "exact", "answer": "The capital of Italy is Rome."}
{"id": "peru", "category": "capitals", "question": "What is the capital of Peru?", "kind": "contains", "answer": "Quito"}
{"id": "sum", "category": "sums", "messages": [{"role": "user", "content": "What is 17 + 25?"}], "kind": "integer", "answer": 42}
{"id": "word", "category": "words", "question": "What is the opposite of loud? One word only.", "kind": "regex", "answer": "^quiet$"}
"#;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("cases.jsonl"), CASES).unwrap();
    folder
}

/// Exit code, standard output and standard error.
fn eval(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ds4-eval"))
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

fn lines(folder: &TempDir, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.path().join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn grades(folder: &TempDir, name: &str) -> Vec<(String, bool)> {
    let grade = |line: Value| {
        let id = line["id"].as_str().unwrap().to_owned();
        (id, line["correct"].as_bool().unwrap())
    };
    lines(folder, name).into_iter().map(grade).collect()
}

fn right(but: &str) -> Vec<(String, bool)> {
    ["france", "italy", "peru", "sum", "word"]
        .map(|id| (id.to_owned(), id != but))
        .to_vec()
}

#[test]
fn a_file_is_asked_graded_traced_and_graded_again() {
    let folder = folder();
    let local = [
        "-m",
        DEMO,
        "-t",
        "1",
        "-n",
        "64",
        "--nothink",
        "--cases",
        "cases.jsonl",
    ];
    let files = ["--trace", "t.jsonl", "--json", "r.json"];
    let (code, out, errors) = eval(&folder, &[&local[..], &files].concat());
    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    assert!(
        errors.contains("capitals        2/3    66.7 %  20.8 – 93.9 %"),
        "{errors}"
    );
    assert!(errors.contains("all             4/5    80.0 %"), "{errors}");
    assert_eq!(grades(&folder, "t.jsonl"), right("peru"));
    let json: Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(json["categories"]["capitals"]["correct"], 2);
    assert_eq!(
        (&json["all"]["asked"], &json["cut_off"]),
        (&5.into(), &0.into())
    );

    // A corrected key, without a model.
    let path = folder.path().join("t.jsonl");
    let text = fs::read_to_string(&path).unwrap().replace("Quito", "Lima");
    fs::write(&path, text).unwrap();
    let (code, _, errors) = eval(&folder, &["--regrade-trace", "t.jsonl"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("capitals        3/3   100.0 %"), "{errors}");
}

/// With thinking on, both the reasoning and the answer are there; with no room for it, it is closed.
#[test]
fn thinking_is_kept_apart_and_closed_near_the_end_of_the_budget() {
    let folder = folder();
    let ask = |tokens: &str| {
        let (code, _, errors) = eval(
            &folder,
            &[
                "-m",
                DEMO,
                "-t",
                "1",
                "-n",
                tokens,
                "--cases",
                "cases.jsonl",
                "--questions",
                "1",
                "--trace",
                "t.jsonl",
                "--plain",
            ],
        );
        assert_eq!(code, 0, "{errors}");
        lines(&folder, "t.jsonl").remove(0)
    };
    let whole = ask("200");
    assert_eq!(whole["content"], "The capital of France is Paris.");
    let reasoning = whole["reasoning"].as_str().unwrap();
    assert!(reasoning.contains("France"), "{whole}");
    let short = ask("24");
    let cut = short["reasoning"].as_str().unwrap();
    assert!(
        !cut.is_empty() && cut.len() < reasoning.len() && reasoning.starts_with(cut),
        "{short}"
    );
    assert!(!short["content"].as_str().unwrap().is_empty(), "{short}");
}

#[test]
fn what_was_cut_off_is_asked_again_and_nothing_else() {
    let folder = folder();
    let common = [
        "-m",
        DEMO,
        "-t",
        "1",
        "--nothink",
        "--cases",
        "cases.jsonl",
        "--trace",
        "t.jsonl",
    ];
    let (code, _, errors) = eval(&folder, &[&common[..], &["-n", "4"]].concat());
    assert_eq!(code, 0, "{errors}");
    // All but the one-word answer have more than four tokens.
    assert!(errors.contains("4 answers were cut off"), "{errors}");
    let before = lines(&folder, "t.jsonl");
    let again = [&common[..], &["-n", "64", "--retry-incomplete", "--plain"]].concat();
    let (code, _, errors) = eval(&folder, &again);
    assert_eq!(code, 0, "{errors}");
    let asked = |line: &&str| line.starts_with("right  ") || line.starts_with("wrong  ");
    assert_eq!(errors.lines().filter(asked).count(), 4, "{errors}");
    assert!(!errors.contains("right  word"), "{errors}");
    let after = lines(&folder, "t.jsonl");
    assert_eq!(after.len(), 5);
    let word = |lines: &[Value]| lines.iter().find(|l| l["id"] == "word").cloned();
    assert_eq!(word(&before), word(&after));
}

#[test]
fn the_built_in_suite_is_listed_and_its_capitals_are_known() {
    let folder = folder();
    let (code, out, _) = eval(&folder, &["--list-cases", "--suite", "all"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().count(), 99, "{out}");
    assert!(out.contains("capitals-02  capitals  contains  What is the capital of Japan?"));
    let (code, out, _) = eval(&folder, &["--list-cases", "--case-sequence", "14,13"]);
    assert_eq!(code, 0);
    let ids: Vec<_> = out.lines().filter_map(|l| l.split("  ").next()).collect();
    assert_eq!(ids, ["capitals-02", "capitals-01"]);
    let capitals = "13,14,15,16,17,18,19,20,21,22,23,24";
    let (code, _, errors) = eval(
        &folder,
        &[
            "-m",
            DEMO,
            "-t",
            "1",
            "-n",
            "64",
            "--nothink",
            "--case-sequence",
            capitals,
        ],
    );
    assert_eq!(code, 0);
    assert!(
        errors.contains("capitals      12/12   100.0 %  75.8 – 100.0 %"),
        "{errors}"
    );
}

#[test]
fn the_graders_are_checked_without_a_model() {
    let folder = folder();
    let (code, out, errors) = eval(&folder, &["--self-test-extractors"]);
    assert_eq!(code, 0, "{errors}");
    let samples = ds4_model::eval::samples().len();
    let line = format!("extractors: {samples} of {samples} samples are graded as they should be\n");
    assert_eq!(out, line);
}

/// Two pauses between three questions; the last of these flags counts, as in the other programs.
#[test]
fn questions_can_be_a_while_apart() {
    let folder = folder();
    let arguments = [
        "-m",
        DEMO,
        "-t",
        "1",
        "-n",
        "8",
        "--think-max",
        "--nothink",
        "--questions",
        "3",
        "--pause-ms",
        "300",
    ];
    let started = std::time::Instant::now();
    let (code, _, errors) = eval(&folder, &arguments);
    assert_eq!(code, 0, "{errors}");
    assert!(!errors.contains("thinking plainly"), "{errors}");
    assert!(started.elapsed() >= std::time::Duration::from_millis(600));
}

/// Ended when the test is.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_gives_the_same_answers_as_the_file() {
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ds4-server"))
        .args([
            "-m",
            DEMO,
            "-t",
            "1",
            "--port",
            "0",
            "--ctx",
            "512",
            "--api-key",
            "secret",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let server = Server(child);
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let at = line[line.find("http://").unwrap()..].trim_end();
    let url = format!("{at}/v1/");
    let ask = |key: &str| {
        eval(
            &folder,
            &[
                "--url",
                &url,
                "--api-key",
                key,
                "-n",
                "64",
                "--nothink",
                "--cases",
                "cases.jsonl",
                "--trace",
                "t.jsonl",
            ],
        )
    };
    let (code, _, errors) = ask("secret");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(grades(&folder, "t.jsonl"), right("peru"));
    assert!(
        lines(&folder, "t.jsonl")
            .iter()
            .all(|l| l["tokens"].as_u64() > Some(1))
    );
    let (code, _, errors) = ask("wrong");
    assert_eq!(code, 1);
    assert!(
        errors.contains("status 401") && errors.contains("question france"),
        "{errors}"
    );
    drop(server);
}

#[test]
fn a_server_that_fails_is_quoted() {
    let folder = folder();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let reply = "HTTP/1.1 500 Broken\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops";
        stream.write_all(reply.as_bytes()).unwrap();
        body
    });
    let (code, _, errors) = eval(&folder, &["--url", &url, "--cases", "cases.jsonl"]);
    assert_eq!(code, 1);
    assert!(errors.contains("status 500: oops"), "{errors}");
    let body: Value = serde_json::from_slice(&server.join().unwrap()).unwrap();
    assert_eq!(
        body["messages"][0]["content"],
        "What is the capital of France?"
    );
    assert_eq!(
        (&body["max_tokens"], &body["chat_template_kwargs"]),
        (&16000.into(), &Value::Null)
    );
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("bad.jsonl"), "{\"question\": \"q\"}\n").unwrap();
    for (arguments, code, words) in [
        (&["-m", "none.gguf"] as &[&str], 3, "none.gguf"),
        (
            &["-m", DEMO, "--cases", "bad.jsonl"],
            1,
            "bad.jsonl: line 1",
        ),
        (
            &["-m", DEMO, "--case-sequence", "1,1000"],
            2,
            "there are 67 questions",
        ),
        (
            &["-m", DEMO, "--suite", "easy"],
            2,
            "core, hard, hard-smoke or all",
        ),
        (&["-m", DEMO, "--temp", "101"], 2, "from 0 to 100"),
        (
            &["--url", "https://example.org/v1"],
            2,
            "begins with http://",
        ),
        (&["--regrade-trace", "none.jsonl"], 1, "none.jsonl"),
    ] {
        let (found, _, errors) = eval(&folder, arguments);
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}
