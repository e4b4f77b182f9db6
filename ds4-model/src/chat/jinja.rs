//! Any other model: the file's own `tokenizer.chat_template`, evaluated as Hugging Face's `transformers` does.
//!
//! A template is text in, text out: it cannot say which of its markers it wrote itself. So every marker in a string that
//! goes in is broken by a character that no string of the conversation contains (a noncharacter, U+FDD0 and up); what is
//! whole in the result was written by the template, and the character is taken out again. What a template cannot be kept
//! from is building a marker out of two strings that have nothing between them.
//!
//! Work and memory are bounded by fuel; a template has no access to files, clock or environment.

use super::turns::Turns;
use super::{Conversation, Error, Message, RenderOptions, Role, ThinkMode, Tool, json};
use crate::error::with_causes;
use crate::tokenizer::{Segments, Tokenizer};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Environment, ErrorKind, context};
use std::sync::{Arc, OnceLock};

/// A compiled-once-per-use template and the vocabulary whose markers it writes.
#[derive(Clone, Debug)]
pub struct Template {
    source: Arc<str>,
    tokenizer: Tokenizer,
    /// Observed when it is first asked for.
    turns: Arc<OnceLock<Turns>>,
}

/// Instructions a render may take, besides one for each byte of the conversation; about 64 bytes of memory each.
const FUEL: u64 = 4_000_000;
/// JSON nested deeper is refused.
const MAX_DEPTH: usize = 128;

impl Template {
    /// Check `source`.
    ///
    /// # Errors
    /// [`Error::Template`] when it is no template.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<Self, Error> {
        environment(0).template_from_str(source).map_err(failed)?;
        Ok(Self {
            source: source.into(),
            tokenizer: tokenizer.clone(),
            turns: Arc::default(),
        })
    }

    /// Where it begins turns.
    pub(super) fn turns(&self) -> &Turns {
        let render = |contents: &[&str], thinks: bool| {
            let roles = [Message::user, Message::assistant];
            let messages = contents.iter().copied().zip(roles.iter().cycle());
            let messages: Vec<Message> = messages.map(|(text, role)| role(text)).collect();
            let think = if thinks {
                ThinkMode::On
            } else {
                ThinkMode::Off
            };
            let options = RenderOptions {
                think,
                ..RenderOptions::default()
            };
            // A template that refuses this has no marks.
            self.render(&messages.into(), &options).ok()
        };
        let observed = || Turns::observed(&self.tokenizer, &render);
        self.turns.get_or_init(observed)
    }

    pub(super) fn render(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
    ) -> Result<Segments, Error> {
        let guard = guard(conversation);
        let protect = |text: &str| self.protect(text, guard);
        let messages: Vec<Value> = conversation
            .messages
            .iter()
            .map(|m| message(m, &protect))
            .collect::<Result<_, _>>()?;
        let tools: Vec<Value> = conversation
            .tools
            .iter()
            .map(|t| tool(t, &protect))
            .collect::<Result<_, _>>()?;
        let marker =
            |token| String::from_utf8_lossy(self.tokenizer.token_bytes(token)).into_owned();
        let bytes: usize = conversation.messages.iter().map(|m| m.content.len()).sum();
        let text = environment(bytes)
            .template_from_str(&self.source)
            .and_then(|template| {
                template.render(context! {
                    messages => messages,
                    tools => (!tools.is_empty()).then_some(tools),
                    add_generation_prompt => options.generation_prompt,
                    bos_token => self.tokenizer.bos().map_or(String::new(), marker),
                    eos_token => marker(self.tokenizer.eos()),
                    enable_thinking => options.think.is_on(),
                    thinking => options.think.is_on(),
                    ..effort(options)
                })
            })
            .map_err(failed)?;
        Ok(self.unprotect(&text, guard))
    }

    /// `text` with every marker in it broken behind its first character.
    fn protect(&self, text: &str, guard: char) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        while let Some((start, _)) = self.tokenizer.find_marker(text, from) {
            let next = start + text[start..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&text[from..next]);
            out.push(guard);
            from = next;
        }
        out.push_str(&text[from..]);
        out
    }

    fn unprotect(&self, text: &str, guard: char) -> Segments {
        let mut out = Segments::default();
        let mut from = 0;
        while let Some((start, end)) = self.tokenizer.find_marker(text, from) {
            out.text(&text[from..start].replace(guard, ""));
            out.marker(&text[start..end]);
            from = end;
        }
        out.text(&text[from..].replace(guard, ""));
        out
    }
}

fn failed(error: minijinja::Error) -> Error {
    Error::Template {
        reason: with_causes(&error),
    }
}

/// As `transformers` sets it up: trimmed blocks, Python's string methods, `raise_exception`, JSON as Python writes it.
fn environment(bytes: usize) -> Environment<'static> {
    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    env.set_syntax(syntax.expect("the usual delimiters with trimmed blocks are valid"));
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_fuel(Some(FUEL.saturating_add(bytes as u64)));
    env.add_filter("tojson", tojson);
    env.add_function(
        "raise_exception",
        |text: String| -> Result<Value, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, text))
        },
    );
    env
}

