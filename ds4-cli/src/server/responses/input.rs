//! Items of a request → messages.

use ds4_model::Message;
use ds4_model::chat::{Role, ToolCall};
use serde_json::Value;

use crate::server::error::ApiError;
use crate::server::params::{Body, take, typed};

/// The conversation: `instructions`, then `input`.
pub(super) fn messages(body: &mut Body) -> Result<Vec<Message>, ApiError> {
    let mut out = Vec::new();
    if let Some(instructions) = typed::<String>(body, "instructions")? {
        out.push(Message::system(instructions));
    }
    match take(body.get_mut("input")) {
        Value::String(text) => out.push(Message::user(text)),
        Value::Array(items) if !items.is_empty() => {
            let mut turn = Turn::default();
            for (i, item) in items.into_iter().enumerate() {
                add(item, &format!("input[{i}]"), &mut turn, &mut out)?;
            }
            turn.end(&mut out);
        }
        _ => {
            return Err(ApiError::invalid(
                "input",
                "missing input: expected text or a list of items",
            ));
        }
    }
    Ok(out)
}

/// Items of one turn of the model, which are one message here.
#[derive(Default)]
struct Turn(Option<Message>);

impl Turn {
    fn message(&mut self) -> &mut Message {
        self.0.get_or_insert_with(|| Message::assistant(""))
    }

    fn end(&mut self, out: &mut Vec<Message>) {
        out.extend(self.0.take());
    }
}

fn add(
    mut item: Value,
    field: &str,
    turn: &mut Turn,
    out: &mut Vec<Message>,
) -> Result<(), ApiError> {
    let invalid = |what: String| ApiError::invalid(field, format!("`{field}`: {what}"));
    if let Some(status) = item["status"].as_str().filter(|s| *s != "completed") {
        return Err(invalid(format!("`status` is {status}, expected completed")));
    }
    let string = |item: &Value, name: &str| {
        let value = item[name].as_str().map(str::to_owned);
        value.ok_or_else(|| invalid(format!("expected a text `{name}`")))
    };
    // Taken, so that it is not copied; with a shorter member it does not matter.
    let mut taken = |name: &str| take(item.get_mut(name));
    let (content, summary, output) = (taken("content"), taken("summary"), taken("output"));
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let said = text(content).map_err(invalid)?;
            let role = match item["role"].as_str() {
                Some("assistant") => {
                    let message = turn.message();
                    if !message.content.is_empty() {
                        message.content += "\n\n";
                    }
                    message.content += &said;
                    return Ok(());
                }
                Some("user") => Role::User,
                Some("system") => Role::System,
                Some("developer") => Role::Developer,
                _ => {
                    return Err(invalid(
                        "expected `role`: user, assistant, system or developer".to_owned(),
                    ));
                }
            };
            turn.end(out);
            out.push(Message::new(role, said));
        }
        "reasoning" => {
            // What was thought, or where only that is there, its summary.
            let mut thought = text(content).map_err(invalid)?;
            if thought.is_empty() {
                thought = text(summary).map_err(invalid)?;
            }
            turn.message()
                .reasoning
                .get_or_insert_default()
                .push_str(&thought);
        }
        "function_call" => {
            let arguments = string(&item, "arguments")?;
            if !serde_json::from_str::<Value>(&arguments).is_ok_and(|v| v.is_object()) {
                return Err(invalid("`arguments` is no JSON object".to_owned()));
            }
            let call = ToolCall {
                id: Some(string(&item, "call_id")?),
                name: string(&item, "name")?,
                arguments,
            };
            turn.message().tool_calls.push(call);
        }
        "function_call_output" => {
            turn.end(out);
            let output = text(output).map_err(invalid)?;
            out.push(Message::tool(string(&item, "call_id")?, output));
        }
        other => return Err(invalid(format!("an item of type {other} is not supported"))),
    }
    Ok(())
}

/// Text, or parts of text.
fn text(content: Value) -> Result<String, String> {
    const PARTS: [&str; 5] = [
        "input_text",
        "output_text",
        "text",
        "reasoning_text",
        "summary_text",
    ];
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        Value::Array(parts) => {
            let mut texts = Vec::with_capacity(parts.len());
            // That an answer was refused is in no text that the model could read.
            for mut part in parts.into_iter().filter(|part| part["type"] != "refusal") {
                let text = take(part.get_mut("text"));
                match (part["type"].as_str(), text) {
                    (Some(kind), Value::String(text)) if PARTS.contains(&kind) => texts.push(text),
                    (kind, _) => {
                        return Err(format!(
                            "content of type {} is not supported, only text is",
                            kind.unwrap_or("unknown")
                        ));
                    }
                }
            }
            Ok(match texts.len() {
                1 => texts.remove(0),
                _ => texts.join("\n\n"),
            })
        }
        _ => Err("expected text or a list of parts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Vec<Message>, ApiError> {
        messages(&mut body.as_object().unwrap().clone())
    }

    #[test]
    fn items_of_one_turn_are_one_message() {
        let read = read(json!({ "instructions": "s", "input": [
            { "role": "user", "content": "q" },
            { "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": "t" }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] },
            { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"x\": 1}" },
            { "type": "function_call_output", "call_id": "c", "output": "r" },
        ] }))
        .unwrap();
        let roles: Vec<Role> = read.iter().map(|m| m.role).collect();
        assert_eq!(
            roles,
            [Role::System, Role::User, Role::Assistant, Role::Tool]
        );
        let turn = &read[2];
        assert_eq!(turn.reasoning.as_deref(), Some("t"));
        assert_eq!((turn.content.as_str(), turn.tool_calls.len()), ("a", 1));
        assert_eq!(read[3], Message::tool("c", "r"));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (item, part) in [
            (json!({ "type": "computer_call" }), "computer_call"),
            (
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_image" }] }),
                "input_image",
            ),
            (
                json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "[]" }),
                "arguments",
            ),
            (
                json!({ "role": "user", "content": "x", "status": "in_progress" }),
                "in_progress",
            ),
            (json!({ "content": "x" }), "role"),
        ] {
            let error = read(json!({ "input": [item] })).unwrap_err().to_string();
            assert!(
                error.contains(part) && error.contains("input[0]"),
                "{error}"
            );
        }
        assert!(read(json!({})).is_err());
        assert!(read(json!({ "input": [] })).is_err());
    }
}
