//! GLM-5.2: messages → prompt.
//!
//! ```text
//! prompt := [gMASK]<sop> effort? tools? turn* tail
//! effort := <|system|>Reasoning Effort: Max | High        (thinking only)
//! tools  := <|system|> wording, one schema a line
//! turn   := <|system|>text | <|user|>text | <|observation|>(<tool_response>text</tool_response>)+
//!         | <|assistant|><think>reasoning</think>content call*
//! call   := <tool_call>NAME(<arg_key>K</arg_key><arg_value>V</arg_value>)*</tool_call>
//! tail   := <|assistant|><think>  (thinking)  |  <|assistant|><think></think>  (not thinking)
//! ```
//! Two layouts: the model's own template (wording as published with GLM-4.7, which 5.2 kept), and antirez/ds4's server
//! ([`Dialect::Ds4`](super::Dialect::Ds4)), which golden cases hold.

use super::json::{self, Member, Value};
use super::{Conversation, Dialect, Effort, Error, Message, RenderOptions, Role, Tool, marker};
use crate::tokenizer::Segments;

const HEAD: &str = include_str!("text/glm_tools_head.txt");
const TAIL: &str = include_str!("text/glm_tools_tail.txt");
const HEAD_DS4: &str = include_str!("text/glm_tools_head_ds4.txt");
const TAIL_DS4: &str = include_str!("text/glm_tools_tail_ds4.txt");

const START: [&str; 2] = ["[gMASK]", "<sop>"];
const SYSTEM: &str = "<|system|>";
const USER: &str = "<|user|>";
const ASSISTANT: &str = "<|assistant|>";
/// What begins a user's turn and an answer.
pub(super) const TURNS: [&str; 2] = [USER, ASSISTANT];
const OBSERVATION: &str = "<|observation|>";
const CALL: [&str; 2] = ["<tool_call>", "</tool_call>"];
const KEY: [&str; 2] = ["<arg_key>", "</arg_key>"];
const VALUE: [&str; 2] = ["<arg_value>", "</arg_value>"];
const RESPONSE: [&str; 2] = ["<tool_response>", "</tool_response>"];

/// Without these there is no chat.
pub(super) const REQUIRED: [&str; 16] = [
    START[0],
    START[1],
    SYSTEM,
    USER,
    ASSISTANT,
    OBSERVATION,
    marker::THINK,
    marker::THINK_END,
    CALL[0],
    CALL[1],
    KEY[0],
    KEY[1],
    VALUE[0],
    VALUE[1],
    RESPONSE[0],
    RESPONSE[1],
];

/// What the wording of the tools block and the model itself write.
const IN_TEXT: [&str; 8] = [
    CALL[0],
    CALL[1],
    KEY[0],
    KEY[1],
    VALUE[0],
    VALUE[1],
    marker::THINK,
    marker::THINK_END,
];

/// Members of a tool that are for the client, not for the model.
const NOT_FOR_MODELS: [&str; 2] = ["strict", "defer_loading"];

/// Render `conversation`.
pub(super) fn render(
    conversation: &Conversation,
    options: &RenderOptions,
) -> Result<Segments, Error> {
    let messages = &conversation.messages;
    let ds4 = options.dialect == Dialect::Ds4;
    let tools: Vec<&Tool> = conversation
        .tools
        .iter()
        .chain(messages.iter().flat_map(|m| &m.tools))
        .collect();
    let in_play = !tools.is_empty()
        || messages
            .iter()
            .any(|m| m.role == Role::Tool || !m.tool_calls.is_empty());
    let mut w = Writer {
        out: Segments::default(),
        thinking: options.think.is_on(),
        keep: !options.drop_thinking || (ds4 && in_play),
        last_user: messages.iter().rposition(|m| m.role == Role::User),
        ds4,
    };
    for marker in START {
        w.out.marker(marker);
    }
    if w.thinking {
        w.out.marker(SYSTEM);
        w.out.text(if is_max(options.effort, ds4) {
            "Reasoning Effort: Max"
        } else {
            "Reasoning Effort: High"
        });
    }
    if !tools.is_empty() {
        w.declare(&tools)?;
    }
    for (i, message) in messages.iter().enumerate() {
        w.message(
            i,
            message,
            i.checked_sub(1).map(|before| messages[before].role),
        )?;
    }
    let answered = messages.last().is_some_and(|m| m.role == Role::Assistant);
    if options.generation_prompt && !answered {
        w.out.marker(ASSISTANT);
        w.out.marker(marker::THINK);
        if !w.thinking {
            w.out.marker(marker::THINK_END);
        }
    }
    Ok(w.out)
}

