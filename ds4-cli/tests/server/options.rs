//! Options of the server, and what it shares with the other programs.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::client::{DEMO, Server};
use crate::{ANSWER, QUESTION, chat};

fn weather() -> Value {
    json!([{ "type": "function", "function": {
        "name": "get_weather",
        "description": "Get the current weather for a city.",
        "parameters": {
            "type": "object",
            "properties": { "city": { "type": "string", "description": "The name of the city" } },
            "required": ["city"],
        },
    } }])
}

/// What the model would read after a call of its own that came back without what it thought.
fn prompt_after_a_call(server: &Server) -> (String, String) {
    let mut body = json!({
        "messages": [{ "role": "user", "content": "Tell me the weather in Tashkent." }],
        "tools": weather(),
        "temperature": 0,
        "thinking": { "type": "enabled" },
        "max_tokens": 400,
    });
    let reply = server.post("/v1/chat/completions", &body).json();
    let message = &reply["choices"][0]["message"];
    let call = &message["tool_calls"][0];
    assert_eq!(call["function"]["name"], "get_weather", "{reply}");
    let thought = message["reasoning_content"].as_str().unwrap().to_owned();
    assert!(!thought.is_empty());
    let list = body["messages"].as_array_mut().unwrap();
    list.push(json!({ "role": "assistant", "content": message["content"], "tool_calls": [call] }));
    list.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "14 degrees" }));
    let prompt = server.post("/apply-template", &body).json();
    (prompt["prompt"].as_str().unwrap().to_owned(), thought)
}

#[test]
fn calls_are_put_back_as_they_were_written_unless_that_is_off() {
    let (prompt, thought) = prompt_after_a_call(&Server::start(&[]));
    assert!(prompt.contains(&thought), "{prompt}");
    let server = Server::start(&["--disable-exact-dsml-tool-replay"]);
    let (prompt, thought) = prompt_after_a_call(&server);
    assert!(!prompt.contains(&thought), "{prompt}");
    assert!(prompt.contains("get_weather") && prompt.contains("14 degrees"));
}

#[test]
fn models_are_described_to_each_client_in_its_form() {
    let server = Server::start(&["--alias", "flash"]);
    let get = |path: &str| {
        let raw = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nanthropic-version: 2023-06-01\r\nconnection: close\r\n\r\n"
        );
        server.raw(raw.as_bytes()).json()
    };
    let list = get("/v1/models");
    assert_eq!(
        (&list["first_id"], &list["has_more"]),
        (&json!("flash"), &json!(false))
    );
    assert_eq!(list["data"][0], get("/v1/models/flash"));
    assert_eq!(list["data"][0]["type"], "model");
    assert_eq!(list["data"][0]["max_input_tokens"], 2048);
    assert_eq!(get("/v1/models/other")["error"]["type"], "not_found_error");
    assert_eq!(server.get("/v1/models").json()["object"], "list");
}

#[test]
fn exact_products_and_warm_weights_are_served_too() {
    let server = Server::start(&[
        "--quality",
        "--warm-weights",
        "--kv-cache-reject-different-quant",
    ]);
    let reply = server.post("/v1/chat/completions", &chat(QUESTION, &json!({})));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
}

fn run(program: &str, arguments: &[&str], lock: Option<&str>) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("DS4_LOCK_FILE");
    if let Some(lock) = lock {
        command.env("DS4_LOCK_FILE", lock);
    }
    command.output().unwrap()
}

#[test]
fn a_lock_lets_one_instance_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let path = path.to_str().unwrap();
    let server = Server::start_in(&[("DS4_LOCK_FILE", path)], &[]);
    let ds4 = env!("CARGO_BIN_EXE_ds4");
    let ask = [
        "-m",
        DEMO,
        "-c",
        "256",
        "--nothink",
        "--temp",
        "0",
        "-p",
        QUESTION,
    ];
    for (program, arguments) in [
        (ds4, &ask[..]),
        (
            env!("CARGO_BIN_EXE_ds4-server"),
            &["-m", DEMO, "--port", "0"],
        ),
    ] {
        let refused = run(program, arguments, Some(path));
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{errors}");
        let holder = format!("locked by process {}", server.pid());
        assert!(errors.contains(&holder), "{errors}");
    }
    // Who does not ask for it runs beside.
    assert!(run(ds4, &ask, None).status.success());
    drop(server);
    let free = run(ds4, &ask, Some(path));
    assert!(free.status.success(), "{free:?}");
    assert_eq!(String::from_utf8_lossy(&free.stdout).trim(), ANSWER);
    let listed = run(ds4, &["env"], Some(path));
    assert!(String::from_utf8_lossy(&listed.stdout).contains("DS4_LOCK_FILE"));
}

#[test]
fn every_program_has_completions_and_a_page() {
    let ds4 = env!("CARGO_BIN_EXE_ds4");
    let folder = tempfile::tempdir().unwrap();
    assert!(
        run(ds4, &["man", folder.path().to_str().unwrap()], None)
            .status
            .success()
    );
    for (program, option) in [
        ("ds4", "--dump-logits"),
        ("ds4-server", "--max-connections"),
        ("ds4-bench", "--ctx-start"),
        ("ds4-eval", "--regrade-trace"),
        ("ds4-agent", "--root"),
    ] {
        let script = run(ds4, &["completions", "bash", program], None).stdout;
        let script = String::from_utf8(script).unwrap();
        assert!(
            script.contains(option) && script.contains(&format!(" {program}\n")),
            "{program}"
        );
        let page = std::fs::read_to_string(folder.path().join(format!("{program}.1"))).unwrap();
        // A hyphen of an option is written with a backslash there.
        assert!(
            page.contains(&option.replace('-', "\\-")),
            "{program}: {page}"
        );
    }
    let wrong = run(ds4, &["completions", "bash", "ds4-other"], None);
    assert_eq!(wrong.status.code(), Some(2));
}
