//! Every row of the tables of fields and members, sent to a server over its port: what it says happens.

use std::collections::BTreeSet;

use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::connections::{self, Limit};
use super::fields::{FIELDS, MEMBERS, Members, Route, Use};
use super::kind::Kind;

const ROUTES: [Route; 4] = [
    Route::Chat,
    Route::Completions,
    Route::Messages,
    Route::Responses,
];

fn path(route: Route) -> &'static str {
    match route {
        Route::Chat => "/v1/chat/completions",
        Route::Completions => "/v1/completions",
        Route::Messages => "/v1/messages",
        Route::Responses => "/v1/responses",
    }
}

/// A request that is answered with one token.
fn least(route: Route) -> Value {
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    match route {
        Route::Chat => json!({ "messages": messages, "max_tokens": 1 }),
        Route::Completions => json!({ "prompt": "Hi", "max_tokens": 1 }),
        Route::Messages => json!({ "messages": messages, "max_tokens": 1 }),
        Route::Responses => json!({ "input": "Hi", "max_output_tokens": 1 }),
    }
}

fn schema() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// A value of an honoured field that it takes on every route that has the field.
fn sample(route: Route, name: &str) -> Value {
    match name {
        "model" => json!("another"),
        "messages" | "input" | "prompt" => least(route)[name].clone(),
        "instructions" | "system" => json!("Be brief."),
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" => json!(2),
        "temperature" | "top_p" | "min_p" => json!(0.5),
        "top_k" => json!(3),
        "seed" => json!(u64::MAX),
        "stop" => json!("x"),
        "stop_sequences" => json!(["x", "y"]),
        "stream" | "think" | "enable_thinking" => json!(true),
        "stream_options" => json!({ "include_usage": true }),
        "logprobs" if route == Route::Completions => json!(2),
        "logprobs" => json!(true),
        "top_logprobs" => json!(0),
        "response_format" => json!({ "type": "json_object" }),
        "text" => json!({ "format": { "type": "text" } }),
        "output_config" => json!({ "effort": "low" }),
        "tools" => json!([members_sample(route, "tools[]", "name")]),
        "tool_choice" => json!({ "type": "none" }),
        "thinking" => json!({ "type": "disabled" }),
        "reasoning_effort" => json!("low"),
        "reasoning" => json!({ "effort": "low" }),
        "chat_template_kwargs" => json!({ "thinking": false }),
        _ => panic!("no sample of `{name}`: a new row needs one"),
    }
}

/// An object that is taken at `path`, with the honoured member `name`.
fn members_sample(route: Route, path: &str, name: &str) -> Value {
    match (path, name) {
        ("messages[]", "tool_calls" | "reasoning_content" | "reasoning") => {
            let thought = match name {
                "reasoning" => "reasoning",
                _ => "reasoning_content",
            };
            json!({ "role": "assistant", "content": "", thought: "Hm.", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] })
        }
        ("messages[]", "tool_call_id") => {
            json!({ "role": "tool", "tool_call_id": "a", "content": "x" })
        }
        ("messages[]", _) => json!({ "role": "user", "content": "Hi" }),
        ("messages[].content[]", "thinking") => json!({ "type": "thinking", "thinking": "Hm." }),
        ("messages[].content[]", "id" | "name" | "input") => {
            json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} })
        }
        ("messages[].content[]", "tool_use_id" | "content" | "is_error") => {
            json!({ "type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": true })
        }
        ("messages[].content[]" | "system[]", _) => json!({ "type": "text", "text": "Hi" }),
        ("stream_options", _) => json!({ "include_usage": true }),
        ("response_format", _) => {
            json!({ "type": "json_schema", "json_schema": { "schema": schema() } })
        }
        ("response_format.json_schema", _) => json!({ "schema": schema() }),
        ("text", _) => json!({ "format": { "type": "text" }, "verbosity": "medium" }),
        ("text.format" | "output_config.format", _) => {
            json!({ "type": "json_schema", "schema": schema() })
        }
        ("output_config", _) => json!({
            "effort": "low", "format": { "type": "json_schema", "schema": schema() },
        }),
        ("reasoning", _) => json!({ "effort": "low", "summary": "auto" }),
        ("thinking", _) => json!({ "type": "disabled" }),
        ("tool_choice", _) => json!({ "type": "auto" }),
        ("tools[]", _) => match route {
            Route::Chat => json!({ "type": "function", "function": { "name": "f" } }),
            Route::Messages => json!({
                "type": "custom", "name": "f", "description": "d", "input_schema": { "type": "object" },
            }),
            _ => json!({
                "type": "function", "name": "f", "description": "d", "parameters": { "type": "object" },
            }),
        },
        ("tools[].function", _) => {
            json!({ "name": "f", "description": "d", "parameters": { "type": "object" } })
        }
        _ => panic!("no sample of `{path}` with `{name}`: a new row needs one"),
    }
}

