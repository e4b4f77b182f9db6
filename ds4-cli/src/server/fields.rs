//! The fields of requests: one table that decides what each does. Parsing goes by it, and so does the list in
//! `ds4-cli/README.md`.

use serde_json::{Map, Value};

use super::error::ApiError;

/// A route that takes a model's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Chat,
    Completions,
    Messages,
    Responses,
}

/// What becomes of a field. A `null` is the same as no field everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It does what it says.
    Honoured,
    /// It is taken and changes nothing, because there is nothing to change.
    NoOp,
    /// Taken when it has one of these values (as JSON), which change nothing; refused otherwise.
    Only(&'static [&'static str]),
    /// Refused.
    Refused,
}

pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) routes: &'static [Route],
    pub(crate) used: Use,
}

const ALL: &[Route] = &[
    Route::Chat,
    Route::Completions,
    Route::Messages,
    Route::Responses,
];
const OPENAI: &[Route] = &[Route::Chat, Route::Completions];
const CHATS: &[Route] = &[Route::Chat, Route::Messages, Route::Responses];
const C: &[Route] = &[Route::Chat];
const T: &[Route] = &[Route::Completions];
const M: &[Route] = &[Route::Messages];
const R: &[Route] = &[Route::Responses];
const CR: &[Route] = &[Route::Chat, Route::Responses];

const fn field(name: &'static str, routes: &'static [Route], used: Use) -> Field {
    Field { name, routes, used }
}

use Use::{Honoured, NoOp, Only, Refused};

/// Everything that a request may hold; what is not here is refused like [`Use::Refused`].
pub(crate) const FIELDS: &[Field] = &[
    field("model", ALL, Honoured),
    field("messages", &[Route::Chat, Route::Messages], Honoured),
    field("prompt", T, Honoured),
    field("input", R, Honoured),
    field("instructions", R, Honoured),
    field("system", M, Honoured),
    field("max_tokens", ALL, Honoured),
    field("max_completion_tokens", C, Honoured),
    field("max_output_tokens", R, Honoured),
    field("temperature", ALL, Honoured),
    field("top_p", ALL, Honoured),
    field("top_k", ALL, Honoured),
    field("min_p", ALL, Honoured),
    field("seed", ALL, Honoured),
    field("stop", OPENAI, Honoured),
    field("stop_sequences", M, Honoured),
    field("stream", ALL, Honoured),
    field("stream_options", OPENAI, Honoured),
    field("stream_options", R, NoOp),
    field("logprobs", OPENAI, Honoured),
    field("top_logprobs", C, Honoured),
    field("top_logprobs", R, Only(&["0"])),
    field("response_format", C, Honoured),
    field("text", R, Honoured),
    field("output_config", M, Honoured),
    field("tools", CHATS, Honoured),
    field("tool_choice", CHATS, Honoured),
    field("thinking", &[Route::Chat, Route::Messages], Honoured),
    field("think", C, Honoured),
    field("enable_thinking", C, Honoured),
    field(
        "reasoning_effort",
        &[Route::Chat, Route::Messages],
        Honoured,
    ),
    field("reasoning", R, Honoured),
    field("chat_template_kwargs", C, Honoured),
    field("echo", T, Only(&["false"])),
    field("suffix", T, Only(&["\"\""])),
    field("best_of", T, Only(&["1"])),
    field("n", OPENAI, Only(&["1"])),
    field("presence_penalty", OPENAI, Only(&["0", "0.0"])),
    field("frequency_penalty", OPENAI, Only(&["0", "0.0"])),
    field("logit_bias", OPENAI, Only(&["{}"])),
    field("parallel_tool_calls", CR, Only(&["true"])),
    field("modalities", C, Only(&["[\"text\"]"])),
    field("verbosity", C, Only(&["\"medium\""])),
    field("background", R, Only(&["false"])),
    field("truncation", R, Only(&["\"disabled\""])),
    field(
        "include",
        R,
        Only(&["[]", "[\"reasoning.encrypted_content\"]"]),
    ),
    field("store", CR, Only(&["false"])),
    field("metadata", ALL, NoOp),
    field(
        "user",
        &[Route::Chat, Route::Completions, Route::Responses],
        NoOp,
    ),
    field("safety_identifier", CR, NoOp),
    field("prompt_cache_key", CR, NoOp),
    field("prompt_cache_retention", CR, NoOp),
    field("prompt_cache_options", CR, NoOp),
    field("cache_control", M, NoOp),
    field("inference_geo", M, NoOp),
    field("user_profile_id", M, NoOp),
    field("workspace_id", M, NoOp),
    field("speed", M, Only(&["\"standard\""])),
    field("service_tier", ALL, NoOp),
    field("functions", C, Refused),
    field("function_call", C, Refused),
    field("audio", C, Refused),
    field("prediction", C, Refused),
    field("web_search_options", C, Refused),
    field("previous_response_id", R, Refused),
    field("conversation", R, Refused),
    field("max_tool_calls", R, Refused),
    field("container", M, Refused),
    field("mcp_servers", M, Refused),
    field("context_management", M, Refused),
];

