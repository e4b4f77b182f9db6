//! What the server tells whoever runs it: traces and numbers.

use std::fs;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Server, request};
use crate::{ANSWER, QUESTION, chat, long};

#[test]
fn a_trace_has_what_was_asked_and_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trace"), "{\"before\": true}\n").unwrap();
    let kept = folder.path().join("kept");
    let server = Server::start(&[
        "--chdir",
        folder.path().to_str().unwrap(),
        // Counted from there.
        "--trace",
        "trace",
        "--kv-disk-dir",
        "kept",
        "--kv-cache-min-tokens",
        "8",
    ]);
    for thinking in ["disabled", "enabled"] {
        let more = json!({ "thinking": { "type": thinking }, "max_tokens": 200 });
        let reply = server.post("/v1/chat/completions", &chat(QUESTION, &more));
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    server.leave_when_active("/v1/chat/completions", &long(&json!({})));
    server.wait_until_idle();
    assert_eq!(server.terminate(), 0);
    assert!(kept.is_dir());
    let text = fs::read_to_string(folder.path().join("trace")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    assert_eq!(lines[0], json!({ "before": true }));
    let of = |request: u64, event: &str| {
        let is = |line: &&Value| line["request"] == request && line["event"] == event;
        lines.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    for request in [1, 2] {
        let prompts = of(request, "prompt");
        assert_eq!(prompts.len(), 1);
        let prompt = prompts[0]["text"].as_str().unwrap();
        assert!(prompt.contains(&format!("<｜User｜>{QUESTION}<｜Assistant｜>")));
        let output = &of(request, "output")[0];
        assert_eq!(output["ended"], "stop");
        assert_eq!(output["tokens"]["prompt"], prompts[0]["tokens"]);
        let parsed = |kind: &str| -> String {
            let parts = of(request, "parsed");
            let parts = parts.iter().filter_map(|line| line[kind].as_str());
            parts.collect()
        };
        assert_eq!(parsed("content"), ANSWER);
        let raw = output["text"].as_str().unwrap();
        let reasoning = parsed("reasoning");
        assert_eq!(reasoning.is_empty(), request == 1);
        assert!(raw.contains(&reasoning) && raw.ends_with(ANSWER), "{raw}");
    }
    // The second prompt begins as the first did.
    let cached = of(2, "output")[0]["tokens"]["cached"].as_u64();
    assert!(cached.unwrap() >= 8, "{cached:?}");
    assert_eq!((of(3, "gone").len(), of(3, "output").len()), (1, 0));
    assert!(lines.iter().any(|line| line["event"] == "store"), "{text}");
}

#[test]
fn a_new_trace_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    drop(Server::start(&["--trace", path.to_str().unwrap()]));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn numbers_are_told_while_answers_are_made() {
    let server = Server::start(&["--alias", "flash", "--sessions", "3"]);
    let stats = || server.get("/stats").json();
    let idle = stats();
    assert_eq!(
        (&idle["model"], &idle["sessions"]),
        (&json!("flash"), &json!(3))
    );
    assert_eq!(
        (&idle["context"], &idle["requests"]),
        (&json!(2048), &json!([]))
    );
    let reply = server
        .post("/v1/chat/completions", &chat(QUESTION, &json!({})))
        .json();
    let usage = &reply["usage"];
    let mut stream = server.connect();
    let body = long(&json!({ "stream": true })).to_string();
    stream
        .write_all(&request("/v1/chat/completions", body.as_bytes()))
        .unwrap();
    let drawn = |more_than: u64| {
        let from = Instant::now();
        loop {
            let stats = stats();
            let one = &stats["requests"][0];
            if one["completion_tokens"]
                .as_u64()
                .is_some_and(|n| n > more_than)
            {
                assert_eq!(one["read_tokens"], one["prompt_tokens"]);
                assert_eq!(stats["answers"]["active"], 1);
                return one["completion_tokens"].as_u64().unwrap();
            }
            assert!(from.elapsed() < Duration::from_secs(20), "{stats}");
            // It would pause for a client that takes nothing.
            let _ = (&stream).read(&mut [0; 1 << 16]);
        }
    };
    let first = drawn(0);
    assert!(drawn(first) > first);
    drop(stream);
    server.wait_until_idle();
    let after = stats();
    assert_eq!(after["requests"], json!([]));
    assert_eq!(
        (&after["answers"]["stop"], &after["answers"]["gone"]),
        (&json!(1), &json!(1))
    );
    for name in ["prompt", "completion"] {
        assert_eq!(
            after["tokens"][name],
            usage[format!("{name}_tokens")],
            "{after}"
        );
    }
}
