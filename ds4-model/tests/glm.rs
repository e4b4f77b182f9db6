//! GLM-5.2: rendering against antirez/ds4's server, the published layout, and calls.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ds4_model::chat::{
    ChatFormat, Conversation, Dialect, Effort, Finish, Message, Outcome, ParseOptions,
    RenderOptions, Repair, ThinkMode, Tool, ToolCall,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    thinking: bool,
    reasoning_effort: Option<Effort>,
    glm_ds4_server: Text,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

fn one_line(json: &str) -> String {
    json.lines()
        .map(|line| line.trim_start().to_owned() + if line.ends_with(',') { " " } else { "" })
        .collect()
}

fn think(on: bool) -> ThinkMode {
    if on { ThinkMode::On } else { ThinkMode::Off }
}

#[test]
fn conversations_render_as_ds4s_server_renders_them() {
    let golden: Golden =
        serde_json::from_str(include_str!("data/tokenizer/v4-conversations.json")).unwrap();
    assert_eq!(golden.cases.len(), 27);
    for raw in &golden.cases {
        let json = one_line(raw.get());
        let case: Case = serde_json::from_str(&json).unwrap();
        let conversation: Conversation = serde_json::from_str(&json).unwrap();
        let options = RenderOptions {
            think: think(case.thinking),
            effort: case.reasoning_effort,
            dialect: Dialect::Ds4,
            ..RenderOptions::default()
        };
        let prompt = ChatFormat::Glm52.render(&conversation, &options).unwrap();
        assert_eq!(prompt.as_str(), case.glm_ds4_server.text, "{}", case.name);
    }
}

fn weather() -> Tool {
    Tool::new(
        r#"{"type":"function","function":{"name":"weather","strict":true,"parameters":{"properties":{"city":{"type":"string"},"days":{"type":"integer"},"hot":{"type":["boolean","null"]}}}}}"#,
    )
    .unwrap()
}

#[test]
fn the_models_own_layout_is_rendered() {
    let mut answer = Message::assistant("Let me see.");
    answer.reasoning = Some("look".into());
    let call = |arguments: &str| ToolCall {
        id: None,
        name: "weather".into(),
        arguments: arguments.into(),
    };
    answer.tool_calls = vec![call(r#"{"city":"Rome <x>","days":2}"#), call("{}")];
    let conversation = Conversation {
        messages: vec![
            Message::system("Be brief."),
            Message::user("Hi <|user|>"),
            answer,
            Message::tool("a", "sun"),
            Message::tool("b", "rain"),
        ],
        tools: vec![weather()],
    };
    let prompt = ChatFormat::Glm52
        .render(&conversation, &RenderOptions::default())
        .unwrap();
    let text = prompt.as_str();
    let (head, rest) = text.split_once("<|system|>Be brief.").unwrap();
    assert!(
        head.starts_with("[gMASK]<sop><|system|>Reasoning Effort: Max<|system|>\n# Tools\n\n"),
        "{head}"
    );
    assert!(
        head.contains("<tools>\n{\"name\": \"weather\", \"parameters\": {\"properties\": "),
        "{head}"
    );
    assert!(
        head.ends_with("...</tool_call>") && !head.contains("strict"),
        "{head}"
    );
    assert_eq!(
        rest,
        "<|user|>Hi <|user|><|assistant|><think>look</think>Let me see.\
         <tool_call>weather<arg_key>city</arg_key><arg_value>Rome <x></arg_value>\
         <arg_key>days</arg_key><arg_value>2</arg_value></tool_call><tool_call>weather</tool_call>\
         <|observation|><tool_response>sun</tool_response><tool_response>rain</tool_response><|assistant|><think>"
    );
    assert_eq!(prompt.markers().filter(|m| *m == "<|user|>").count(), 1);
    let off = RenderOptions {
        effort: Some(Effort::None),
        ..RenderOptions::default()
    };
    let text = ChatFormat::Glm52
        .render(&Message::user("x").into(), &off)
        .unwrap();
    assert_eq!(
        text.as_str(),
        "[gMASK]<sop><|user|>x<|assistant|><think></think>"
    );
}

fn parse(text: &str) -> ds4_model::chat::Parsed {
    let options = ParseOptions {
        tools: vec![weather()],
        think: ThinkMode::Off,
        ..ParseOptions::default()
    };
    ChatFormat::Glm52.parse(text, Finish::Stop, &options)
}

#[test]
fn values_take_the_type_that_the_schema_declares() {
    let value = |key: &str, text: &str| {
        let parsed = parse(&format!(
            "<tool_call>weather<arg_key>{key}</arg_key><arg_value>{text}</arg_value></tool_call>"
        ));
        let arguments: Value = serde_json::from_str(&parsed.calls[0].arguments).unwrap();
        (arguments[key].clone(), parsed.repairs.len())
    };
    assert_eq!(value("city", "42"), (Value::from("42"), 0));
    assert_eq!(value("days", "42"), (Value::from(42), 0));
    assert_eq!(value("days", "soon"), (Value::from("soon"), 1));
    assert_eq!(value("hot", "null"), (Value::Null, 0));
    assert_eq!(value("unknown", "[1]"), (serde_json::json!([1]), 0));
    assert_eq!(value("unknown", "\"x\""), (Value::from("\"x\""), 0));
    assert_eq!(
        value("unknown", "<b>\n&amp;"),
        (Value::from("<b>\n&amp;"), 0)
    );
}

#[test]
fn odd_calls_are_read_or_reported() {
    let parsed = parse(
        "Sure.\n\n<tool_call>weather</arg_value></tool_call><tool_call> weather\n</tool_call>",
    );
    assert_eq!((parsed.content.as_str(), parsed.calls.len()), ("Sure.", 2));
    assert!(
        parsed
            .calls
            .iter()
            .all(|call| call.name == "weather" && call.arguments == "{}")
    );
    let prose = "Write <tool_call>{name}</tool_call>, then <tool_call> and so on.";
    assert_eq!(parse(prose).content, prose);
    let torn = parse("<tool_call>weather<arg_key>city</arg_key><arg_value>Ro");
    assert!(matches!(torn.outcome, Outcome::Incomplete { offset: 0 }) && torn.calls.is_empty());
    let wrong = parse("<tool_call>weather<arg_key>city</arg_key>Rome</tool_call>");
    assert!(matches!(wrong.outcome, Outcome::Malformed { .. }) && wrong.calls.is_empty());
    let after = parse("<tool_call>weather</tool_call> Done.");
    assert_eq!(after.repairs, [Repair::TextAfterCalls]);
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_answer(
        bits in prop::collection::vec(prop::sample::select(vec![
            "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "weather", "city",
            " ", "\n\n", "é", "<", "</think>", "12", "{\"a\": 1}", "<tool_call>weather<arg_key>city</arg_key><arg_value>",
        ]), 0..14),
        sizes in prop::collection::vec(1usize..9, 0..40),
        thinking in any::<bool>(),
    ) {
        let text = bits.concat();
        let options = ParseOptions { tools: vec![weather()], think: think(thinking), ..ParseOptions::default() };
        let whole = ChatFormat::Glm52.parse(&text, Finish::Length, &options);
        let mut parser = ChatFormat::Glm52.stream_parser(&options);
        let mut chars = text.chars();
        for n in sizes.into_iter().chain([usize::MAX]) {
            parser.push(&chars.by_ref().take(n).collect::<String>());
        }
        prop_assert_eq!(parser.finish(Finish::Length).1, whole);
    }
}
