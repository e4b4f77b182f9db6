//! `ds4-agent`, from outside, with the calls that the demo model was trained on.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

/// As the demo model knows them.
const TOOLS: &str = r#"[
{"name": "calculate", "description": "Evaluate an arithmetic expression.", "command": "echo $(( $ARG_expression ))",
 "parameters": {"type": "object", "properties": {"expression": {"type": "string", "description": "The expression to evaluate"}}, "required": ["expression"]}},
{"name": "get_weather", "description": "Get the current weather for a city.", "command": "echo \"$ARG_city\" >> asked; cat > object; echo '14 degrees, cloudy'",
 "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "The name of the city"}}, "required": ["city"]}}
]"#;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("tools.json"), TOOLS).unwrap();
    folder
}

/// Exit code, standard output and standard error.
fn agent(folder: &TempDir, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ds4-agent"))
        .args([
            "-m",
            DEMO,
            "-t",
            "1",
            "-c",
            "2048",
            "-n",
            "64",
            "--temp",
            "0",
            "--nothink",
            "-sys",
            "",
        ])
        .args(["--transcript", "t.jsonl"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends early does not read it all.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// Roles and contents of the messages in the transcript.
fn messages(folder: &TempDir) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    let lines = text
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    lines
        .filter(|line| line["event"] == "message")
        .map(|line| (text(&line["role"]), text(&line["content"])))
        .collect()
}

const DECLARED: [&str; 4] = ["--builtin", "none", "--tools", "tools.json"];

#[test]
fn a_call_is_made_and_its_result_is_used() {
    let folder = folder();
    let task = ["--yes", "-p", "Tell me the weather in Tashkent."];
    let (code, out, errors) = agent(&folder, &[&DECLARED[..], &task].concat(), "");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        out, "The weather in Tashkent is cloudy with 14 degrees.\n",
        "{errors}"
    );
    assert!(
        errors.contains("· get_weather\n    city: Tashkent"),
        "{errors}"
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("asked"), "Tashkent\n");
    let object: Value = serde_json::from_str(&read("object")).unwrap();
    assert_eq!(object["city"], "Tashkent");
    let roles: Vec<_> = messages(&folder)
        .into_iter()
        .map(|(role, _)| role)
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(messages(&folder)[2].1, "14 degrees, cloudy");
}

#[test]
fn a_call_that_nobody_allows_is_not_made() {
    let folder = folder();
    let quiet = [&DECLARED[..], &["--non-interactive"]].concat();
    let (code, _, errors) = agent(&folder, &quiet, "Tell me the weather in Tashkent.\n");
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("--yes was not given"), "{errors}");
    assert!(!folder.path().join("asked").exists());
    assert_eq!(
        messages(&folder)[2].1,
        "error: the user does not allow this call"
    );
}

/// Tasks and consents from one input: no, yes, then a new conversation.
#[test]
fn a_person_is_asked_before_every_call() {
    let folder = folder();
    let input = "Tell me the weather in Tashkent.\nn\n/new\nTell me the weather in Tashkent.\ny\n/fly\n/quit\n";
    let (code, out, errors) = agent(&folder, &DECLARED, input);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(errors.matches("make this call?").count(), 2, "{errors}");
    assert!(errors.contains("no command /fly"), "{errors}");
    assert!(
        out.ends_with("The weather in Tashkent is cloudy with 14 degrees.\n"),
        "{out}"
    );
    let read = fs::read_to_string(folder.path().join("asked")).unwrap();
    assert_eq!(read, "Tashkent\n");
}

#[test]
fn a_built_in_tool_works_in_the_folder() {
    let folder = folder();
    let task = ["--builtin", "bash", "--yes", "-p", "Run the command pwd."];
    let (code, out, errors) = agent(&folder, &task, "");
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("· bash\n    command: pwd"), "{errors}");
    assert!(!out.is_empty());
    let seen = messages(&folder);
    let root = folder.path().canonicalize().unwrap();
    assert_eq!(seen[2], ("tool".into(), format!("{}\n", root.display())));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("bad.json"), r#"[{"name": "x"}]"#).unwrap();
    fs::write(
        folder.path().join("twice.json"),
        r#"[{"name": "read", "command": "true"}]"#,
    )
    .unwrap();
    for (arguments, code, words) in [
        (&["--root", "nowhere"] as &[&str], 1, "--root nowhere"),
        (&["--builtin", "fly"], 2, "there is no tool `fly`"),
        (&["--tools", "bad.json"], 1, "`command` is missing"),
        (&["--tools", "twice.json"], 1, "two tools are called `read`"),
        (&["--top-p", "1.5"], 2, "from 0 to 1"),
        (&["--ssd-streaming"], 2, "maps all weights"),
    ] {
        let (found, _, errors) = agent(&folder, arguments, "");
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}
