//! Answers that the client begins, and whether the model thinks.

use serde_json::{Value, json};

use crate::client::Server;
use crate::{QUESTION, chat};

#[test]
fn an_answer_goes_on_from_its_beginning() {
    let server = Server::start(&[]);
    let begun = json!([
        { "role": "user", "content": QUESTION },
        { "role": "assistant", "content": "The capital of" },
    ]);
    for thinking in [false, true] {
        let switch = json!({ "type": if thinking { "enabled" } else { "disabled" } });
        let body =
            json!({ "messages": begun, "temperature": 0, "max_tokens": 32, "thinking": switch });
        let reply = server.post("/v1/chat/completions", &body).json();
        let message = &reply["choices"][0]["message"];
        assert_eq!(message["content"], " France is Paris.", "{reply}");
        assert!(
            message["reasoning_content"]
                .as_str()
                .unwrap_or_default()
                .is_empty()
        );
        let reply = server.post("/v1/messages", &body).json();
        assert_eq!(reply["content"][0]["text"], " France is Paris.", "{reply}");
        let prompt = server.post("/apply-template", &body).json();
        assert!(
            prompt["prompt"]
                .as_str()
                .unwrap()
                .ends_with("</think>The capital of"),
            "{prompt}"
        );
    }
    let body = json!({ "input": begun, "temperature": 0, "max_output_tokens": 32 });
    let reply = server.post("/v1/responses", &body).json();
    assert_eq!(
        reply["output"][0]["content"][0]["text"], " France is Paris.",
        "{reply}"
    );
    let calls = json!({ "messages": [{ "role": "user", "content": "x" }, { "role": "assistant", "tool_calls": [
        { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
    ] }] });
    assert_eq!(server.post("/v1/chat/completions", &calls).status, 400);
}

#[test]
fn a_switch_of_thinking_counts_more_than_an_effort() {
    let thinks = |server: &Server, more: Value| {
        let mut body = json!({ "messages": [{ "role": "user", "content": "x" }] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let prompt = server.post("/apply-template", &body).json();
        let prompt = prompt["prompt"]
            .as_str()
            .unwrap_or_else(|| panic!("{prompt}"));
        prompt.ends_with("<think>")
    };
    let server = Server::start(&[]);
    for (more, want) in [
        (json!({}), true),
        (json!({ "reasoning_effort": "none" }), false),
        (json!({ "reasoning_effort": "high" }), true),
        (
            json!({ "enable_thinking": false, "reasoning_effort": "high" }),
            false,
        ),
        (json!({ "think": false, "reasoning_effort": "high" }), false),
        (json!({ "think": true, "reasoning_effort": "none" }), true),
        (
            json!({ "chat_template_kwargs": { "thinking": false, "reasoning_effort": "high" } }),
            false,
        ),
        (
            json!({ "chat_template_kwargs": { "enable_thinking": false }, "enable_thinking": true }),
            false,
        ),
        (
            json!({ "thinking": { "type": "enabled" }, "think": false }),
            true,
        ),
        // Each of them against the next, both ways.
        (
            json!({ "thinking": { "type": "disabled" }, "chat_template_kwargs": { "thinking": true } }),
            false,
        ),
        (
            json!({ "thinking": true, "chat_template_kwargs": { "thinking": false } }),
            true,
        ),
        (
            json!({ "chat_template_kwargs": { "thinking": true, "enable_thinking": false } }),
            true,
        ),
        (
            json!({ "chat_template_kwargs": { "thinking": false, "enable_thinking": true } }),
            false,
        ),
        (
            json!({ "chat_template_kwargs": { "enable_thinking": true }, "enable_thinking": false }),
            true,
        ),
        (json!({ "enable_thinking": true, "think": false }), true),
        (json!({ "enable_thinking": false, "think": true }), false),
        (
            json!({ "think": false, "model": "deepseek-reasoner" }),
            false,
        ),
        (json!({ "model": "deepseek-chat" }), false),
        (
            json!({ "model": "deepseek-chat", "reasoning_effort": "high" }),
            false,
        ),
        (json!({ "model": "deepseek-chat", "think": true }), true),
    ] {
        assert_eq!(thinks(&server, more.clone()), want, "{more}");
    }
    let quiet = Server::start(&["--nothink"]);
    assert!(!thinks(&quiet, json!({})));
    assert!(!thinks(&quiet, json!({ "reasoning_effort": "high" })));
    assert!(thinks(&quiet, json!({ "think": true })));
    assert!(thinks(&quiet, json!({ "model": "deepseek-reasoner" })));
    let wrong = chat("x", &json!({ "think": "yes" }));
    let named = [
        (wrong, "think"),
        (
            chat("x", &json!({ "chat_template_kwargs": { "thinking": 1 } })),
            "chat_template_kwargs.thinking",
        ),
        (
            chat("x", &json!({ "stream_options": { "include_usage": 1 } })),
            "stream_options.include_usage",
        ),
    ];
    for (body, param) in named {
        let reply = server.post("/v1/chat/completions", &body);
        assert_eq!(
            (reply.status, &reply.json()["error"]["param"]),
            (400, &json!(param))
        );
    }
    let body = json!({ "input": "x", "reasoning": { "effort": "huge" } });
    let reply = server.post("/v1/responses", &body);
    assert_eq!(reply.json()["error"]["param"], "reasoning.effort");
}

#[test]
fn a_stream_stays_alive_while_a_prompt_is_read() {
    use std::io::{BufRead, BufReader, Write};
    // One step reads the whole prompt, and takes much longer than five seconds.
    let server = Server::start(&["-c", "16384", "--prefill-chunk", "16384"]);
    let body = chat(&"word ".repeat(12_000), &json!({ "stream": true })).to_string();
    let mut stream = server.connect();
    stream
        .write_all(&crate::client::request(
            "/v1/chat/completions",
            body.as_bytes(),
        ))
        .unwrap();
    let from = std::time::Instant::now();
    let mut seen = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if line == ": prefill" {
            break;
        }
        seen.push(line);
    }
    let seconds = from.elapsed().as_secs_f64();
    assert!((4.0..20.0).contains(&seconds), "{seconds} s: {seen:?}");
    // The stream had begun before, and nothing was said.
    assert!(
        seen.iter()
            .any(|line| line.starts_with("data: ") && line.contains("assistant"))
    );
    assert!(!seen.iter().any(|line| line.contains("[DONE]")), "{seen:?}");
}
