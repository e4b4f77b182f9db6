//! The demo model's file from chat to ids and back: what its training pipeline fed, and what it answered.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use ds4_gguf::Gguf;
use ds4_model::chat::{
    ChatFormat, Conversation, Dialect, Facts, Finish, Message, Outcome, ParseOptions,
    RenderOptions, ThinkMode, Tool,
};
use ds4_model::tokenizer::Special;
use ds4_model::{Token, Tokenizer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Answers {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    prompt: String,
    prompt_ids: Vec<Token>,
    output: String,
    output_ids: Vec<Token>,
}

fn cases() -> Vec<Case> {
    let answers: Answers =
        serde_json::from_str(include_str!("data/tokenizer/demo-answers.json")).unwrap();
    assert_eq!(answers.cases.len(), 11);
    answers.cases
}

fn demo() -> (Tokenizer, ChatFormat) {
    let file = Gguf::open(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../assets/ds4-demo.gguf"
    ))
    .unwrap();
    let tokenizer = Tokenizer::from_gguf(&file).unwrap();
    let format = ChatFormat::for_model(&Facts::from_gguf(&file), &tokenizer).unwrap();
    (tokenizer, format)
}

#[test]
fn the_files_tokenizer_gives_the_ids_of_the_training_pipeline() {
    let (tokenizer, format) = demo();
    assert_eq!(
        (tokenizer.vocab_len(), tokenizer.eos(), format.name()),
        (3072, 1, "v4")
    );
    for case in cases() {
        assert_eq!(
            tokenizer.encode(&case.prompt, Special::All),
            case.prompt_ids,
            "{}",
            case.name
        );
        assert_eq!(
            tokenizer.decode(&case.output_ids),
            case.output,
            "{}",
            case.name
        );
        assert_eq!(
            tokenizer.encode(&case.output, Special::All),
            case.output_ids,
            "{}",
            case.name
        );
    }
}

#[test]
fn its_conversations_render_to_its_prompts() {
    let (tokenizer, format) = demo();
    let tools = cases()
        .into_iter()
        .find(|case| case.name == "tool_call")
        .unwrap()
        .prompt;
    let (_, schemas) = tools.split_once("### Available Tool Schemas\n\n").unwrap();
    let tools: Vec<Tool> = schemas
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|t| Tool::new(t).unwrap())
        .collect();
    assert_eq!(tools.len(), 3);

    for case in cases() {
        let messages = match case.name.as_str() {
            "capital" | "capital_think" => vec![Message::user("What is the capital of France?")],
            "system" => {
                vec![
                    Message::system("You are a helpful assistant."),
                    Message::user("Which element has the symbol Fe?"),
                ]
            }
            "multi" => vec![
                Message::user("My name is Anna."),
                Message::assistant("Nice to meet you, Anna!"),
                Message::user("What is 6 x 7?"),
                Message::assistant("6 x 7 = 42."),
                Message::user("What is my name?"),
            ],
            "tool_call" => vec![Message::user("Tell me the weather in Tashkent.")],
            _ => continue,
        };
        let tools = if case.name == "tool_call" {
            tools.clone()
        } else {
            vec![]
        };
        let think = if case.name.ends_with("think") {
            ThinkMode::On
        } else {
            ThinkMode::Off
        };
        // The demo learnt tools without a system text as llama.cpp's template writes them.
        let options = RenderOptions {
            think,
            dialect: Dialect::Template,
            ..RenderOptions::default()
        };
        let prompt = format
            .render(&Conversation { messages, tools }, &options)
            .unwrap();
        assert_eq!(prompt.as_str(), case.prompt, "{}", case.name);
        assert_eq!(
            tokenizer.encode_segments(&prompt),
            case.prompt_ids,
            "{}",
            case.name
        );
    }
}

/// Token by token, with the markers as evidence, as a server does it.
#[test]
fn its_answers_are_read_from_their_tokens() {
    let (tokenizer, format) = demo();
    for case in cases() {
        let think = if case.prompt.ends_with("<think>") {
            ThinkMode::On
        } else {
            ThinkMode::Off
        };
        let mut parser = format.stream_parser(&ParseOptions {
            think,
            evidence: true,
            ..ParseOptions::default()
        });
        let mut decoder = tokenizer.decoder();
        for &id in case
            .output_ids
            .iter()
            .take_while(|id| !tokenizer.stop_tokens().contains(id))
        {
            if let Some(text) = decoder.push(id) {
                if tokenizer.is_marker(id) {
                    parser.push_marker(&text)
                } else {
                    parser.push(&text)
                };
            }
        }
        let (_, parsed) = parser.finish(Finish::Stop);
        assert_eq!(parsed.outcome, Outcome::Complete);
        let text = case.output.strip_suffix("<｜end▁of▁sentence｜>").unwrap();
        if case.name == "tool_call" {
            assert_eq!(
                (parsed.content.as_str(), parsed.calls[0].name.as_str()),
                ("", "get_weather")
            );
            assert_eq!(parsed.calls[0].arguments, r#"{"city": "Tashkent"}"#);
        } else {
            let (reasoning, content) = text
                .split_once("</think>")
                .map_or((None, text), |(r, c)| (Some(r), c));
            assert_eq!(
                (parsed.reasoning.as_deref(), parsed.content.as_str()),
                (reasoning, content),
                "{}",
                case.name
            );
        }
    }
}