fn right(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!("x"),
        Kind::Flag => json!(true),
        Kind::Integer => json!(7),
        Kind::List => json!([]),
        Kind::Object => json!({}),
        Kind::Switch => json!(false),
    }
}

fn wrong(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::List | Kind::Object | Kind::Switch => json!(5),
        Kind::Flag | Kind::Integer => json!("x"),
    }
}

/// The request with `object` at `path`, within what must be around it; and the path with places instead of `[]`.
fn placed(route: Route, path: &str, object: Value) -> (Value, String) {
    let mut body = least(route);
    let (mut inner, mut path_left) = (object, path.to_owned());
    loop {
        let (outer, last) = match path_left.rsplit_once('.') {
            Some((outer, last)) => (Some(outer.to_owned()), last.to_owned()),
            None => (None, path_left.clone()),
        };
        let name = last.trim_end_matches("[]");
        let value = if last.ends_with("[]") {
            json!([inner])
        } else {
            inner
        };
        let Some(outer) = outer else {
            body[name] = value;
            break;
        };
        inner = members_sample(route, &outer, name);
        // Blocks that only an assistant may send.
        if name == "content" && matches!(value[0]["type"].as_str(), Some("thinking" | "tool_use")) {
            inner["role"] = json!("assistant");
        }
        inner[name] = value;
        path_left = outer;
    }
    // Nothing may end in calls or in a beginning that is empty.
    if path.starts_with("messages[]") && body["messages"][0]["role"] == "assistant" {
        let result = match route {
            Route::Messages => json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "x" } ] }),
            _ => json!({ "role": "tool", "tool_call_id": "a", "content": "x" }),
        };
        if let Some(list) = body["messages"].as_array_mut() {
            list.push(result);
        }
    }
    (body, path.replace("[]", "[0]"))
}

struct Asker {
    agent: ureq::Agent,
    url: String,
    failures: Vec<String>,
    asked: usize,
}

impl Asker {
    fn post(&mut self, route: Route, body: &Value) -> (u16, String) {
        self.asked += 1;
        let mut reply = self
            .agent
            .post(format!("{}{}", self.url, path(route)))
            .header("content-type", "application/json")
            .send(body.to_string())
            .unwrap();
        let text = reply.body_mut().read_to_string().unwrap();
        (reply.status().as_u16(), text)
    }

    fn taken(&mut self, route: Route, what: &str, body: &Value) {
        let (status, text) = self.post(route, body);
        if status != 200 {
            self.failures
                .push(format!("{route:?} {what}: {status} {text} for {body}"));
        }
    }

    /// Refused, and blamed on `param` or on a part of it. Anthropic's errors have no such member, but its name in the words.
    fn refused(&mut self, route: Route, param: &str, body: &Value) {
        let (status, text) = self.post(route, body);
        let error = serde_json::from_str::<Value>(&text).unwrap_or_default()["error"].clone();
        let message = error["message"].as_str().unwrap_or_default();
        let named = match route {
            Route::Messages => message.contains(&format!("`{param}")),
            _ => error["param"]
                .as_str()
                .is_some_and(|p| p.starts_with(param)),
        };
        if status != 400 || !named {
            self.failures.push(format!(
                "{route:?} {param} is not refused: {status} {text} for {body}"
            ));
        }
    }
}

