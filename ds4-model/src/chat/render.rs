//! DeepSeek-V4: messages → prompt.
//!
//! ```text
//! prompt := BOS effort? system* turn* tail
//! system := content [ "\n\n" tools ] [ "\n\n" response_format ]
//! user   := U part ("\n\n" part)*              part := text | "<tool_result>" text "</tool_result>"
//! answer := A (T reasoning /T | /T) content [ "\n\n" calls ] EOS
//! tail   := A T  (thinking)  |  A /T  (not thinking)
//! ```
//! Source: DeepSeek's encoder for V4 (`encoding_dsv4`), whose output `golden` cases hold; corners in which other
//! renderers differ are in `dialect.rs`.

use super::dialect::Rules;
use super::{
    Conversation, EffortTable, Error, Message, RenderOptions, Role, Task, Tool, dsml, json, marker,
};
use crate::tokenizer::Segments;
use std::borrow::Cow;
use std::collections::HashMap;

const RESPONSE_FORMAT: &str =
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

/// Render `conversation` with the effort texts of `table`.
pub(super) fn render(
    conversation: &Conversation,
    options: &RenderOptions,
    table: EffortTable,
) -> Result<Segments, Error> {
    let rules = options.dialect.rules();
    let turns = turns(conversation, rules);
    let tools_declared = turns.iter().any(|turn| !turn.tools().is_empty());
    let calls_made = conversation
        .messages
        .iter()
        .any(|m| m.role == Role::Tool || !m.tool_calls.is_empty());
    let keep =
        !options.drop_thinking || tools_declared || (rules.calls_keep_reasoning && calls_made);
    let last_user = turns.iter().rposition(Turn::asks);

    let mut writer = Writer {
        out: Segments::default(),
        thinking: options.think.is_on(),
        keep,
        last_user,
        rules,
    };
    writer.out.marker(marker::BOS);
    if writer.thinking {
        writer.out.text(table.text(options.effort));
    }
    for (i, turn) in turns.iter().enumerate() {
        if writer.thinking && !keep && matches!(turn, Turn::Developer(_)) && Some(i) < last_user {
            continue;
        }
        writer.turn(i, turn, i.checked_sub(1).map(|before| &turns[before]))?;
        match turns.get(i + 1) {
            None if options.generation_prompt => writer.hand_over(i, turn),
            Some(Turn::Answer(_) | Turn::Reminder(_)) => writer.hand_over(i, turn),
            _ => {}
        }
    }
    Ok(writer.out)
}