/// Refuse what the table does not let through.
pub(crate) fn check(route: Route, body: &Map<String, Value>) -> Result<(), ApiError> {
    for (name, value) in body {
        if value.is_null() {
            continue;
        }
        let known = FIELDS
            .iter()
            .find(|f| f.name == name && f.routes.contains(&route));
        let why = match known.map(|f| f.used) {
            Some(Honoured | NoOp) => continue,
            Some(Only(values)) if values.contains(&value.to_string().as_str()) => continue,
            Some(Only(values)) => format!(" other than {}", values.join(" or ")),
            Some(Refused) | None => String::new(),
        };
        return Err(ApiError::Unsupported {
            param: name.clone(),
            why,
        });
    }
    Ok(())
}

/// Names of the fields that do what they say on `route`.
pub(crate) fn honoured(route: Route) -> impl Iterator<Item = &'static str> {
    let used = move |f: &&Field| f.routes.contains(&route) && f.used == Honoured;
    FIELDS.iter().filter(used).map(|f| f.name)
}

/// The table as Markdown.
#[cfg(test)]
fn markdown() -> String {
    let route = |r: &Route| match r {
        Route::Chat => "chat",
        Route::Completions => "completions",
        Route::Messages => "messages",
        Route::Responses => "responses",
    };
    let mut out = String::from("| field | routes | what becomes of it |\n| --- | --- | --- |\n");
    for field in FIELDS {
        let routes: Vec<&str> = field.routes.iter().map(route).collect();
        let used = match field.used {
            Honoured => "honoured".to_owned(),
            NoOp => "accepted, changes nothing".to_owned(),
            Only(values) => format!("only `{}`, else 400", values.join("` or `")),
            Refused => "400".to_owned(),
        };
        out += &format!("| `{}` | {} | {used} |\n", field.name, routes.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_readme_lists_the_table() {
        let readme = include_str!("../../README.md");
        assert!(
            readme.contains(&markdown()),
            "put this into README.md:\n{}",
            markdown()
        );
    }

    #[test]
    fn a_field_has_one_row_a_route() {
        for (i, a) in FIELDS.iter().enumerate() {
            for b in &FIELDS[i + 1..] {
                let both = a.routes.iter().any(|r| b.routes.contains(r));
                assert!(a.name != b.name || !both, "{} twice", a.name);
            }
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let refused = |body: Value| match check(Route::Chat, body.as_object().unwrap()) {
            Err(ApiError::Unsupported { param, .. }) => Some(param),
            other => other.err().map(|e| e.to_string()),
        };
        assert_eq!(refused(json!({ "n": 2 })).as_deref(), Some("n"));
        assert_eq!(refused(json!({ "no_such": 1 })).as_deref(), Some("no_such"));
        assert_eq!(refused(json!({ "prompt": "x" })).as_deref(), Some("prompt"));
        assert_eq!(refused(json!({ "n": 1, "user": "x", "audio": null })), None);
    }
}
