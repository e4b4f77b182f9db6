//! `ds4-server`, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests; a panic is the failure, and long tests say what they measured"
)]
#![cfg(unix)]

mod client;
mod connections;
mod doors;
mod drawn;
mod hostile;
mod keep;
mod load;
mod options;
mod parts;
mod prefill;
mod told;

use client::{Server, request};
use serde_json::{Value, json};

pub(crate) const QUESTION: &str = "What is the capital of France?";
pub(crate) const ANSWER: &str = "The capital of France is Paris.";

/// A chat request that is answered at once and always in the same way.
pub(crate) fn chat(question: &str, more: &Value) -> Value {
    let mut body = json!({
        "messages": [{ "role": "user", "content": question }],
        "temperature": 0,
        "thinking": { "type": "disabled" },
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A request whose answer takes thousands of tokens.
pub(crate) fn long(more: &Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "array", "items": { "enum": [1, 2] }, "minItems": 1500 } },
        "required": ["a"],
        "additionalProperties": false,
    });
    let mut body = chat(QUESTION, more);
    body["response_format"] = json!({ "type": "json_schema", "json_schema": { "schema": schema } });
    body
}

#[test]
fn the_request_of_the_readme_is_answered() {
    let server = Server::start(&[]);
    let body = json!({ "messages": [{ "role": "user", "content": QUESTION }] });
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(reply.status, 200);
    let content = reply.json()["choices"][0]["message"]["content"].clone();
    assert!(content.as_str().unwrap().contains("Paris"), "{content}");
    assert_eq!(server.get("/health").json()["status"], "ok");
    let page = server.get("/");
    assert!(page.head.contains("text/html") && page.text.contains("<title>ds4</title>"));
    assert_eq!(server.metric("ds4_answers_total"), 1.0);
    assert_eq!(server.terminate(), 0);
}

#[test]
fn routes_beside_the_answers() {
    let server = Server::start(&["--alias", "flash"]);
    let models = server.get("/v1/models").json();
    assert_eq!(models["data"][0]["id"], "flash");
    assert_eq!(models["data"][0]["context_length"], 2048);
    assert_eq!(server.get("/v1/models/flash").status, 200);
    assert_eq!(server.get("/v1/models/other").status, 404);
    let text = "Hi <think> ü";
    for special in [true, false] {
        let body = json!({ "content": text, "parse_special": special });
        let tokens = server.post("/tokenize", &body).json();
        let back = server.post("/detokenize", &tokens).json();
        assert_eq!(back["content"], text);
    }
    let pieces = server.post(
        "/tokenize",
        &json!({ "content": text, "with_pieces": true }),
    );
    assert_eq!(pieces.json()["tokens"][1]["piece"], json!(" "));
    let prompt = server
        .post("/apply-template", &chat("x", &json!({})))
        .json();
    assert_eq!(
        prompt["prompt"],
        "<｜begin▁of▁sentence｜><｜User｜>x<｜Assistant｜></think>"
    );
    let count = server.post(
        "/v1/messages/count_tokens",
        &json!({ "messages": [{ "role": "user", "content": QUESTION }] }),
    );
    assert_eq!(count.json()["input_tokens"], 11);
    assert_eq!(
        server
            .post("/detokenize", &json!({ "tokens": [-1] }))
            .status,
        400
    );
}

