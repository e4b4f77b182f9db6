//! `/v1/responses`, OpenAI's newer API, without what a server would have to keep: conversations come whole.

mod input;
mod write;

use axum::response::Response;
use ds4_model::Message;
use ds4_model::grammar::Grammar;
use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::{self, Route};
use super::params::{self, Body, get, typed};
use super::reply::{Calls, respond};
use super::state::{Ask, Shared};

/// Answer a request.
pub(crate) async fn handle(app: &Shared, body: &Body) -> Result<Response, ApiError> {
    fields::check(Route::Responses, body)?;
    let model = params::model(body, app)?;
    let tools = params::tools(body, |tool| match tool["type"].as_str() {
        Some("function") => Ok(params::flat_function(tool, "parameters")),
        Some(kind) => Err(format!("`type` is {kind}, expected function")),
        None => Err("expected `type`: function".to_owned()),
    })?;
    let mut messages = input::messages(body)?;
    let grammar = text_format(app, body, &mut messages)?;
    params::one_grammar(&tools, grammar.is_some(), "text.format")?;
    let ask = Ask {
        messages,
        tools,
        render: params::thinking(body, app, &model)?,
        sampler: params::sampler(body, app)?,
        limit: params::limit(body, &["max_output_tokens", "max_tokens"], app)?,
        stops: Vec::new(),
        logprobs: None,
        grammar,
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
    let summary = typed::<Body>(body, "reasoning")?.is_some_and(|r| get(&r, "summary").is_some());
    let (updates, _) = app.ask(ask).await?;
    let writer = write::Responses::new(app, echo, Calls::new(app, "call_"), summary);
    Ok(respond(updates, writer, stream).await)
}

fn text_format(
    app: &Shared,
    body: &Body,
    messages: &mut Vec<Message>,
) -> Result<Option<Grammar>, ApiError> {
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
        Some("json_object") => app.grammar(None, "text.format").map(Some),
        Some("json_schema") => {
            let field = "text.format.schema";
            let grammar = app.grammar(Some(&format["schema"]), field)?;
            super::chat::tell_schema(messages, &format["schema"], field)?;
            Ok(Some(grammar))
        }
        _ => Err(ApiError::invalid(
            "text.format",
            "`text.format` needs a `type`: text, json_object or json_schema",
        )),
    }
}
