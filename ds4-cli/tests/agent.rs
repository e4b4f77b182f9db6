//! `ds4-agent`, from outside, with the calls that the demo model was trained on.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// Ids of what is saved in `folder`, as the list shows them.
fn saved(errors: &str) -> Vec<String> {
    let ids = errors
        .lines()
        .filter_map(|line| line.strip_prefix("saved as "));
    ids.map(|rest| rest.split(',').next().unwrap().to_owned())
        .collect()
}

/// Drawn with some heat, so that the random numbers must go on too. One conversation is held in one run; the other is saved
/// after its first task, and taken up by another process, with the timeline that the first one left.
#[test]
fn a_saved_conversation_goes_on_with_the_same_text() {
    const TASKS: [&str; 2] = [
        "Tell me the weather in Tashkent.",
        "What is the capital of France?",
    ];
    let heat = [
        "--temp",
        "0.7",
        "--seed",
        "3",
        "--yes",
        "--session-dir",
        "saved",
    ];
    let arguments = [&DECLARED[..], &heat].concat();
    let whole = folder();
    let (code, at_once, errors) = agent(&whole, &arguments, &TASKS.join("\n"));
    assert_eq!(code, 0, "{errors}");

    let parts = folder();
    let input = format!("{}\n/save the weather\n", TASKS[0]);
    let (code, first, errors) = agent(&parts, &arguments, &input);
    assert_eq!(code, 0, "{errors}");
    let ids = saved(&errors);
    // When it was asked for, and again at the end.
    assert!(ids.len() == 2 && ids[0] == ids[1], "{errors}");
    let resumed = [&arguments[..], &["--resume", &ids[0][..7], "-p", TASKS[1]]].concat();
    let (code, second, errors) = agent(&parts, &resumed, "");
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains(": the weather; 4 messages, "), "{errors}");
    assert!(!errors.contains("read anew"), "{errors}");
    assert!(!errors.contains(" 0 tokens known"), "{errors}");
    assert_eq!(format!("{first}{second}"), at_once);
    assert_eq!(messages(&parts), messages(&whole));
    assert_eq!(saved(&errors), [ids[0].clone()]);
    // What was said in the second process was saved too.
    let (code, _, errors) = agent(&parts, &arguments, "/switch last\n/history 2\n/history 0\n");
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("6 messages"), "{errors}");
    assert!(
        errors.contains("user: What is the capital of France?\n"),
        "{errors}"
    );
    assert!(!errors.contains("Tashkent"), "{errors}");
}

/// A damaged timeline costs time, a damaged record the conversation; nothing else is touched.
#[test]
fn damaged_conversations_are_told_and_listed() {
    let folder = folder();
    let arguments = [&DECLARED[..], &["--yes", "--session-dir", "saved"]].concat();
    let input = "Tell me the weather in Tashkent.\n/save\n/new\n/status\n/list\n";
    let (code, first, errors) = agent(&folder, &arguments, input);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("not saved; 0 messages"), "{errors}");
    assert!(
        errors.contains("4 messages  Tell me the weather in Tashkent."),
        "{errors}"
    );
    let id = saved(&errors).remove(0);
    let path = folder.path().join(format!("saved/{id}.talk"));
    let whole = fs::read(&path).unwrap();
    let again = [
        &arguments[..],
        &["--resume", "last", "-p", "Tell me the weather in Tashkent."],
    ]
    .concat();
    let damaged = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damaged(whole.len() - 9);
    let (code, second, errors) = agent(&folder, &again, "");
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("read anew: ") && errors.contains("checksum"),
        "{errors}"
    );
    assert_eq!(second, first);
    damaged(40);
    let (code, _, errors) = agent(&folder, &again, "");
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains(&format!("{id}.talk: ")) && errors.contains("checksum"),
        "{errors}"
    );
    let input = format!("/list\n/switch {id}\n/switch ../t\n/del nobody\n/del {id}\n/list\n");
    let (code, _, errors) = agent(&folder, &arguments, &input);
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains(&format!("{id}  cannot be read")),
        "{errors}"
    );
    assert!(errors.contains("no conversation `../t`"), "{errors}");
    assert!(errors.contains("no conversation `nobody`"), "{errors}");
    assert!(
        errors.ends_with(&format!("{id} is deleted\nnothing is saved\n")),
        "{errors}"
    );
    assert!(!path.exists());
}

/// With other tools the prompt is another; the conversation is whole all the same.
#[test]
fn a_conversation_can_go_on_with_other_tools_or_less_context() {
    let folder = folder();
    let arguments = [&DECLARED[..], &["--yes", "--session-dir", "saved"]].concat();
    let (code, _, errors) = agent(
        &folder,
        &arguments,
        "Tell me the weather in Tashkent.\n/save\n",
    );
    assert_eq!(code, 0, "{errors}");
    let rest = [
        "--builtin",
        "none",
        "--session-dir",
        "saved",
        "--resume",
        "last",
    ];
    let task = ["-p", "What is the capital of France?"];
    let (code, out, errors) = agent(&folder, &[&rest[..], &task].concat(), "");
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("read anew: the tools are others now"),
        "{errors}"
    );
    assert!(out.contains("Paris"), "{out} {errors}");
    let (code, _, errors) = agent(&folder, &[&rest[..], &["-c", "64"], &task].concat(), "");
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("read anew: ") && errors.contains("the context holds 64"),
        "{errors}"
    );
}

/// The demo model was trained on no summaries: what it says when it is made to say something stands for the conversation all
/// the same, and a call is none.
#[test]
fn a_summary_takes_the_place_of_what_was_said() {
    let folder = folder();
    let arguments = [&DECLARED[..], &["--yes"]].concat();
    let input = "/compact\nTell me the weather in Tashkent.\n/compact\n/status\n";
    let (code, _, errors) = agent(&folder, &arguments, input);
    assert_eq!(code, 0, "{errors}");
    for words in [
        "error: nothing was said yet",
        "error: the model made no summary; nothing has changed",
        "not saved; 4 messages",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let drawn = ["--temp", "1.5", "--min-p", "0", "--seed", "4"];
    let arguments = [&["--builtin", "none"], &drawn[..]].concat();
    let input = "What is the capital of France?\n/compact\n/history\n";
    let (code, out, errors) = agent(&folder, &arguments, input);
    assert_eq!(code, 0, "{errors}");
    let summary = out.lines().nth(1).unwrap();
    assert!(!summary.is_empty(), "{out}");
    let history = format!(
        "2 messages became a summary\nuser: What has happened so far?\nassistant: {summary}\n"
    );
    assert!(errors.ends_with(&history), "{errors}");
}

/// Killed without a chance to do anything about it.
#[test]
fn no_command_outlives_the_agent() {
    let folder = folder();
    let tools = TOOLS.replace(
        "echo \\\"$ARG_city\\\" >> asked; cat > object;",
        "echo $$ > pid; sleep 1000;",
    );
    assert_ne!(tools, TOOLS);
    fs::write(folder.path().join("tools.json"), tools).unwrap();
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
        ])
        .args(["-sys", "", "--no-transcript", "--yes"])
        .args(DECLARED)
        .args(["-p", "Tell me the weather in Tashkent."])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let pid = loop {
        let text = fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "no command is run"
        );
        std::thread::yield_now();
    };
    let status = format!("/proc/{pid}/stat");
    assert!(fs::exists(&status).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    // Gone, or a zombie that nobody has collected yet.
    let lives = || {
        let stat = fs::read_to_string(&status).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    while lives() {
        assert!(start.elapsed() < Duration::from_secs(60), "{pid} lives");
        std::thread::yield_now();
    }
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
