//! `/v1/responses`, OpenAI's newer API, without what a server would have to keep: conversations come whole.

mod input;
mod write;

use ds4_model::Message;
use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::{self, Route};
use super::params::{self, Body, get, typed};
use super::reply::Calls;
use super::state::{Ask, Form, Ready, Shared};
use write::Responses;

/// Read a request.
pub(crate) fn ready(app: &Shared, mut body: Body) -> Result<Ready<Responses>, ApiError> {
    let body = &mut body;
    fields::check(Route::Responses, body)?;
    let model = params::model(body, app)?;
    let tools = params::tools(body, |tool| match tool["type"].as_str() {
        Some("function") => Ok(params::flat_function(tool, "parameters")),
        Some(kind) => Err(format!("`type` is {kind}, expected function")),
        None => Err("expected `type`: function".to_owned()),
    })?;
    let mut messages = input::messages(body)?;
    let form = text_format(body, &mut messages)?;
    params::one_grammar(&tools, form.is_some(), "text.format")?;
    let ask = Ask {
        messages,
        tools,
        render: params::thinking(body, app, &model)?,
        sampler: params::sampler(body, app)?,
        limit: params::limit(body, &["max_output_tokens", "max_tokens"], app)?,
        stops: Vec::new(),
        logprobs: None,
        form,
        field: "input",
    };
    let stream = params::stream(body)?;
    let echo = json!({
        "id": app.id("resp_"),
        "object": "response",
        "created_at": super::state::now(),
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": body.get("instructions").cloned().unwrap_or_default(),
        "max_output_tokens": body.get("max_output_tokens").cloned().unwrap_or_default(),
        "metadata": get(body, "metadata").cloned().unwrap_or_else(|| json!({})),
        "model": model,
        "output": [],
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": get(body, "reasoning").cloned().unwrap_or_else(|| json!({ "effort": null, "summary": null })),
        "store": false,
        "temperature": ask.sampler.temperature,
        "text": get(body, "text").cloned().unwrap_or_else(|| json!({ "format": { "type": "text" } })),
        "tool_choice": get(body, "tool_choice").cloned().unwrap_or_else(|| json!("auto")),
        "tools": get(body, "tools").cloned().unwrap_or_else(|| json!([])),
        "top_p": ask.sampler.top_p,
        "truncation": "disabled",
        "usage": null,
    });
    let summary = params::nested::<Value>(body, "reasoning", "summary")?.is_some();
    let field = ask.field;
    Ok(Ready {
        request: app.request(ask)?,
        dialect: Responses::new(app, echo, Calls::new(app, "call_"), summary),
        stream,
        field,
    })
}

fn text_format(body: &Body, messages: &mut Vec<Message>) -> Result<Option<Form>, ApiError> {
    let Some(text) = typed::<Body>(body, "text")? else {
        return Ok(None);
    };
    if let Some(verbosity) = get(&text, "verbosity").filter(|v| **v != "medium") {
        return Err(ApiError::Unsupported {
            param: "text.verbosity".to_owned(),
            why: format!(" other than \"medium\", found {verbosity}"),
        });
    }
    let format = get(&text, "format").cloned().unwrap_or(Value::Null);
    match format["type"].as_str() {
        _ if format.is_null() => Ok(None),
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Form {
            schema: None,
            field: "text.format",
        })),
        Some("json_schema") => {
            let field = "text.format.schema";
            super::chat::by_schema(messages, &format["schema"], field).map(Some)
        }
        _ => Err(ApiError::invalid(
            "text.format",
            "`text.format` needs a `type`: text, json_object or json_schema",
        )),
    }
}