/// Messages as the format knows them: results belong to the user's turn.
enum Turn<'c> {
    System {
        content: Cow<'c, str>,
        tools: Cow<'c, [Tool]>,
        response_format: Option<&'c str>,
    },
    Developer(&'c Message),
    User {
        parts: Vec<Part<'c>>,
        task: Option<Task>,
    },
    Answer(&'c Message),
    Reminder(&'c Message),
}

enum Part<'c> {
    Text(&'c str),
    Result {
        call: Option<&'c str>,
        text: &'c str,
    },
}

impl Turn<'_> {
    fn tools(&self) -> &[Tool] {
        match self {
            Self::System { tools, .. } => tools,
            Self::Developer(m) => &m.tools,
            _ => &[],
        }
    }

    fn asks(&self) -> bool {
        matches!(self, Self::User { .. } | Self::Developer(_))
    }

    fn task(&self) -> Option<Task> {
        match self {
            Self::User { task, .. } => *task,
            Self::Developer(m) | Self::Answer(m) | Self::Reminder(m) => m.task,
            Self::System { .. } => None,
        }
    }
}

fn turns(conversation: &Conversation, rules: Rules) -> Vec<Turn<'_>> {
    let is_system = |m: &Message| {
        m.role == Role::System || (m.role == Role::Developer && rules.developer_is_system)
    };
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(conversation.messages.len() + 1);
    if rules.join_systems {
        turns.extend(joined_system(conversation, is_system));
    }
    for message in &conversation.messages {
        match message.role {
            _ if is_system(message) && rules.join_systems => {}
            Role::System => turns.push(Turn::System {
                content: (&*message.content).into(),
                tools: (&*message.tools).into(),
                response_format: message.response_format.as_ref().map(|f| f.as_str()),
            }),
            Role::Developer => turns.push(Turn::Developer(message)),
            Role::LatestReminder => turns.push(Turn::Reminder(message)),
            Role::Assistant => turns.push(Turn::Answer(message)),
            Role::Tool => {
                let part = Part::Result {
                    call: message.tool_call_id.as_deref(),
                    text: &message.content,
                };
                match turns.last_mut() {
                    Some(Turn::User { parts, .. })
                        if rules.merge_turns || ends_in_result(parts) =>
                    {
                        parts.push(part)
                    }
                    _ => turns.push(Turn::User {
                        parts: vec![part],
                        task: message.task,
                    }),
                }
            }
            Role::User => match turns.last_mut() {
                Some(Turn::User { parts, task: None })
                    if rules.merge_turns && message.task.is_none() =>
                {
                    parts.push(Part::Text(&message.content));
                }
                _ => turns.push(Turn::User {
                    parts: vec![Part::Text(&message.content)],
                    task: message.task,
                }),
            },
        }
    }
    if !rules.join_systems && !conversation.tools.is_empty() {
        match turns.first_mut() {
            Some(Turn::System { tools, .. }) => {
                tools.to_mut().extend_from_slice(&conversation.tools)
            }
            _ => turns.insert(
                0,
                Turn::System {
                    content: "".into(),
                    tools: (&*conversation.tools).into(),
                    response_format: None,
                },
            ),
        }
    }
    if rules.merge_turns {
        sort_results(&mut turns);
    }
    turns
}

fn ends_in_result(parts: &[Part<'_>]) -> bool {
    matches!(parts.last(), Some(Part::Result { .. }))
}

/// One system turn of all system messages and all tools, or none.
fn joined_system<'c>(
    conversation: &'c Conversation,
    is_system: impl Fn(&Message) -> bool,
) -> Option<Turn<'c>> {
    let systems: Vec<&Message> = conversation
        .messages
        .iter()
        .filter(|m| is_system(m))
        .collect();
    if systems.is_empty() && conversation.tools.is_empty() {
        return None;
    }
    let texts: Vec<&str> = systems
        .iter()
        .map(|m| m.content.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    let tools = systems
        .iter()
        .flat_map(|m| &m.tools)
        .chain(&conversation.tools)
        .cloned()
        .collect::<Vec<_>>();
    let response_format = systems
        .iter()
        .rev()
        .find_map(|m| m.response_format.as_ref())
        .map(|f| f.as_str());
    Some(Turn::System {
        content: texts.join("\n\n").into(),
        tools: tools.into(),
        response_format,
    })
}

/// Results in the order of the calls that the answer before them made; a result of no known call goes first.
fn sort_results(turns: &mut [Turn<'_>]) {
    let mut order: HashMap<&str, usize> = HashMap::new();
    for turn in turns {
        match turn {
            Turn::Answer(message) if !message.tool_calls.is_empty() => {
                order = message
                    .tool_calls
                    .iter()
                    .enumerate()
                    .filter_map(|(i, c)| Some((c.id.as_deref()?, i)))
                    .collect();
            }
            Turn::User { parts, .. } if !order.is_empty() => {
                let places: Vec<usize> = (0..parts.len())
                    .filter(|&i| matches!(parts[i], Part::Result { .. }))
                    .collect();
                let mut results: Vec<(Option<&str>, &str)> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Result { call, text } => Some((*call, *text)),
                        Part::Text(_) => None,
                    })
                    .collect();
                results.sort_by_key(|(call, _)| {
                    call.and_then(|id| order.get(id)).copied().unwrap_or(0)
                });
                for (place, (call, text)) in places.into_iter().zip(results) {
                    parts[place] = Part::Result { call, text };
                }
            }
            _ => {}
        }
    }
}

struct Writer {
    out: Segments,
    thinking: bool,
    /// Reasoning of all turns stays; otherwise only that of the turn in progress.
    keep: bool,
    last_user: Option<usize>,
    rules: Rules,
}