/// A noncharacter that no string of the conversation contains.
fn guard(conversation: &Conversation) -> char {
    let used = |c: char| {
        conversation.tools.iter().any(|t| t.json().contains(c))
            || conversation.messages.iter().any(|m| {
                let strings = [
                    Some(&m.content),
                    m.reasoning.as_ref(),
                    m.tool_call_id.as_ref(),
                ];
                strings.into_iter().flatten().any(|s| s.contains(c))
                    || m.tool_calls
                        .iter()
                        .any(|call| call.name.contains(c) || call.arguments.contains(c))
            })
    };
    // When all 32 occur, stray ones of the first are lost: a conversation of noncharacters is nobody's.
    ('\u{FDD0}'..='\u{FDEF}')
        .find(|&c| !used(c))
        .unwrap_or('\u{FDD0}')
}

fn effort(options: &RenderOptions) -> Value {
    match options.effort {
        Some(effort) => Value::from_pairs([("reasoning_effort", Value::from(effort.name()))]),
        None => Value::from_pairs::<[(&str, Value); 0], _, _>([]),
    }
}

fn message(message: &Message, protect: &impl Fn(&str) -> String) -> Result<Value, Error> {
    let role = match message.role {
        Role::System | Role::Developer | Role::LatestReminder => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut members = vec![
        ("role", Value::from(role)),
        ("content", Value::from(protect(&message.content))),
    ];
    if let Some(reasoning) = &message.reasoning {
        members.push(("reasoning_content", Value::from(protect(reasoning))));
    }
    if let Some(id) = &message.tool_call_id {
        members.push(("tool_call_id", Value::from(protect(id))));
    }
    if !message.tool_calls.is_empty() {
        let calls: Vec<Value> = message
            .tool_calls
            .iter()
            .map(|call| {
                let what = format!("the arguments of the call to `{}`", call.name);
                json::members(&what, &call.arguments)?;
                let function = Value::from_pairs([
                    ("name", Value::from(protect(&call.name))),
                    ("arguments", value(&parse(&what, &call.arguments)?, protect)),
                ]);
                Ok(Value::from_pairs([
                    ("id", call.id.as_deref().map(protect).into()),
                    ("type", Value::from("function")),
                    ("function", function),
                ]))
            })
            .collect::<Result<_, Error>>()?;
        members.push(("tool_calls", Value::from(calls)));
    }
    Ok(Value::from_pairs(members))
}

fn tool(tool: &Tool, protect: &impl Fn(&str) -> String) -> Result<Value, Error> {
    let function = value(
        &parse(&format!("the tool `{}`", tool.name()), tool.json())?,
        protect,
    );
    Ok(Value::from_pairs([
        ("type", Value::from("function")),
        ("function", function),
    ]))
}

fn parse(what: &str, json: &str) -> Result<serde_json::Value, Error> {
    serde_json::from_str(json).map_err(|source| Error::Json {
        what: what.to_owned(),
        source,
    })
}

fn value(json: &serde_json::Value, protect: &impl Fn(&str) -> String) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(n), ..) => Value::from(n),
            (_, Some(n), _) => Value::from(n),
            (.., n) => Value::from(n.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(protect(text)),
        Json::Array(list) => Value::from(
            list.iter()
                .map(|item| value(item, protect))
                .collect::<Vec<_>>(),
        ),
        Json::Object(members) => Value::from_pairs(
            members
                .iter()
                .map(|(key, item)| (protect(key), value(item, protect))),
        ),
    }
}

/// `json.dumps(value, ensure_ascii=False)`, with `indent` as in Python.
fn tojson(value: &Value, options: Kwargs) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Python's default is not to escape, whatever a template says.
    let _: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = String::new();
    write_json(value, indent, 0, &mut out)?;
    Ok(out)
}

fn write_json(
    value: &Value,
    indent: Option<usize>,
    depth: usize,
    out: &mut String,
) -> Result<(), minijinja::Error> {
    let invalid = |what: String| minijinja::Error::new(ErrorKind::InvalidOperation, what);
    if depth > MAX_DEPTH {
        return Err(invalid(format!(
            "tojson: nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let line = |depth: usize, out: &mut String| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent.min(16) * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => out.push_str(&json::float(f64::try_from(value.clone())?)),
        ValueKind::String => out.push_str(&json::quote(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut any = false;
            for item in value.try_iter()? {
                out.push_str(if any { comma } else { "" });
                line(depth + 1, out);
                write_json(&item, indent, depth + 1, out)?;
                any = true;
            }
            if any {
                line(depth, out);
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            let mut any = false;
            for key in value.try_iter()? {
                out.push_str(if any { comma } else { "" });
                line(depth + 1, out);
                out.push_str(&json::quote(&key.to_string()));
                out.push_str(": ");
                write_json(&value.get_item(&key)?, indent, depth + 1, out)?;
                any = true;
            }
            if any {
                line(depth, out);
            }
            out.push('}');
        }
        kind => {
            return Err(invalid(format!(
                "tojson: a value of kind {kind} has no JSON form"
            )));
        }
    }
    Ok(())
}
