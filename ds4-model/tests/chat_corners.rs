//! Corners of rendering and of the wire format that no golden file holds.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ds4_model::Tokenizer;
use ds4_model::chat::{
    ChatFormat, Conversation, Dialect, Effort, Error, Facts, JsonText, Message, RenderOptions,
    Replay, Role, Task, ThinkMode, Tool, ToolCall,
};
use ds4_model::tokenizer::{Pre, Segment, Segments, Vocab};
use proptest::prelude::*;

fn off() -> RenderOptions {
    RenderOptions {
        think: ThinkMode::Off,
        ..RenderOptions::default()
    }
}

fn prompt(messages: Vec<Message>, options: &RenderOptions) -> Segments {
    ChatFormat::V4.render(&messages.into(), options).unwrap()
}

fn text(messages: Vec<Message>, options: &RenderOptions) -> String {
    prompt(messages, options)
        .as_str()
        .trim_start_matches("<｜begin▁of▁sentence｜>")
        .to_owned()
}

fn message(json: &str) -> Result<Message, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

#[test]
fn the_wire_format_is_read_in_all_its_forms() {
    let call = r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ARGS}}]}"#;
    for arguments in [r#""{\"a\": 1}""#, r#"{"a": 1}"#] {
        let message = message(&call.replace("ARGS", arguments)).unwrap();
        assert_eq!(
            (
                message.content.as_str(),
                message.tool_calls[0].arguments.as_str()
            ),
            ("", r#"{"a": 1}"#)
        );
    }
    for (arguments, why) in [
        ("\"[1]\"", "object"),
        ("[1]", "object"),
        ("\"{\"", "JSON"),
        ("3", "object"),
    ] {
        let error = message(&call.replace("ARGS", arguments)).unwrap_err();
        assert!(
            error.contains(why) && error.contains("`f`"),
            "{arguments}: {error}"
        );
    }
    let image =
        message(r#"{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}"#)
            .unwrap_err();
    assert!(image.contains("image_url"), "{image}");
    let parts = message(
        r#"{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#,
    );
    assert_eq!(parts.unwrap().content, "a\n\nb");
    assert!(
        message(r#"{"role": "robot", "content": "x"}"#)
            .unwrap_err()
            .contains("robot")
    );
    assert!(message(r#"{"role": "user", "content": "\ud800"}"#).is_err());
    assert!(matches!(Tool::new("{}"), Err(Error::ToolName { .. })));
    assert!(matches!(Tool::new("[]"), Err(Error::NotAnObject { .. })));
}

#[test]
fn a_conversation_survives_the_wire() {
    let mut answer = Message::assistant("ok");
    answer.reasoning = Some("hm".into());
    answer.tool_calls = vec![ToolCall {
        id: Some("1".into()),
        name: "f".into(),
        arguments: r#"{"a": 1.0}"#.into(),
    }];
    let conversation = Conversation {
        messages: vec![Message::user("x"), answer, Message::tool("1", "y")],
        tools: vec![Tool::new(r#"{"name": "f", "parameters": {"z": 1, "a": 1e2}}"#).unwrap()],
    };
    let json = serde_json::to_string(&conversation).unwrap();
    assert!(
        json.contains(
            r#"{"type":"function","function":{"name": "f", "parameters": {"z": 1, "a": 1e2}}}"#
        ),
        "{json}"
    );
    assert_eq!(
        serde_json::from_str::<Conversation>(&json).unwrap(),
        conversation
    );
}

#[test]
fn a_response_format_follows_the_system_text() {
    let mut system = Message::system("S");
    system.response_format = Some(JsonText::new(r#"{"type":"object","n":1e16}"#).unwrap());
    let want = "S\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n{\"type\": \"object\", \"n\": 1e+16}<｜User｜>x<｜Assistant｜></think>";
    assert_eq!(text(vec![system, Message::user("x")], &off()), want);
}

#[test]
fn tasks_end_in_their_marker() {
    let user = |task| Message {
        task: Some(task),
        ..Message::user("x")
    };
    assert_eq!(
        text(vec![user(Task::Query)], &off()),
        "<｜User｜>x<｜query｜>"
    );
    assert_eq!(
        text(vec![user(Task::Action)], &RenderOptions::default()),
        "<｜User｜>x<｜Assistant｜><think><｜action｜>"
    );
    let titled = Message {
        task: Some(Task::Title),
        ..Message::assistant("y")
    };
    assert_eq!(
        text(
            vec![Message::user("x"), titled, Message::assistant("A title")],
            &RenderOptions::default()
        ),
        "<｜User｜>x<｜Assistant｜><think></think>y<｜end▁of▁sentence｜><｜title｜>A title<｜end▁of▁sentence｜>"
    );
}

#[test]
fn a_partial_answer_is_left_open() {
    let open = Message {
        partial: true,
        ..Message::assistant("The answer is")
    };
    assert_eq!(
        text(vec![Message::user("x"), open], &off()),
        "<｜User｜>x<｜Assistant｜></think>The answer is"
    );
}

#[test]
fn switches_do_what_they_say() {
    let history = || {
        let past = Message {
            reasoning: Some("r".into()),
            ..Message::assistant("a")
        };
        vec![Message::user("x"), past, Message::user("y")]
    };
    let on = RenderOptions::default();
    let head = "<｜User｜>x<｜Assistant｜>";
    let tail = "a<｜end▁of▁sentence｜><｜User｜>y";
    assert_eq!(
        text(history(), &on),
        format!("{head}</think>{tail}<｜Assistant｜><think>")
    );
    let keep = RenderOptions {
        drop_thinking: false,
        ..on.clone()
    };
    assert_eq!(
        text(history(), &keep),
        format!("{head}<think>r</think>{tail}<｜Assistant｜><think>")
    );
    let bare = RenderOptions {
        generation_prompt: false,
        ..on.clone()
    };
    assert_eq!(text(history(), &bare), format!("{head}</think>{tail}"));
    let none = RenderOptions {
        effort: Some(Effort::None),
        ..on
    };
    assert_eq!(
        text(history(), &none),
        format!("{head}</think>{tail}<｜Assistant｜></think>")
    );
    assert!(matches!(
        ChatFormat::V4.render(&Conversation::default(), &off()),
        Err(Error::Empty)
    ));
}

/// DeepSeek's encoder forgets what a developer said before the last question.
#[test]
fn old_developer_turns_are_dropped_by_the_reference() {
    let messages = || {
        vec![
            Message::new(Role::Developer, "d"),
            Message::assistant("a"),
            Message::user("x"),
        ]
    };
    let reference = RenderOptions {
        dialect: Dialect::Reference,
        ..RenderOptions::default()
    };
    assert_eq!(
        text(messages(), &reference),
        "a<｜end▁of▁sentence｜><｜User｜>x<｜Assistant｜><think>"
    );
    let off = RenderOptions {
        think: ThinkMode::Off,
        ..reference
    };
    assert_eq!(
        text(messages(), &off),
        "<｜User｜>d<｜Assistant｜></think>a<｜end▁of▁sentence｜><｜User｜>x<｜Assistant｜></think>"
    );
}

/// What the model wrote goes back byte for byte, markers and all; reasoning only where the format keeps it.
#[test]
fn a_replayed_answer_is_exact() {
    let replay = "r1</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke  name=\"f\">\n</｜DSML｜invoke></｜DSML｜tool_calls>";
    let answer = |replay: &str| {
        let mut text = Segments::default();
        text.template(replay, &["</think>", "｜DSML｜"]);
        let thinking = true;
        Message {
            replay: Some(Replay { text, thinking }),
            ..Message::assistant("ignored")
        }
    };
    let messages = |r: &str| vec![Message::user("x"), answer(r), Message::tool("1", "y")];
    let keep = RenderOptions {
        drop_thinking: false,
        ..RenderOptions::default()
    };
    let kept = prompt(messages(replay), &keep);
    assert!(kept.as_str().contains(&format!(
        "<｜Assistant｜><think>{replay}<｜end▁of▁sentence｜>"
    )));
    assert_eq!(kept.markers().filter(|m| *m == "｜DSML｜").count(), 4);
    let (_, calls) = replay.split_once("r1</think>").unwrap();
    assert!(text(messages(replay), &off()).contains(&format!(
        "<｜Assistant｜></think>{calls}<｜end▁of▁sentence｜>"
    )));
    assert!(
        text(messages("plain"), &keep)
            .contains("<｜Assistant｜><think></think>plain<｜end▁of▁sentence｜>")
    );
}

/// An answer without reasoning may spell markers, in the arguments of a call say: they stay text, and nothing is cut.
#[test]
fn a_replayed_answer_keeps_spelled_markers_as_text() {
    let mut text = Segments::default();
    text.text("Before </think> after ｜DSML｜.");
    let mut answer = Message::assistant("ignored");
    answer.replay = Some(Replay {
        text: text.clone(),
        thinking: false,
    });
    let messages = vec![Message::user("x"), answer, Message::user("y")];
    for format in [ChatFormat::V4, ChatFormat::Glm52] {
        let prompt = format.render(&messages.clone().into(), &off()).unwrap();
        assert!(prompt.as_str().contains(text.as_str()), "{}", format.name());
        assert_eq!(prompt.markers().filter(|m| *m == "｜DSML｜").count(), 0);
        assert!(
            prompt
                .iter()
                .any(|part| matches!(part, Segment::Text(part) if part.contains(text.as_str())))
        );
    }
}

#[test]
fn all_missing_markers_are_named_at_once() {
    let tokens: Vec<String> = (0..=255).map(|b| Vocab::symbol(b).to_string()).collect();
    let mut entries: Vec<&[u8]> = tokens.iter().map(|t| t.as_bytes()).collect();
    entries.push("<｜end▁of▁sentence｜>".as_bytes());
    let bare = Tokenizer::new(&Vocab::new(entries, Pre::DeepSeek)).unwrap();
    let facts = Facts {
        architecture: "deepseek4",
        ..Facts::default()
    };
    let error = ChatFormat::for_model(&facts, &bare).unwrap_err();
    assert!(
        matches!(&error, Error::MissingMarkers { markers } if markers.len() == 6),
        "{error}"
    );
    let unknown = Facts {
        architecture: "llama",
        ..Facts::default()
    };
    assert!(
        matches!(ChatFormat::for_model(&unknown, &bare), Err(Error::NoFormat { architecture }) if architecture == "llama")
    );
}

const MARKERS: [&str; 6] = [
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜end▁of▁sentence｜>",
];

fn hostile() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        prop::sample::select(MARKERS.to_vec()).prop_map(str::to_owned),
        "[a-z<｜>\n\"{]{0,4}"
    ];
    prop::collection::vec(bit, 0..5).prop_map(|bits| bits.concat())
}

fn turn() -> impl Strategy<Value = Message> {
    let roles = vec![
        Role::System,
        Role::Developer,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::LatestReminder,
    ];
    (
        prop::sample::select(roles),
        hostile(),
        hostile(),
        hostile(),
        any::<bool>(),
    )
        .prop_map(|(role, content, more, name, calls)| {
            let mut message = Message::new(role, content);
            message.reasoning = Some(more.clone());
            message.tool_call_id = Some(name.clone());
            if calls {
                let arguments =
                    serde_json::json!({ more.as_str(): more, "n": [name.as_str()] }).to_string();
                message.tool_calls = vec![ToolCall {
                    id: Some(name.clone()),
                    name,
                    arguments,
                }];
            }
            message
        })
}

/// The same conversation with nothing in it that looks like a marker.
fn defused(message: &Message) -> Message {
    let clean = |text: &str| {
        MARKERS
            .iter()
            .fold(text.to_owned(), |text, marker| text.replace(marker, "x"))
    };
    let mut message = message.clone();
    message.content = clean(&message.content);
    message.reasoning = message.reasoning.as_deref().map(clean);
    for call in &mut message.tool_calls {
        call.name = clean(&call.name);
        call.arguments = clean(&call.arguments);
    }
    message
}

proptest! {
    /// Markers come from the structure alone, in every dialect and mode.
    #[test]
    fn no_text_becomes_a_marker(
        messages in prop::collection::vec(turn(), 1..6),
        dialect in prop::sample::select(vec![Dialect::Standard, Dialect::Reference, Dialect::Template, Dialect::Ds4]),
        thinking in any::<bool>(),
        format in prop::sample::select(vec![ChatFormat::V4, ChatFormat::V4_0731, ChatFormat::Glm52]),
    ) {
        let think = if thinking { ThinkMode::On } else { ThinkMode::Off };
        let options = RenderOptions { think, dialect, effort: Some(Effort::Max), ..RenderOptions::default() };
        let harmless: Vec<Message> = messages.iter().map(defused).collect();
        let got = format.render(&messages.into(), &options).unwrap();
        let want = format.render(&harmless.into(), &options).unwrap();
        prop_assert_eq!(got.markers().collect::<Vec<_>>(), want.markers().collect::<Vec<_>>());
    }
}
