//! Parts of messages that only some clients send, and events that only some clients read.

use serde_json::{Value, json};

use crate::client::Server;
use crate::{ANSWER, QUESTION, chat};

fn count(server: &Server, messages: Value) -> u64 {
    let body = json!({ "messages": messages });
    let reply = server.post("/v1/messages/count_tokens", &body);
    let document = reply.json();
    document["input_tokens"]
        .as_u64()
        .unwrap_or_else(|| panic!("{document}"))
}

#[test]
fn thinking_that_nobody_can_read_is_left_out() {
    let server = Server::start(&[]);
    let of = |blocks: Value| {
        count(
            &server,
            json!([
                { "role": "user", "content": QUESTION },
                { "role": "assistant", "content": blocks },
                { "role": "user", "content": "And of Japan?" },
            ]),
        )
    };
    let text = json!({ "type": "text", "text": ANSWER });
    let plain = of(json!([text]));
    assert_eq!(
        of(json!([{ "type": "redacted_thinking", "data": "x".repeat(500) }, text])),
        plain
    );
    assert!(of(json!([text, text])) > plain);
}

#[test]
fn a_result_that_failed_says_so() {
    let server = Server::start(&[]);
    let of = |result: Value| {
        let call = json!([{ "type": "tool_use", "id": "a", "name": "f", "input": {} }]);
        count(
            &server,
            json!([
                { "role": "user", "content": "x" },
                { "role": "assistant", "content": call },
                { "role": "user", "content": [result] },
            ]),
        )
    };
    let result = |more: Value| {
        let mut result =
            json!({ "type": "tool_result", "tool_use_id": "a", "content": "no such city" });
        result["is_error"] = more;
        result
    };
    let fine = of(result(json!(false)));
    assert_eq!(of(result(Value::Null)), fine);
    assert!(of(result(json!(true))) > fine);
    let empty = json!({ "type": "tool_result", "tool_use_id": "a", "is_error": true });
    assert!(of(empty) > of(json!({ "type": "tool_result", "tool_use_id": "a" })));
}

#[test]
fn chats_take_parts_of_the_other_api() {
    let server = Server::start(&[]);
    let prompt = |content: [Value; 2]| {
        let body = json!({ "messages": [
            { "role": "user", "content": content[0] },
            { "role": "assistant", "content": content[1] },
            { "role": "user", "content": "And of Japan?" },
        ] });
        let document = server.post("/apply-template", &body).json();
        document["prompt"]
            .as_str()
            .unwrap_or_else(|| panic!("{document}"))
            .to_owned()
    };
    let plain = prompt([json!("One"), json!("Two")]);
    let parts = [
        json!([{ "type": "input_text", "text": "One" }]),
        json!([{ "type": "output_text", "text": "Two", "annotations": [] }, { "type": "refusal", "refusal": "No." }]),
    ];
    assert_eq!(prompt(parts), plain);
    let mixed = [
        json!([{ "type": "text", "text": "One" }]),
        json!([{ "type": "refusal", "refusal": "No." }, { "type": "text", "text": "Two" }]),
    ];
    assert_eq!(prompt(mixed), plain);
    let image = json!([{ "type": "input_image", "image_url": "x" }]);
    let body = json!({ "messages": [{ "role": "user", "content": image }] });
    let reply = server.post("/v1/chat/completions", &body);
    assert_eq!(
        (reply.status, &reply.json()["error"]["param"]),
        (400, &json!("messages[0]"))
    );
}

#[test]
fn reasoning_is_streamed_in_the_open_unless_a_summary_is_asked_for() {
    let server = Server::start(&[]);
    let events = |reasoning: Value| {
        let body =
            json!({ "input": QUESTION, "temperature": 0, "stream": true, "reasoning": reasoning });
        server.post("/v1/responses", &body).events()
    };
    let joined = |events: &[Value], kind: &str| -> String {
        let is = |e: &&Value| e["type"] == kind;
        events
            .iter()
            .filter(is)
            .filter_map(|e| e["delta"].as_str())
            .collect()
    };
    let open = events(Value::Null);
    let thought = joined(&open, "response.reasoning_text.delta");
    assert!(thought.contains("France"), "{open:?}");
    let done = open
        .iter()
        .find(|e| e["type"] == "response.reasoning_text.done")
        .unwrap();
    assert_eq!(done["text"], thought);
    assert_eq!(
        (&done["output_index"], &done["content_index"]),
        (&json!(0), &json!(0))
    );
    let last = open.last().unwrap();
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], thought);
    assert_eq!(joined(&open, "response.output_text.delta"), ANSWER);
    let summed = events(json!({ "summary": "auto" }));
    assert_eq!(
        joined(&summed, "response.reasoning_summary_text.delta"),
        thought
    );
    assert_eq!(joined(&summed, "response.reasoning_text.delta"), "");
    assert_eq!(joined(&open, "response.reasoning_summary_text.delta"), "");
}

#[test]
fn what_a_client_is_refused_in_a_chat_it_is_in_both_forms() {
    let server = Server::start(&[]);
    let body = chat("x", &json!({ "max_tokens": 0 }));
    assert_eq!(
        server.post("/v1/chat/completions", &body).json()["error"]["param"],
        "max_tokens"
    );
    let reply = server.post("/v1/messages", &body).json();
    assert_eq!(
        (&reply["type"], &reply["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
}