fn walk_fields(asker: &mut Asker, route: Route) {
    for field in FIELDS.iter().filter(|f| f.routes.contains(&route)) {
        let with = |value: Value| {
            let mut body = least(route);
            body[field.name] = value;
            body
        };
        asker.taken(route, field.name, &with(Value::Null).with_prompt(route));
        match field.used {
            Use::Honoured => {
                let value = sample(route, field.name);
                asker.taken(route, field.name, &with(value));
                asker.refused(route, field.name, &with(json!({ "no": [7.5] })));
            }
            Use::NoOp(kind) => {
                let right = match field.name {
                    "thinking" => json!({ "type": "disabled" }),
                    _ => right(kind),
                };
                asker.taken(route, field.name, &with(right));
                asker.refused(route, field.name, &with(wrong(kind)));
            }
            Use::Only(values) => {
                for value in values {
                    asker.taken(
                        route,
                        field.name,
                        &with(serde_json::from_str(value).unwrap()),
                    );
                }
                asker.refused(route, field.name, &with(json!("something else")));
            }
            Use::Refused => asker.refused(route, field.name, &with(json!({}))),
        }
    }
    let mut body = least(route);
    body["no_such_field"] = json!(1);
    asker.refused(route, "no_such_field", &body);
}

trait WithPrompt {
    fn with_prompt(self, route: Route) -> Self;
}

impl WithPrompt for Value {
    /// With what no request goes without, where it was made `null`.
    fn with_prompt(mut self, route: Route) -> Self {
        for name in [
            "messages",
            "prompt",
            "input",
            "max_tokens",
            "max_output_tokens",
        ] {
            if self.get(name).is_some_and(Value::is_null) {
                self[name] = least(route)[name].clone();
            }
        }
        self
    }
}

fn walk_members(asker: &mut Asker, route: Route, members: &Members) {
    let first = members.path.split('.').next().unwrap_or_default();
    let field = first.trim_end_matches("[]");
    // A row for all routes is about those that have the field.
    let has = |f: &super::fields::Field| f.name == field && f.routes.contains(&route);
    if !FIELDS.iter().any(has) {
        return;
    }
    let honoured: BTreeSet<&str> = members.honoured.iter().copied().collect();
    for name in &honoured {
        let object = members_sample(route, members.path, name);
        let what = format!("{}.{name}", members.path);
        assert!(object.get(name).is_some(), "the sample has no {what}");
        asker.taken(route, &what, &placed(route, members.path, object).0);
    }
    let plain = || members_sample(route, members.path, members.honoured[0]);
    for &(name, kind) in members.unused {
        let with = |value| {
            let mut object = plain();
            object[name] = value;
            placed(route, members.path, object)
        };
        let (body, at) = with(right(kind));
        asker.taken(route, &format!("{at}.{name}"), &body);
        let (body, at) = with(wrong(kind));
        asker.refused(route, &format!("{at}.{name}"), &body);
    }
    let mut object = plain();
    object["no_such_member"] = json!(1);
    let (body, at) = placed(route, members.path, object);
    asker.refused(route, &format!("{at}.no_such_member"), &body);
}

#[test]
fn every_row_is_what_happens() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = super::http::router(super::state::demo());
    let limit = Limit {
        most: 8,
        open: Gauge::default(),
    };
    runtime.spawn(connections::serve(
        listener,
        router,
        limit,
        std::future::pending(),
    ));
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let mut asker = Asker {
        agent: config.build().into(),
        url,
        failures: Vec::new(),
        asked: 0,
    };
    for route in ROUTES {
        walk_fields(&mut asker, route);
        for members in MEMBERS.iter().filter(|m| m.routes.contains(&route)) {
            walk_members(&mut asker, route, members);
        }
    }
    runtime.shutdown_background();
    assert!(asker.asked > 300, "{} requests", asker.asked);
    let failures = asker.failures.join("\n");
    assert!(failures.is_empty(), "{failures}");
}