/// The model's own default is the most; ds4 thinks hard only when asked to.
fn is_max(effort: Option<Effort>, ds4: bool) -> bool {
    matches!(effort, Some(Effort::Max | Effort::XHigh)) || (effort.is_none() && !ds4)
}

struct Writer {
    out: Segments,
    thinking: bool,
    /// Reasoning of all turns stays; otherwise only that after the last question.
    keep: bool,
    last_user: Option<usize>,
    ds4: bool,
}

impl Writer {
    fn declare(&mut self, tools: &[&Tool]) -> Result<(), Error> {
        self.out.marker(SYSTEM);
        self.out
            .template(if self.ds4 { HEAD_DS4 } else { HEAD }, &IN_TEXT);
        for tool in tools {
            if self.ds4 {
                self.out.text(tool.json());
            } else {
                self.out.text(&schema(tool)?);
            }
            self.out.text("\n");
        }
        self.out
            .template(if self.ds4 { TAIL_DS4 } else { TAIL }, &IN_TEXT);
        Ok(())
    }

    fn message(&mut self, i: usize, message: &Message, before: Option<Role>) -> Result<(), Error> {
        match message.role {
            Role::System | Role::Developer | Role::LatestReminder => {
                self.out.marker(SYSTEM);
                self.out.text(&message.content);
            }
            Role::User => {
                self.out.marker(USER);
                self.out.text(&message.content);
            }
            Role::Tool => {
                if self.ds4 || before != Some(Role::Tool) {
                    self.out.marker(OBSERVATION);
                }
                self.framed(RESPONSE, &message.content);
            }
            Role::Assistant => self.answer(i, message)?,
        }
        Ok(())
    }

    fn answer(&mut self, i: usize, message: &Message) -> Result<(), Error> {
        let thinks = self.thinking && (self.keep || Some(i) > self.last_user);
        self.out.marker(ASSISTANT);
        if let Some(replay) = &message.replay {
            let (reasoning, rest) = replay.split();
            self.out.marker(marker::THINK);
            if thinks {
                reasoning.iter().for_each(|part| self.out.part(part));
            }
            self.out.marker(marker::THINK_END);
            rest.iter().for_each(|part| self.out.part(part));
            return Ok(());
        }
        let reasoning = message
            .reasoning
            .as_deref()
            .filter(|_| thinks)
            .unwrap_or_default();
        self.framed([marker::THINK, marker::THINK_END], reasoning);
        self.out.text(&message.content);
        for call in &message.tool_calls {
            self.out.text(if self.ds4 { "\n\n" } else { "" });
            self.out.marker(CALL[0]);
            self.out.text(&call.name);
            let what = format!("the arguments of the call to `{}`", call.name);
            for Member { key, value } in json::members(&what, &call.arguments)? {
                self.framed(KEY, &key);
                let value = match value {
                    Value::Text(text) => text,
                    Value::Json(json) if self.ds4 => json::compact(&what, &json)?,
                    Value::Json(json) => json::python(&what, &json)?,
                };
                self.framed(VALUE, &value);
            }
            self.out.marker(CALL[1]);
        }
        Ok(())
    }

    fn framed(&mut self, [open, close]: [&str; 2], text: &str) {
        self.out.marker(open);
        self.out.text(text);
        self.out.marker(close);
    }
}

/// A tool's definition without what is not for the model.
fn schema(tool: &Tool) -> Result<String, Error> {
    let what = format!("the tool `{}`", tool.name());
    let mut lines = Vec::new();
    for Member { key, value } in json::members(&what, tool.json())? {
        if NOT_FOR_MODELS.contains(&key.as_str()) {
            continue;
        }
        let value = match value {
            Value::Text(text) => json::quote(&text),
            Value::Json(json) => json::python(&what, &json)?,
        };
        lines.push(format!("{}: {value}", json::quote(&key)));
    }
    Ok(format!("{{{}}}", lines.join(", ")))
}
