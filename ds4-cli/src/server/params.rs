//! Fields that several routes share, read from JSON with the field's name in every error.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use ds4_model::chat::{Effort, RenderOptions, ThinkMode, Tool};
use ds4_model::{Sampler, Token};

use super::error::ApiError;
use super::state::App;

pub(crate) type Body = Map<String, Value>;

/// Names of models that mean: answer at once.
const CHAT_NAMES: [&str; 5] = [
    "deepseek-chat",
    "glm-5.2-chat",
    "glm-5.2-no-think",
    "glm-5.2-nothink",
    "zai/glm-5.2-chat",
];
/// Names of models that mean: think first.
const THINKING_NAMES: [&str; 3] = [
    "deepseek-reasoner",
    "glm-5.2-reasoner",
    "zai/glm-5.2-reasoner",
];

/// The model's name as the client has it, for the answer. There is one model, whatever it is called.
pub(crate) fn model(body: &Body, app: &App) -> Result<String, ApiError> {
    Ok(typed(body, "model")?.unwrap_or_else(|| app.model.clone()))
}

/// Token ids below `bound`.
pub(crate) fn tokens(list: &[Value], bound: usize, name: &str) -> Result<Vec<Token>, ApiError> {
    let token = |(i, value): (usize, &Value)| {
        let id = value.as_u64().filter(|&id| id < bound as u64);
        id.map(|id| id as Token).ok_or_else(|| {
            ApiError::invalid(
                name,
                format!("`{name}[{i}]` is {value}, expected a token id below {bound}"),
            )
        })
    };
    list.iter().enumerate().map(token).collect()
}

/// A grammar leaves no room for calls: it is one or the other.
pub(crate) fn one_grammar(tools: &[Tool], grammar: bool, field: &str) -> Result<(), ApiError> {
    if grammar && !tools.is_empty() {
        return Err(ApiError::Unsupported {
            param: field.to_owned(),
            why: " together with tools (send `tool_choice`: none for an answer of that form)"
                .to_owned(),
        });
    }
    Ok(())
}

/// The member `name`, unless it is missing or null.
pub(crate) fn get<'b>(body: &'b Body, name: &str) -> Option<&'b Value> {
    body.get(name).filter(|v| !v.is_null())
}

/// The member `name` as a `T`.
pub(crate) fn typed<T: DeserializeOwned>(body: &Body, name: &str) -> Result<Option<T>, ApiError> {
    get(body, name)
        .map(|value| {
            T::deserialize(value).map_err(|e| ApiError::invalid(name, format!("`{name}`: {e}")))
        })
        .transpose()
}

/// The list `name`, taken out of the body, so that nothing of it is copied.
pub(crate) fn take_list(body: &mut Body, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
    match take(body.get_mut(name)) {
        Value::Null => Ok(None),
        Value::Array(list) => Ok(Some(list)),
        _ => {
            let what = format!("`{name}`: expected a list");
            Err(ApiError::invalid(name, what))
        }
    }
}

/// The value, which is `null` from then on; a missing one is too.
pub(crate) fn take(value: Option<&mut Value>) -> Value {
    value.map(Value::take).unwrap_or_default()
}

/// The member `inner` of the object `outer` as a `T`.
pub(crate) fn nested<T: DeserializeOwned>(
    body: &Body,
    outer: &str,
    inner: &str,
) -> Result<Option<T>, ApiError> {
    let Some(object) = get(body, outer) else {
        return Ok(None);
    };
    let invalid = |name: &str, what: String| ApiError::invalid(name, format!("`{name}`: {what}"));
    let object = object
        .as_object()
        .ok_or_else(|| invalid(outer, "expected an object".to_owned()))?;
    get(object, inner)
        .map(|value| T::deserialize(value))
        .transpose()
        .map_err(|e| invalid(&format!("{outer}.{inner}"), e.to_string()))
}

fn number(body: &Body, name: &str, least: f64, most: f64) -> Result<Option<f32>, ApiError> {
    let Some(value) = get(body, name) else {
        return Ok(None);
    };
    match value.as_f64() {
        Some(n) if (least..=most).contains(&n) => Ok(Some(n as f32)),
        _ => Err(ApiError::invalid(
            name,
            format!("`{name}` is {value}, expected a number from {least} to {most}"),
        )),
    }
}

/// How tokens are drawn.
pub(crate) fn sampler(body: &Body, app: &App) -> Result<Sampler, ApiError> {
    let seed = match get(body, "seed") {
        // All 64 bits count, with a sign or without.
        Some(seed) => (seed.as_u64().or_else(|| seed.as_i64().map(|s| s as u64)))
            .ok_or_else(|| ApiError::invalid("seed", "`seed`: expected an integer of 64 bits"))?,
        None => app.random(),
    };
    let mut sampler = Sampler::seeded(seed);
    sampler.vocab_len = app.engine.tokenizer().vocab_len();
    sampler.temperature =
        number(body, "temperature", 0.0, 100.0)?.unwrap_or(app.args.default_temperature);
    sampler.top_p = number(body, "top_p", 0.0, 1.0)?.unwrap_or(1.0);
    sampler.min_p = number(body, "min_p", 0.0, 1.0)?.unwrap_or(0.05);
    sampler.top_k = typed::<usize>(body, "top_k")?.unwrap_or(0);
    Ok(sampler)
}