#[test]
fn a_prompt_that_was_read_before_is_not_read_again() {
    let server = Server::start(&[]);
    let ask = || {
        server
            .post("/v1/chat/completions", &chat(QUESTION, &json!({})))
            .json()
    };
    assert_eq!(ask()["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    let second = ask();
    let usage = &second["usage"];
    assert_eq!(
        usage["prompt_tokens_details"]["cached_tokens"],
        usage["prompt_tokens"]
    );
    assert_eq!(second["choices"][0]["message"]["content"], ANSWER);
}

#[test]
fn only_who_has_the_key_is_answered() {
    let server = Server::start(&["--api-key", "secret"]);
    let with = |header: &str| {
        let raw = format!(
            "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\r\n\r\n"
        );
        server.raw(raw.as_bytes()).status
    };
    assert_eq!(with("authorization: Bearer secret"), 200);
    assert_eq!(with("x-api-key: secret"), 200);
    assert_eq!(with("authorization: bearer secret"), 200);
    assert_eq!(
        with("authorization: Bearer other\r\nx-api-key: secret"),
        200
    );
    assert_eq!(with("authorization: Bearer secre"), 401);
    assert_eq!(with("authorization: secret"), 401);
    assert_eq!(with("accept: */*"), 401);
    assert_eq!(server.get("/health").status, 200);
    let refused = server.post("/v1/messages", &json!({}));
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["type"], "error");
}

#[test]
fn pages_of_other_origins_only_where_they_may() {
    let preflight = b"OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: http://a\r\n\
        access-control-request-method: POST\r\n\r\n";
    let closed = Server::start(&[]).raw(preflight);
    assert_eq!(closed.status, 403);
    assert!(!closed.head.contains("access-control-allow-origin"));
    let open = Server::start(&["--cors"]).raw(preflight);
    assert_eq!(open.status, 204);
    assert!(
        open.head.contains("access-control-allow-origin: *"),
        "{}",
        open.head
    );
}

#[test]
fn an_answer_whose_client_is_gone_ends_at_once() {
    let server = Server::start(&[]);
    // While tokens are streamed, while a whole document is made, and while the prompt is read.
    server.leave_after(
        "/v1/chat/completions",
        &long(&json!({ "stream": true })),
        2000,
    );
    server.wait_until_idle();
    server.leave_when_active("/v1/chat/completions", &long(&json!({})));
    server.wait_until_idle();
    let words = chat(&"word ".repeat(1500), &json!({}));
    server.leave_when_active("/v1/chat/completions", &words);
    server.wait_until_idle();
    assert_eq!(server.metric("ds4_answers_total{ended=\"gone\"}"), 3.0);
    assert_eq!(server.metric("ds4_answers_total"), 3.0);
    assert!(server.log().iter().any(|line| line.contains("finish=gone")));
    let reply = server.post(
        "/v1/chat/completions",
        &chat(QUESTION, &json!({ "stream": true })),
    );
    assert_eq!(reply.content(), ANSWER);
}

#[test]
fn who_comes_when_too_many_wait_is_told_so() {
    let server = Server::start(&["--sessions", "1", "--max-queue", "1"]);
    let body = long(&json!({ "stream": true }));
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect();
        std::io::Write::write_all(
            &mut stream,
            &request("/v1/chat/completions", body.to_string().as_bytes()),
        )
        .unwrap();
        waiting.push(stream);
        let from = std::time::Instant::now();
        while server.metric("ds4_active_answers") + server.metric("ds4_waiting_requests")
            < waiting.len() as f64
        {
            assert!(from.elapsed().as_secs() < 20);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    let refused = server.post("/v1/chat/completions", &chat(QUESTION, &json!({})));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.json()["error"]["type"], "rate_limit_error");
    assert_eq!(server.metric("ds4_answers_total{ended=\"refused\"}"), 1.0);
    drop(waiting);
    server.wait_until_idle();
    assert_eq!(
        server
            .post("/v1/chat/completions", &chat(QUESTION, &json!({})))
            .status,
        200
    );
}

#[test]
fn without_a_limit_of_the_queue_everybody_waits() {
    let server = Server::start(&["--sessions", "1", "--max-queue", "0"]);
    let body = long(&json!({ "stream": true })).to_string();
    let clients: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = server.connect();
            let raw = request("/v1/chat/completions", body.as_bytes());
            std::io::Write::write_all(&mut stream, &raw).unwrap();
            stream
        })
        .collect();
    let from = std::time::Instant::now();
    while server.metric("ds4_waiting_requests") < 11.0 {
        assert!(from.elapsed().as_secs() < 20);
    }
    assert_eq!(server.metric("ds4_active_answers"), 1.0);
    assert_eq!(server.metric("ds4_answers_total{ended=\"refused\"}"), 0.0);
    drop(clients);
    server.wait_until_idle();
    let reply = server.post("/v1/chat/completions", &chat(QUESTION, &json!({})));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
}

#[test]
fn the_key_may_come_from_the_environment() {
    let status = |server: &Server, key: &str| {
        let raw = format!(
            "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n"
        );
        server.raw(raw.as_bytes()).status
    };
    let server = Server::start_in(&[("DS4_API_KEY", "secret")], &[]);
    assert_eq!(
        (status(&server, "secret"), status(&server, "other")),
        (200, 401)
    );
    // The command line says it louder; an empty variable says nothing.
    let server = Server::start_in(&[("DS4_API_KEY", "secret")], &["--api-key", "other"]);
    assert_eq!(
        (status(&server, "secret"), status(&server, "other")),
        (401, 200)
    );
    let server = Server::start_in(&[("DS4_API_KEY", "")], &[]);
    assert_eq!(status(&server, "any"), 200);
}

#[test]
fn a_signal_ends_the_server_and_tells_the_clients() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    let body = long(&json!({ "stream": true })).to_string();
    std::io::Write::write_all(
        &mut stream,
        &request("/v1/chat/completions", body.as_bytes()),
    )
    .unwrap();
    let mut begun = [0; 1500];
    std::io::Read::read_exact(&mut stream, &mut begun).unwrap();
    assert_eq!(server.terminate(), 0);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stream, &mut rest).unwrap();
    assert!(
        rest.contains("event: error") && rest.contains("shutting down"),
        "{rest}"
    );
}

#[test]
fn what_cannot_be_served_is_refused_at_the_start() {
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ds4-server"))
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (arguments, code, part) in [
        (&["-m", "nowhere.gguf"][..], 3, "nowhere.gguf"),
        (
            &["-m", client::DEMO, "--ssd-streaming"],
            2,
            "--ssd-streaming is not taken: this build maps",
        ),
        (&["-m", client::DEMO, "--rocm"], 2, "processor alone"),
        (
            &["-m", client::DEMO, "--backend", "cuda"],
            2,
            "processor alone",
        ),
        (&["-m", client::DEMO, "--ctx", "0"], 2, "--ctx"),
        (
            &["-m", client::DEMO, "--kv-cache-cold-max-tokens", "30000"],
            2,
            "--kv-cache-cold-max-tokens is not taken: timelines are kept where",
        ),
        (&["-m", client::DEMO, "--chdir", "nowhere"], 1, "nowhere"),
        (
            &["-m", client::DEMO, "--trace", "nowhere/trace"],
            1,
            "cannot write the trace nowhere/trace",
        ),
        (
            &["-m", client::DEMO, "--max-connections", "0"],
            2,
            "--max-connections",
        ),
        (
            &["-m", client::DEMO, "--default-temperature", "-1"],
            2,
            "temperature",
        ),
        (&["-m", client::DEMO, "--host", "256.0.0.1"], 1, "256.0.0.1"),
        (
            &["-m", client::DEMO, "--kv-disk-dir", client::DEMO],
            1,
            "ds4-demo.gguf",
        ),
    ] {
        let (found, errors) = run(arguments);
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(part), "{arguments:?}: {errors}");
    }
}
