//! The fields of requests: one table that decides what each does. Parsing goes by it, and so does the list in
//! `ds4-cli/README.md`.

use serde_json::{Map, Value};

use super::error::ApiError;
use super::kind::Kind;

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
    /// It is taken, if it is of its kind, and changes nothing, because there is nothing to change.
    NoOp(Kind),
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

use Kind::{Flag, Integer, List, Object, Switch, Text};
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
    field("stream_options", R, NoOp(Object)),
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
    // A text that goes on has no turn in which to think.
    field("thinking", T, NoOp(Switch)),
    field("think", T, NoOp(Flag)),
    field("enable_thinking", T, NoOp(Flag)),
    field("reasoning_effort", T, NoOp(Text)),
    field("chat_template_kwargs", T, NoOp(Object)),
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
    field("metadata", ALL, NoOp(Object)),
    field(
        "user",
        &[Route::Chat, Route::Completions, Route::Responses],
        NoOp(Text),
    ),
    field("safety_identifier", CR, NoOp(Text)),
    field("prompt_cache_key", CR, NoOp(Text)),
    field("prompt_cache_retention", CR, NoOp(Text)),
    field("prompt_cache_options", CR, NoOp(Object)),
    field("cache_control", M, NoOp(Object)),
    field("inference_geo", M, NoOp(Text)),
    field("user_profile_id", M, NoOp(Text)),
    field("workspace_id", M, NoOp(Text)),
    field("speed", M, Only(&["\"standard\""])),
    field("service_tier", ALL, NoOp(Text)),
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

/// The members of one object in a request. Others are refused.
pub(crate) struct Members {
    /// Where it is; `[]` is every element of a list.
    pub(crate) path: &'static str,
    pub(crate) routes: &'static [Route],
    pub(crate) honoured: &'static [&'static str],
    /// Taken, if of their kind, and changing nothing.
    pub(crate) unused: &'static [(&'static str, Kind)],
}

const fn members(
    path: &'static str,
    routes: &'static [Route],
    honoured: &'static [&'static str],
    unused: &'static [(&'static str, Kind)],
) -> Members {
    Members {
        path,
        routes,
        honoured,
        unused,
    }
}

pub(crate) const MEMBERS: &[Members] = &[
    members(
        "messages[]",
        C,
        &[
            "role",
            "content",
            "reasoning_content",
            "reasoning",
            "tool_calls",
            "tool_call_id",
        ],
        &[("name", Text), ("refusal", Text), ("annotations", List)],
    ),
    members("messages[]", M, &["role", "content"], &[]),
    members(
        "messages[].content[]",
        M,
        &[
            "type",
            "text",
            "thinking",
            "id",
            "name",
            "input",
            "tool_use_id",
            "content",
            "is_error",
        ],
        &[
            ("signature", Text),
            ("data", Text),
            ("citations", List),
            ("cache_control", Object),
            ("caller", Object),
        ],
    ),
    members(
        "system[]",
        M,
        &["type", "text"],
        &[("citations", List), ("cache_control", Object)],
    ),
    members(
        "stream_options",
        ALL,
        &["include_usage"],
        &[("include_obfuscation", Flag)],
    ),
    members("response_format", C, &["type", "json_schema"], &[]),
    members(
        "response_format.json_schema",
        C,
        &["schema"],
        &[("name", Text), ("description", Text), ("strict", Flag)],
    ),
    members("text", R, &["format", "verbosity"], &[]),
    members(
        "text.format",
        R,
        &["type", "schema"],
        &[("name", Text), ("description", Text), ("strict", Flag)],
    ),
    members("output_config", M, &["effort", "format"], &[]),
    members(
        "output_config.format",
        M,
        &["type", "schema"],
        &[("name", Text)],
    ),
    members("reasoning", R, &["effort", "summary"], &[]),
    members(
        "thinking",
        ALL,
        &["type"],
        &[("budget_tokens", Integer), ("display", Text)],
    ),
    members("tool_choice", CHATS, &["type"], &[]),
    members("tools[]", C, &["type", "function"], &[]),
    members(
        "tools[].function",
        C,
        &["name", "description", "parameters"],
        &[("strict", Flag)],
    ),
    members(
        "tools[]",
        M,
        &["type", "name", "description", "input_schema"],
        &[("strict", Flag), ("cache_control", Object)],
    ),
    members(
        "tools[]",
        R,
        &["type", "name", "description", "parameters"],
        &[("strict", Flag)],
    ),
];

impl Members {
    /// Refuse what is not in the lists, in every object that `path` leads to from `value`, which is at `at`.
    fn check(&self, value: &Value, path: &[&str], at: &str) -> Result<(), ApiError> {
        let Some((step, rest)) = path.split_first() else {
            let Value::Object(object) = value else {
                return Ok(());
            };
            let there = object.iter().filter(|(_, value)| !value.is_null());
            for (name, value) in there.filter(|(n, _)| !self.honoured.contains(&n.as_str())) {
                let path = format!("{at}.{name}");
                match self.unused.iter().find(|(unused, _)| unused == name) {
                    Some((_, kind)) => kind.check(value, &path)?,
                    None => {
                        return Err(ApiError::Unsupported {
                            param: path,
                            why: String::new(),
                        });
                    }
                }
            }
            return Ok(());
        };
        let name = step.trim_end_matches("[]");
        let Some(value) = value.get(name) else {
            return Ok(());
        };
        let at = match at {
            "" => name.to_owned(),
            _ => format!("{at}.{name}"),
        };
        match value {
            Value::Array(list) if step.ends_with("[]") => list
                .iter()
                .enumerate()
                .try_for_each(|(i, element)| self.check(element, rest, &format!("{at}[{i}]"))),
            other => self.check(other, rest, &at),
        }
    }
}