/// Most tokens of the answer, by the first of `names` that is there.
pub(crate) fn limit(body: &Body, names: &[&str], app: &App) -> Result<usize, ApiError> {
    let mut limit = None;
    // All are read, so that a wrong one is an error beside a right one too.
    for name in names {
        let most = typed::<usize>(body, name)?;
        if most == Some(0) {
            let what = format!("`{name}` is 0, expected at least 1");
            return Err(ApiError::invalid(name, what));
        }
        limit = limit.or(most);
    }
    Ok(limit.unwrap_or(app.args.tokens))
}

/// Strings that end the answer.
pub(crate) fn stops(body: &Body, name: &str) -> Result<Vec<String>, ApiError> {
    const MOST: usize = 16;
    let strings = match get(body, name) {
        Some(Value::String(one)) => vec![one.clone()],
        _ => typed::<Vec<String>>(body, name)?.unwrap_or_default(),
    };
    if strings.len() > MOST {
        return Err(ApiError::invalid(
            name,
            format!(
                "`{name}` has {} strings, at most {MOST} are taken",
                strings.len()
            ),
        ));
    }
    Ok(strings)
}

/// Whether an answer is streamed.
pub(crate) fn stream(body: &Body) -> Result<bool, ApiError> {
    Ok(typed(body, "stream")?.unwrap_or(false))
}

/// Whether a stream ends with the usage.
pub(crate) fn include_usage(body: &Body) -> Result<bool, ApiError> {
    Ok(nested(body, "stream_options", "include_usage")?.unwrap_or(false))
}

/// Thinking and its effort, from all the ways to say it.
///
/// A switch decides: the first of `thinking`, `chat_template_kwargs`, `enable_thinking` and `think`, the model's name and
/// `--nothink` that is there. Only where there is none, the effort does: `none` is off, any other on.
pub(crate) fn thinking(body: &Body, app: &App, model: &str) -> Result<RenderOptions, ApiError> {
    let switch = switch(body)?
        .or_else(|| CHAT_NAMES.contains(&model).then_some(false))
        .or_else(|| THINKING_NAMES.contains(&model).then_some(true))
        .or_else(|| app.args.nothink.then_some(false));
    let effort = effort(body)?;
    let on = switch.unwrap_or(effort != Some(Effort::None));
    Ok(RenderOptions {
        think: if on { ThinkMode::On } else { ThinkMode::Off },
        // Where a switch says on, there is no such thing as no effort.
        effort: effort.filter(|&e| !on || e != Effort::None),
        ..RenderOptions::default()
    })
}

/// What the request says outright about thinking.
fn switch(body: &Body) -> Result<Option<bool>, ApiError> {
    let kwargs: Body = typed(body, "chat_template_kwargs")?.unwrap_or_default();
    let known = ["thinking", "enable_thinking", "reasoning_effort"];
    if let Some(name) = kwargs.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(ApiError::Unsupported {
            param: format!("chat_template_kwargs.{name}"),
            why: String::new(),
        });
    }
    let thinking = match get(body, "thinking") {
        None => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(value) => match value["type"].as_str() {
            Some("enabled" | "adaptive") => Some(true),
            Some("disabled") => Some(false),
            _ => {
                return Err(ApiError::invalid(
                    "thinking",
                    "`thinking` needs a `type`: enabled, adaptive or disabled",
                ));
            }
        },
    };
    // All are read, so that a wrong one is an error beside a right one too.
    let all = [
        thinking,
        nested(body, "chat_template_kwargs", "thinking")?,
        nested(body, "chat_template_kwargs", "enable_thinking")?,
        typed(body, "enable_thinking")?,
        typed(body, "think")?,
    ];
    Ok(all.into_iter().flatten().next())
}

fn effort(body: &Body) -> Result<Option<Effort>, ApiError> {
    let all = [
        nested(body, "output_config", "effort")?,
        nested(body, "reasoning", "effort")?,
        typed(body, "reasoning_effort")?,
        nested(body, "chat_template_kwargs", "reasoning_effort")?,
    ];
    Ok(all.into_iter().flatten().next())
}

/// The declared tools and whether the model may call them; `function` finds a declaration in an element of the list.
pub(crate) fn tools(
    body: &Body,
    function: impl Fn(&Value) -> Result<Value, String>,
) -> Result<Vec<Tool>, ApiError> {
    let none = match get(body, "tool_choice") {
        None => false,
        Some(choice) => {
            let word = choice.as_str().or_else(|| choice["type"].as_str());
            match word {
                Some("auto") => false,
                Some("none") => true,
                _ => {
                    return Err(ApiError::Unsupported {
                        param: "tool_choice".to_owned(),
                        why: " other than auto and none".to_owned(),
                    });
                }
            }
        }
    };
    let list = match get(body, "tools") {
        None => &[][..],
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::invalid("tools", "`tools`: expected a list")),
    };
    let tools = list
        .iter()
        .enumerate()
        .map(|(i, tool)| {
            let wrong =
                |e: String| ApiError::invalid(&format!("tools[{i}]"), format!("`tools[{i}]`: {e}"));
            let function = function(tool).map_err(wrong)?;
            Tool::new(&function.to_string()).map_err(|e| wrong(e.to_string()))
        })
        .collect::<Result<Vec<Tool>, _>>()?;
    Ok(if none { Vec::new() } else { tools })
}

/// A tool as Anthropic and the Responses API declare it, as a function object.
pub(crate) fn flat_function(tool: &Value, schema: &str) -> Value {
    let mut function = json!({ "name": tool["name"] });
    if let Some(text) = tool["description"].as_str() {
        function["description"] = json!(text);
    }
    if !tool[schema].is_null() {
        function["parameters"] = tool[schema].clone();
    }
    function
}
