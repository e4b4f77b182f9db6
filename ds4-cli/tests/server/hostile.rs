//! Requests that nobody should send.

use serde_json::{Value, json};

use crate::client::{Server, request};
use crate::{ANSWER, QUESTION, chat};

/// What `random` is drawn from; any sequence does.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        // Knuth's MMIX constants; the high bits are good.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A broken request; what is left of it must not be answered with success.
pub(crate) fn malformed(random: &mut Random) -> Vec<u8> {
    let body = chat(QUESTION, &json!({})).to_string();
    let path = "/v1/chat/completions";
    match random.next(9) {
        0 => request(
            path,
            &body.as_bytes()[..random.next(body.len() as u64) as usize],
        ),
        1 => request(
            path,
            chat(QUESTION, &json!({ "n": 2 })).to_string().as_bytes(),
        ),
        2 => request(path, b"\xff\xfe\x00[]"),
        3 => request(
            path,
            chat(QUESTION, &json!({ "messages": "text" }))
                .to_string()
                .as_bytes(),
        ),
        4 => request(
            path,
            chat(QUESTION, &json!({ "temperature": "hot" }))
                .to_string()
                .as_bytes(),
        ),
        5 => request(path, "[".repeat(100_000).as_bytes()),
        6 => b"POST /v1/chat/completions HTTP/9.9\r\nnonsense\r\n\r\n".to_vec(),
        7 => request("/v1/nothing", body.as_bytes()),
        _ => request(
            path,
            &chat(&"word ".repeat(4000), &json!({}))
                .to_string()
                .into_bytes(),
        ),
    }
}

#[test]
fn wrong_requests_are_refused_and_named() {
    let server = Server::start(&["--max-body-mb", "1"]);
    let ask = |path: &str, body: Value| {
        let reply = server.post(path, &body);
        let error = reply.json()["error"].clone();
        (
            reply.status,
            error["param"].clone(),
            error["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let chat_path = "/v1/chat/completions";
    for (path, body, status, param) in [
        (chat_path, json!({}), 400, json!("messages")),
        (chat_path, json!({ "messages": [] }), 400, json!("messages")),
        (
            chat_path,
            json!({ "messages": [{ "content": "x" }] }),
            400,
            json!("messages[0]"),
        ),
        (
            chat_path,
            chat("x", &json!({ "top_logprobs": 2 })),
            400,
            json!("top_logprobs"),
        ),
        (
            chat_path,
            chat("x", &json!({ "stop": [1] })),
            400,
            json!("stop"),
        ),
        (
            chat_path,
            chat("x", &json!({ "tools": [{}] })),
            400,
            json!("tools[0]"),
        ),
        (
            chat_path,
            chat("x", &json!({ "thinking": "maybe" })),
            400,
            json!("thinking"),
        ),
        (
            chat_path,
            chat("x", &json!({ "reasoning_effort": "huge" })),
            400,
            json!("reasoning_effort"),
        ),
        (
            chat_path,
            chat(&"word ".repeat(3000), &json!({})),
            400,
            json!("messages"),
        ),
        (
            chat_path,
            chat(
                "x",
                &json!({ "response_format": { "type": "json_schema",
            "json_schema": { "schema": { "type": "no such type" } } } }),
            ),
            400,
            json!("response_format.json_schema.schema"),
        ),
        ("/v1/completions", json!({}), 400, json!("prompt")),
        (
            "/v1/completions",
            json!({ "prompt": [9_999_999] }),
            400,
            json!("prompt"),
        ),
        (
            "/v1/completions",
            json!({ "prompt": ["a", "b"] }),
            400,
            json!("prompt"),
        ),
        (
            "/v1/completions",
            json!({ "prompt": "x", "suffix": "y" }),
            400,
            json!("suffix"),
        ),
        (
            "/v1/responses",
            json!({ "input": "x", "previous_response_id": "y" }),
            400,
            json!("previous_response_id"),
        ),
        ("/v1/responses", json!({}), 400, json!("input")),
        (
            "/v1/responses",
            json!({ "input": "x", "text": { "verbosity": "low" } }),
            400,
            json!("text.verbosity"),
        ),
        ("/nothing", json!({}), 404, Value::Null),
        ("/health", json!({}), 405, Value::Null),
    ] {
        let (found, named, message) = ask(path, body);
        assert_eq!((found, &named), (status, &param), "{path}: {message}");
        assert!(!message.is_empty());
    }
    let messages = server.post("/v1/messages", &json!({ "messages": [{ "role": "x" }] }));
    assert_eq!(
        (messages.status, messages.json()["type"].as_str()),
        (400, Some("error"))
    );
    let large = server.post(chat_path, &chat(&"x".repeat(2 << 20), &json!({})));
    assert_eq!(large.status, 413);
    // A length that is a lie, and none at all.
    let lie = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n{}";
    assert_eq!(server.raw(lie).status, 413);
    let none =
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(server.raw(none).status, 400);
    let reply = server.post(chat_path, &chat(QUESTION, &json!({})));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
}

#[test]
fn a_body_of_millions_of_values_is_refused_before_it_is_read() {
    let server = Server::start(&[]);
    // Two bytes each as text, seventy and more in memory.
    let many = |n: usize| "1,".repeat(n) + "1";
    let refused = |path: &str, body: String| {
        let reply = server.raw(&request(path, body.as_bytes()));
        assert_eq!(reply.status, 400, "{path}: {reply:?}");
        reply.json()["error"].clone()
    };
    for (path, body) in [
        (
            "/detokenize",
            format!("{{\"tokens\": [{}]}}", many(3 << 20)),
        ),
        (
            "/v1/completions",
            format!("{{\"prompt\": [{}]}}", many(3 << 20)),
        ),
        (
            "/v1/chat/completions",
            format!("{{\"messages\": [{}]}}", many(3 << 20)),
        ),
    ] {
        let error = refused(path, body);
        assert!(
            error["message"].as_str().unwrap().contains("values"),
            "{error}"
        );
    }
    let error = refused(
        "/detokenize",
        format!("{{\"tokens\": [{}]}}", many(1 << 20)),
    );
    assert_eq!(error["param"], "tokens");
    let error = refused("/detokenize", "{\"tokens\": [1, 2, 99999999]}".to_owned());
    assert_eq!(error["param"], "tokens");
    assert!(
        error["message"].as_str().unwrap().contains("tokens[2]"),
        "{error}"
    );
    let most = format!("{{\"tokens\": [{}]}}", many((1 << 20) - 1));
    assert_eq!(
        server.raw(&request("/detokenize", most.as_bytes())).status,
        200
    );
    // A text may hold as many signs as it likes.
    let text = json!({ "content": "[1,".repeat(2 << 20) }).to_string();
    assert_eq!(
        server.raw(&request("/tokenize", text.as_bytes())).status,
        200
    );
}

#[test]
fn broken_requests_never_hurt_the_server() {
    let server = Server::start(&[]);
    let mut random = Random(7);
    for i in 0..200 {
        let raw = malformed(&mut random);
        let reply = server.raw(&raw);
        assert!((400..500).contains(&reply.status), "{i}: {reply:?}");
    }
    assert!(!server.log().iter().any(|line| line.contains("panic")));
    let reply = server.post("/v1/chat/completions", &chat(QUESTION, &json!({})));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], ANSWER);
}