/// Refuse what the tables do not let through.
pub(crate) fn check(route: Route, body: &Map<String, Value>) -> Result<(), ApiError> {
    check_fields(route, body)?;
    for members in MEMBERS.iter().filter(|m| m.routes.contains(&route)) {
        let path: Vec<&str> = members.path.split('.').collect();
        // The first step is taken here, so that the body need not become a value.
        let first = path[0].trim_end_matches("[]");
        let Some(value) = body.get(first) else {
            continue;
        };
        match value {
            Value::Array(list) if path[0].ends_with("[]") => {
                for (i, element) in list.iter().enumerate() {
                    members.check(element, &path[1..], &format!("{first}[{i}]"))?;
                }
            }
            other => members.check(other, &path[1..], first)?,
        }
    }
    Ok(())
}

fn check_fields(route: Route, body: &Map<String, Value>) -> Result<(), ApiError> {
    for (name, value) in body {
        if value.is_null() {
            continue;
        }
        let known = FIELDS
            .iter()
            .find(|f| f.name == name && f.routes.contains(&route));
        let why = match known.map(|f| f.used) {
            Some(Honoured) => continue,
            Some(NoOp(kind)) => {
                kind.check(value, name)?;
                continue;
            }
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

#[cfg(test)]
fn names(routes: &[Route]) -> String {
    let name = |r: &Route| match r {
        Route::Chat => "chat",
        Route::Completions => "completions",
        Route::Messages => "messages",
        Route::Responses => "responses",
    };
    routes.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The table of members as Markdown.
#[cfg(test)]
fn markdown_of_members() -> String {
    let mut out = String::from(
        "| object | routes | honoured members | members that change nothing |\n| --- | --- | --- | --- |\n",
    );
    let list = |names: &[&str]| match names {
        [] => String::new(),
        _ => format!("`{}`", names.join("`, `")),
    };
    for m in MEMBERS {
        let unused: Vec<&str> = m.unused.iter().map(|(name, _)| *name).collect();
        let (path, routes) = (m.path, names(m.routes));
        out += &format!(
            "| `{path}` | {routes} | {} | {} |\n",
            list(m.honoured),
            list(&unused)
        );
    }
    out
}

/// The table as Markdown.
#[cfg(test)]
fn markdown() -> String {
    let mut out = String::from("| field | routes | what becomes of it |\n| --- | --- | --- |\n");
    for field in FIELDS {
        let used = match field.used {
            Honoured => "honoured".to_owned(),
            NoOp(kind) => format!("{kind}, changes nothing"),
            Only(values) => format!("only `{}`, else 400", values.join("` or `")),
            Refused => "400".to_owned(),
        };
        out += &format!("| `{}` | {} | {used} |\n", field.name, names(field.routes));
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
    fn the_readme_lists_the_members() {
        let readme = include_str!("../../README.md");
        let table = markdown_of_members();
        assert!(readme.contains(&table), "put this into README.md:\n{table}");
    }

    #[test]
    fn members_that_are_not_known_are_named_with_their_path() {
        let refused = |route, body: Value| match check(route, body.as_object().unwrap()) {
            Err(ApiError::Unsupported { param, .. }) => param,
            other => panic!("{other:?}"),
        };
        let tool =
            |function: Value| json!({ "tools": [{ "type": "function", "function": function }] });
        for (route, body, param) in [
            (
                Route::Chat,
                json!({ "stream_options": { "x": 1 } }),
                "stream_options.x",
            ),
            (
                Route::Chat,
                tool(json!({ "name": "f", "x": 1 })),
                "tools[0].function.x",
            ),
            (
                Route::Chat,
                json!({ "messages": [{}, { "task": "title" }] }),
                "messages[1].task",
            ),
            (
                Route::Chat,
                json!({ "messages": [{ "tools": [] }] }),
                "messages[0].tools",
            ),
            (
                Route::Messages,
                json!({ "thinking": { "x": 1 } }),
                "thinking.x",
            ),
            (
                Route::Messages,
                json!({ "tool_choice": { "type": "auto", "disable_parallel_tool_use": true } }),
                "tool_choice.disable_parallel_tool_use",
            ),
            (
                Route::Responses,
                json!({ "text": { "format": { "x": 1 } } }),
                "text.format.x",
            ),
        ] {
            assert_eq!(refused(route, body), param);
        }
        let fine = json!({ "thinking": true, "tool_choice": "auto", "messages": [{ "role": "user", "name": "a" }],
            "tools": [{ "type": "function", "function": { "name": "f", "strict": true } }], "stream_options": null });
        check(Route::Chat, fine.as_object().unwrap()).unwrap();
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
