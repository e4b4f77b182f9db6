//! The parser of answers: golden completions, any cutting, and what the renderer writes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ds4_model::chat::{
    ChatFormat, Conversation, Delta, Dialect, Finish, Message, Outcome, ParseOptions, Parsed,
    RenderOptions, Repair, ThinkMode, Tool, ToolCall, UnclosedThink,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    thinking: bool,
    text: String,
    expect: Value,
}

fn cases() -> Vec<Case> {
    let golden: Golden =
        serde_json::from_str(include_str!("data/tokenizer/v4-dsml-parse.json")).unwrap();
    assert_eq!(golden.cases.len(), 41);
    golden.cases
}

fn options(thinking: bool) -> ParseOptions {
    ParseOptions {
        think: if thinking { ThinkMode::On } else { ThinkMode::Off },
        tools: vec![Tool::new(r#"{"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}"#).unwrap()],
        ..ParseOptions::default()
    }
}

/// Content, reasoning and calls as the golden file writes them.
fn as_expected(parsed: &Parsed) -> Value {
    let call = |call: &ToolCall| serde_json::json!({"name": call.name, "arguments": serde_json::from_str::<Value>(&call.arguments).unwrap()});
    let calls: Vec<Value> = parsed.calls.iter().map(call).collect();
    serde_json::json!({"content": parsed.content, "reasoning": parsed.reasoning, "calls": calls})
}

#[test]
fn golden_completions_are_read_as_wanted() {
    for case in cases() {
        let finish = if case.expect == "incomplete" || case.name == "think_unclosed" {
            Finish::Length
        } else {
            Finish::Stop
        };
        let parsed = ChatFormat::V4.parse(&case.text, finish, &options(case.thinking));
        match case.expect.as_str() {
            None => {
                assert_eq!(as_expected(&parsed), case.expect, "{}", case.name);
                assert_eq!(parsed.outcome, Outcome::Complete, "{}", case.name);
            }
            Some("error") => assert!(
                matches!(parsed.outcome, Outcome::Malformed { .. }),
                "{}: {parsed:?}",
                case.name
            ),
            Some("incomplete") => {
                assert!(
                    matches!(parsed.outcome, Outcome::Incomplete { .. }),
                    "{}: {parsed:?}",
                    case.name
                );
                let ended = ChatFormat::V4.parse(&case.text, Finish::Stop, &options(case.thinking));
                assert!(
                    matches!(ended.outcome, Outcome::Incomplete { .. }),
                    "{}: {ended:?}",
                    case.name
                );
            }
            Some("policy") => {
                assert_eq!(
                    (parsed.reasoning.as_deref(), parsed.calls.len()),
                    (Some(case.text.as_str()), 0)
                );
                let execute = ParseOptions {
                    unclosed_think: UnclosedThink::Execute,
                    ..options(true)
                };
                let parsed = ChatFormat::V4.parse(&case.text, Finish::Stop, &execute);
                assert_eq!(
                    (parsed.reasoning.as_deref(), parsed.calls.len()),
                    (Some("plan"), 1)
                );
                assert_eq!(parsed.repairs, [Repair::UnclosedThink]);
                let cut = ChatFormat::V4.parse(&case.text, Finish::Length, &execute);
                assert!(cut.calls.is_empty());
            }
            Some(other) => panic!("{}: what is `{other}`?", case.name),
        }
        if parsed.outcome != Outcome::Complete {
            assert!(
                parsed.calls.is_empty() && !parsed.content.contains("DSML"),
                "{}: {parsed:?}",
                case.name
            );
        }
    }
}

#[test]
fn what_was_put_right_is_reported() {
    let repairs = |name: &str| {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        ChatFormat::V4
            .parse(&case.text, Finish::Stop, &options(case.thinking))
            .repairs
    };
    assert_eq!(repairs("one_call"), []);
    assert_eq!(repairs("missing_wrapper_close"), [Repair::ClosedWrapper]);
    assert_eq!(repairs("wrapper_missing"), [Repair::MissingWrapper]);
    assert_eq!(
        repairs("bad_json_value"),
        [Repair::InvalidJson {
            index: 0,
            parameter: "n".into()
        }]
    );
    assert_eq!(repairs("text_after_block"), [Repair::TextAfterCalls]);
    assert_eq!(repairs("two_blocks"), []);
}

/// A schema that wants a string makes unquoted text a string without a word.
#[test]
fn text_where_the_schema_wants_a_string_is_no_repair() {
    let text = "<｜DSML｜tool_calls><｜DSML｜invoke name=\"get_weather\"><｜DSML｜parameter name=\"city\" string=\"false\">New York</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>";
    let parsed = ChatFormat::V4.parse(text, Finish::Stop, &options(false));
    assert_eq!(
        (parsed.calls[0].arguments.as_str(), parsed.repairs),
        (r#"{"city": "New York"}"#, vec![])
    );
}

/// Without tools only the real marker makes calls.
#[test]
fn lookalikes_are_text_when_no_tools_are_declared() {
    let none = ParseOptions {
        think: ThinkMode::Off,
        ..ParseOptions::default()
    };
    for case in cases() {
        let lookalike = ["short_marker", "plain_xml", "ascii_bars", "wrapper_missing"]
            .contains(&case.name.as_str());
        if lookalike {
            assert_eq!(
                ChatFormat::V4
                    .parse(&case.text, Finish::Stop, &none)
                    .content,
                case.text,
                "{}",
                case.name
            );
        }
    }
    let quoted = "Write `\n<tool_calls>\n<invoker>` or so.";
    assert_eq!(
        ChatFormat::V4
            .parse(quoted, Finish::Stop, &options(false))
            .content,
        quoted
    );
}

/// With evidence, a marker spelled out in ordinary tokens is text.
#[test]
fn spelled_out_markers_are_text_when_tokens_are_known() {
    let evidence = ParseOptions {
        evidence: true,
        ..options(true)
    };
    let mut parser = ChatFormat::V4.stream_parser(&evidence);
    parser.push("the tag </think> ends it");
    parser.push_marker("</think>");
    parser.push("It is <");
    parser.push("｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n\n<");
    parser.push_marker("｜DSML｜");
    parser.push("tool_calls><");
    parser.push_marker("｜DSML｜");
    parser.push("invoke name=\"f\"><");
    parser.push_marker("｜DSML｜");
    parser.push("parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>y</");
    parser.push_marker("｜DSML｜");
    parser.push("parameter></");
    parser.push_marker("｜DSML｜");
    parser.push("invoke></");
    parser.push_marker("｜DSML｜");
    parser.push("tool_calls>");
    let (_, parsed) = parser.finish(Finish::Stop);
    assert_eq!(
        parsed.reasoning.as_deref(),
        Some("the tag </think> ends it")
    );
    assert_eq!(
        parsed.content,
        "It is <｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">"
    );
    assert_eq!(
        parsed.calls[0].arguments,
        r#"{"a": "x</｜DSML｜parameter>y"}"#
    );
}

#[test]
fn a_torn_opening_never_shows() {
    let call = &cases()[3].text;
    for (at, _) in call.char_indices() {
        let parsed = ChatFormat::V4.parse(
            &format!("Hm.{}", &call[..at]),
            Finish::Length,
            &options(false),
        );
        let shown = parsed.content.trim_end();
        assert!(shown == "Hm." || shown == "Hm.\n\n<", "{at}: {parsed:?}");
        assert!(parsed.calls.is_empty());
    }
}

#[test]
fn markup_is_sampled_greedily_and_prose_is_not() {
    let mut parser = ChatFormat::V4.stream_parser(&options(false));
    for (text, structure) in [
        ("Hi", false),
        ("\n\n<｜DSML｜", true),
        ("tool_calls>\n<｜DSML｜invoke name=\"f\">\n", true),
        ("<｜DSML｜parameter name=\"a\" string=\"true\">", false),
        ("free text", false),
        ("</｜DSML｜parameter>", true),
        ("<｜DSML｜parameter name=\"b\" string=\"false\">{", true),
        ("\"k\\\"", false),
        ("\": 1", true),
    ] {
        parser.push(text);
        assert_eq!(parser.in_structure(), structure, "after {text:?}");
    }
}

/// What a client of the stream puts together.
fn assembled(deltas: &[Delta]) -> (String, String, Vec<(String, String)>) {
    let (mut reasoning, mut content, mut calls) =
        (String::new(), String::new(), Vec::<(String, String)>::new());
    for delta in deltas {
        match delta {
            Delta::Reasoning(text) => reasoning += text,
            Delta::Content(text) => content += text,
            Delta::Call { index, name } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Delta::Arguments { index, json } => calls[*index].1 += json,
        }
    }
    (reasoning, content, calls)
}

/// Text, and pieces of markup of all kinds: mostly broken.
fn soup() -> impl Strategy<Value = String> {
    let bits: Vec<&'static str> = vec![
        "<",
        "</",
        ">",
        "\n",
        "\n\n",
        " ",
        "text",
        "é😀",
        "\"",
        "&lt;/｜DSML｜parameter>",
        "`",
        "{\"a\": 1}",
        "12 apples",
        "</think>",
        "<think>",
        "｜DSML｜",
        "DSML｜",
        "|DSML|",
        "tool_calls>",
        "toolcalls>",
        "invoke name=\"f\">",
        "invoke name=“g”>",
        "parameter name=\"a\" string=\"true\">",
        "parameter name=\"b\" string=\"false\">",
        "parameter name=\"c\">",
        "parameter>",
        "invoke>",
        "<｜DSML｜tool_calls>",
        "<｜DSML｜invoke name=\"f\">",
        "<｜DSML｜parameter name=\"a\" string=\"true\">",
        "<｜DSML｜parameter name=\"b\">",
        "</｜DSML｜parameter>",
        "</｜DSML｜invoke>",
        "</｜DSML｜tool_calls>",
        "<tool_calls>",
        "<invoke name=\"f\">",
        "</invoke>",
        "</tool_calls>",
    ];
    prop::collection::vec(prop::sample::select(bits), 0..16).prop_map(|bits| bits.concat())
}

/// A golden completion, or soup.
fn any_text() -> impl Strategy<Value = String> {
    let golden: Vec<String> = cases().into_iter().map(|case| case.text).collect();
    prop_oneof![prop::sample::select(golden), soup()]
}

fn cut(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut chars = text.chars();
    let mut pieces: Vec<String> = sizes
        .iter()
        .map(|&n| chars.by_ref().take(n).collect())
        .collect();
    pieces.push(chars.collect());
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_cutting_gives_the_same_answer(
        text in any_text(),
        sizes in prop::collection::vec(1usize..9, 0..60),
        thinking in any::<bool>(),
        length in any::<bool>(),
    ) {
        let finish = if length { Finish::Length } else { Finish::Stop };
        let whole = ChatFormat::V4.parse(&text, finish, &options(thinking));
        let mut parser = ChatFormat::V4.stream_parser(&options(thinking));
        let mut deltas = Vec::new();
        for piece in cut(&text, &sizes) {
            deltas.extend(parser.push(&piece));
        }
        let (last, parsed) = parser.finish(finish);
        deltas.extend(last);
        prop_assert_eq!(&parsed, &whole);
        let (reasoning, content, calls) = assembled(&deltas);
        prop_assert_eq!(reasoning, parsed.reasoning.unwrap_or_default());
        prop_assert_eq!(content, parsed.content);
        if parsed.outcome == Outcome::Complete {
            prop_assert_eq!(calls, parsed.calls.iter().map(|c| (c.name.clone(), c.arguments.clone())).collect::<Vec<_>>());
        }
        for call in &parsed.calls {
            prop_assert!(serde_json::from_str::<Value>(&call.arguments).unwrap().is_object(), "{}", call.arguments);
        }
    }

    /// Text without a tag comes out as it went in.
    #[test]
    fn prose_is_left_alone(text in "[a-z`\n &;|>é]{0,30}") {
        prop_assert_eq!(ChatFormat::V4.parse(&text, Finish::Stop, &options(false)).content, text);
    }

    #[test]
    fn rendered_calls_are_read_back(
        content in "[a-z\n é]{0,8}",
        reasoning in "[a-z\n<é]{0,8}",
        calls in prop::collection::vec(call(), 1..4),
        thinking in any::<bool>(),
        ds4 in any::<bool>(),
    ) {
        let mut answer = Message::assistant(content.clone());
        answer.reasoning = thinking.then(|| reasoning.clone());
        answer.tool_calls = calls.clone();
        let mut conversation = Conversation::from(vec![Message::user("x"), answer]);
        conversation.tools = options(false).tools;
        let render = RenderOptions {
            think: if thinking { ThinkMode::On } else { ThinkMode::Off },
            dialect: if ds4 { Dialect::Ds4 } else { Dialect::Standard },
            ..RenderOptions::default()
        };
        let prompt = ChatFormat::V4.render(&conversation, &render).unwrap();
        let start = if thinking { "<｜Assistant｜><think>" } else { "<｜Assistant｜></think>" };
        let (_, text) = prompt.as_str().split_once(start).unwrap();
        let text = text.strip_suffix("<｜end▁of▁sentence｜>").unwrap();
        let parsed = ChatFormat::V4.parse(text, Finish::Stop, &options(thinking));
        prop_assert_eq!(parsed.outcome, Outcome::Complete);
        prop_assert_eq!(parsed.content, content);
        prop_assert_eq!(parsed.reasoning, thinking.then_some(reasoning));
        prop_assert_eq!(parsed.repairs, vec![]);
        prop_assert_eq!(parsed.calls.len(), calls.len());
        for (got, want) in parsed.calls.iter().zip(&calls) {
            prop_assert_eq!(&got.name, &want.name);
            let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
            prop_assert_eq!(value(&got.arguments), value(&want.arguments));
        }
    }
}

/// A call with arguments of every JSON type. No string holds a closing tag: in DeepSeek's own dialect that has no escape.
fn call() -> impl Strategy<Value = ToolCall> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6f64..1e6).prop_map(Value::from),
        "[a-z<>&\"'\n\t é😀{}\\\\|｜]{0,12}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3).prop_map(Value::from_iter),
        ]
    });
    let arguments = prop::collection::btree_map("[a-z_é]{1,6}", value, 0..4);
    ("[a-z_]{1,8}", arguments).prop_map(|(name, arguments)| ToolCall {
        id: None,
        name,
        arguments: Value::from_iter(arguments).to_string(),
    })
}
