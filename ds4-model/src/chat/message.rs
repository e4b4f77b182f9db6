//! Messages, tools and calls, in the shape of the OpenAI wire format.

use super::{Error, json, marker};
use crate::tokenizer::{Segment, Segments};
use serde::de::{Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// Instructions, as newer OpenAI clients call them.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
    /// Date, place and the like, in DeepSeek's own format.
    LatestReminder,
}

/// DeepSeek's quick instructions: the answer is a label, not prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// What to do next.
    Action,
    /// Search queries.
    Query,
    /// How trustworthy a source must be.
    Authority,
    /// Field of knowledge.
    Domain,
    /// A title for the conversation.
    Title,
    /// Whether to read a page.
    ReadUrl,
}

/// One message.
///
/// ```
/// use ds4_model::chat::Message;
/// let m: Message = serde_json::from_str(r#"{"role": "user", "content": [{"type": "text", "text": "hi"}]}"#)?;
/// assert_eq!(m, Message::user("hi"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said. On the wire also `null` (empty) or a list of text parts, which are joined by blank lines.
    #[serde(default, deserialize_with = "content")]
    pub content: String,
    /// What the model thought before it answered.
    #[serde(
        default,
        rename = "reasoning_content",
        alias = "reasoning",
        skip_serializing_if = "Option::is_none"
    )]
    pub reasoning: Option<String>,
    /// Calls that the model made.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool_calls: Vec<ToolCall>,
    /// Which call this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Tools declared with this message (DeepSeek's own format); usually they belong to the conversation.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tools: Vec<Tool>,
    /// A JSON schema that the answer must follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<JsonText>,
    /// A quick instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// An answer of the model that is to be continued: no end marker follows it.
    #[serde(
        default,
        rename = "wo_eos",
        alias = "partial",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub partial: bool,
    /// What the model wrote, to be put back as it was instead of what the other fields would give. Comes from this
    /// program's own memory, never from the wire.
    #[serde(skip)]
    pub replay: Option<Replay>,
}

impl Message {
    /// A message that only says something.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tools: Vec::new(),
            response_format: None,
            task: None,
            partial: false,
            replay: None,
        }
    }

    /// Instructions.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// What a person says.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model said.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// The result of the call `id`.
    #[must_use]
    pub fn tool(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(id.into()),
            ..Self::new(Role::Tool, content)
        }
    }
}

/// The exact text that the model produced after its generation prompt, and which of it were control tokens: markers that
/// it only spelled stay text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The text.
    pub text: Segments,
    /// Whether it begins with reasoning: the prompt ended in `<think>`.
    pub thinking: bool,
}

impl Replay {
    /// The reasoning, and what follows its `</think>`; all of it follows when there is none.
    pub(super) fn split(&self) -> (Segments, Segments) {
        let is_end = |part: &Segment<'_>| *part == Segment::Marker(marker::THINK_END);
        let end = self.text.iter().position(|part| is_end(&part));
        let Some(end) = end.filter(|_| self.thinking) else {
            return (Segments::default(), self.text.clone());
        };
        let mut parts = self.text.iter();
        let (mut reasoning, mut rest) = (Segments::default(), Segments::default());
        parts
            .by_ref()
            .take(end)
            .for_each(|part| reasoning.part(part));
        parts.skip(1).for_each(|part| rest.part(part));
        (reasoning, rest)
    }
}

/// A conversation: messages, and the tools the model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The tools.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tools: Vec<Tool>,
}

impl From<Vec<Message>> for Conversation {
    fn from(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: Vec::new(),
        }
    }
}

impl From<Message> for Conversation {
    fn from(message: Message) -> Self {
        vec![message].into()
    }
}

impl From<&[Message]> for Conversation {
    fn from(messages: &[Message]) -> Self {
        messages.to_vec().into()
    }
}