impl Writer {
    fn turn(&mut self, i: usize, turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Result<(), Error> {
        match turn {
            Turn::System {
                content,
                tools,
                response_format,
            } => self.system(content, tools, *response_format)?,
            Turn::Developer(message) => {
                self.out.marker(marker::USER);
                self.system(
                    &message.content,
                    &message.tools,
                    message.response_format.as_ref().map(|f| f.as_str()),
                )?;
            }
            Turn::User { parts, .. } => {
                self.out.marker(marker::USER);
                for (i, part) in parts.iter().enumerate() {
                    self.out.text(if i > 0 && self.rules.merge_turns {
                        "\n\n"
                    } else {
                        ""
                    });
                    match part {
                        Part::Text(text) => self.out.text(text),
                        Part::Result { text, .. } => self.result(text),
                    }
                }
            }
            Turn::Reminder(message) => {
                self.out.marker(marker::LATEST_REMINDER);
                self.out.text(&message.content);
            }
            Turn::Answer(message) => {
                self.answer(i, message, before.and_then(Turn::task).is_some())?
            }
        }
        Ok(())
    }

    fn system(
        &mut self,
        content: &str,
        tools: &[Tool],
        response_format: Option<&str>,
    ) -> Result<(), Error> {
        if self.rules.tools_first && !tools.is_empty() {
            dsml::declare(&mut self.out, tools, self.rules)?;
            self.out.text(if content.is_empty() { "" } else { "\n\n" });
        }
        self.out.text(content);
        if !self.rules.tools_first && !tools.is_empty() {
            self.out
                .text(if content.is_empty() && !self.rules.blank_before_tools {
                    ""
                } else {
                    "\n\n"
                });
            dsml::declare(&mut self.out, tools, self.rules)?;
        }
        if let Some(schema) = response_format {
            self.out.text("\n\n");
            self.out.text(RESPONSE_FORMAT);
            self.out.text(&json::python("the response format", schema)?);
        }
        Ok(())
    }

    fn result(&mut self, text: &str) {
        self.out.text("<tool_result>");
        if self.rules.escape {
            self.out
                .text(&text.replace("</tool_result>", "&lt;/tool_result>"));
        } else {
            self.out.text(text);
        }
        self.out.text("</tool_result>");
    }

    fn answer(&mut self, i: usize, message: &Message, is_task: bool) -> Result<(), Error> {
        let thinks = self.thinking && !is_task && (self.keep || Some(i) > self.last_user);
        if let Some(replay) = &message.replay {
            let (reasoning, rest) = replay.split();
            if thinks {
                reasoning.iter().for_each(|part| self.out.part(part));
                self.out.marker(marker::THINK_END);
            }
            rest.iter().for_each(|part| self.out.part(part));
        } else {
            if thinks {
                self.out
                    .text(message.reasoning.as_deref().unwrap_or_default());
                self.out.marker(marker::THINK_END);
            }
            self.out.text(&message.content);
            if !message.tool_calls.is_empty() {
                self.out.text("\n\n");
                dsml::call(&mut self.out, &message.tool_calls, self.rules)?;
            }
        }
        if !message.partial {
            self.out.marker(marker::EOS);
        }
        Ok(())
    }

    /// What follows a turn when the model speaks next: its marker and whether it thinks, or the task's marker.
    fn hand_over(&mut self, i: usize, turn: &Turn<'_>) {
        let think = if self.thinking {
            marker::THINK
        } else {
            marker::THINK_END
        };
        match turn.task() {
            Some(Task::Action) => {
                self.out.marker(marker::ASSISTANT);
                self.out.marker(think);
                self.out.marker(marker::task(Task::Action));
            }
            Some(task) => self.out.marker(marker::task(task)),
            None if turn.asks() => {
                self.out.marker(marker::ASSISTANT);
                let past = !self.keep && Some(i) < self.last_user;
                self.out
                    .marker(if past { marker::THINK_END } else { think });
            }
            None => {}
        }
    }
}