/// Valid JSON, kept as the text it came in: key order, number spelling and all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Check and keep `json`.
    ///
    /// # Errors
    /// [`Error::Json`].
    pub fn new(json: impl Into<String>) -> Result<Self, Error> {
        match RawValue::from_string(json.into()) {
            Ok(raw) => Ok(Self(raw.get().to_owned())),
            Err(source) => Err(Error::Json {
                what: "the value".to_owned(),
                source,
            }),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).expect("checked when it was made");
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(
            Box::<RawValue>::deserialize(deserializer)?.get().to_owned(),
        ))
    }
}

/// A function that the model may call: `{"name": …, "description": …, "parameters": …}` as raw JSON.
///
/// On the wire either that object or `{"type": "function", "function": {…}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    name: String,
    function: JsonText,
}

impl Tool {
    /// A tool from either form of its definition.
    ///
    /// # Errors
    /// [`Error`]: no JSON object, or no `name` in it.
    pub fn new(json: &str) -> Result<Self, Error> {
        let member = |members: &[json::Member], key: &str| {
            members
                .iter()
                .find(|m| m.key == key)
                .map(|m| m.value.clone())
        };
        let outer = json::members("the tool", json)?;
        let (function, members) = match member(&outer, "function") {
            Some(json::Value::Json(inner)) => {
                let members = json::members("the tool's `function`", &inner)?;
                (inner, members)
            }
            _ => (json.to_owned(), outer),
        };
        match member(&members, "name") {
            Some(json::Value::Text(name)) => Ok(Self {
                name,
                function: JsonText::new(function)?,
            }),
            _ => Err(Error::ToolName {
                tool: json.chars().take(80).collect(),
            }),
        }
    }

    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function object as it came.
    #[must_use]
    pub fn json(&self) -> &str {
        self.function.as_str()
    }

    /// The types that the schema allows for the parameter `name`; empty when it says nothing.
    #[must_use]
    pub fn parameter_types(&self, name: &str) -> Vec<String> {
        let schema: serde_json::Value = serde_json::from_str(self.json()).unwrap_or_default();
        match &schema["parameters"]["properties"][name]["type"] {
            serde_json::Value::String(one) => vec![one.clone()],
            serde_json::Value::Array(many) => many
                .iter()
                .filter_map(|t| t.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &self.function)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(JsonText::deserialize(deserializer)?.as_str()).map_err(D::Error::custom)
    }
}

/// A call that the model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The caller's name for it, by which its result is found.
    pub id: Option<String>,
    /// The function.
    pub name: String,
    /// A JSON object, as text.
    pub arguments: String,
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: &self.name,
                arguments: &self.arguments,
            },
        )?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    /// Arguments may be a string that holds an object (OpenAI) or the object itself (Anthropic).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            id: Option<String>,
            function: Function,
        }
        #[derive(Deserialize)]
        struct Function {
            name: String,
            #[serde(default)]
            arguments: Option<JsonText>,
        }
        let wire = Wire::deserialize(deserializer)?;
        let arguments = match wire.function.arguments {
            None => "{}".to_owned(),
            Some(json) if json.as_str().starts_with('"') => {
                serde_json::from_str(json.as_str()).map_err(D::Error::custom)?
            }
            Some(json) => json.0,
        };
        let what = format!("the arguments of the call to `{}`", wire.function.name);
        json::members(&what, &arguments).map_err(D::Error::custom)?;
        Ok(Self {
            id: wire.id,
            name: wire.function.name,
            arguments,
        })
    }
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        Text(String),
        Parts(Vec<Part>),
    }
    #[derive(Deserialize)]
    struct Part {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        text: String,
    }
    match Option::<Wire>::deserialize(deserializer)? {
        None => Ok(String::new()),
        Some(Wire::Text(text)) => Ok(text),
        Some(Wire::Parts(parts)) => {
            if let Some(other) = parts.iter().find(|part| part.kind != "text") {
                return Err(D::Error::custom(format!(
                    "content of type `{}` is not supported, only `text` is",
                    other.kind
                )));
            }
            Ok(parts
                .into_iter()
                .map(|part| part.text)
                .collect::<Vec<_>>()
                .join("\n\n"))
        }
    }
}
