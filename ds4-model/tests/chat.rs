//! Rendering against DeepSeek's encoder, llama.cpp's template and antirez/ds4's server.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod v4;

use ds4_model::Token;
use ds4_model::chat::{
    ChatFormat, Conversation, Dialect, Effort, Message, RenderOptions, ThinkMode,
};
use ds4_model::tokenizer::Special;
use serde::Deserialize;
use serde_json::value::RawValue;
use v4::tokenizer;

#[derive(Deserialize)]
struct Conversations {
    cases: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(skip)]
    conversation: Conversation,
    thinking: bool,
    reasoning_effort: Option<Effort>,
    reference: Rendering,
    reference_0731: Option<Rendering>,
    llamacpp_template: Option<Rendering>,
    ds4_server: Option<Rendering>,
}

#[derive(Clone, Deserialize)]
struct Rendering {
    text: String,
    ids: Vec<Token>,
    ids_safe: Option<Vec<Token>>,
}

impl Case {
    fn options(&self, dialect: Dialect) -> RenderOptions {
        let think = if self.thinking {
            ThinkMode::On
        } else {
            ThinkMode::Off
        };
        RenderOptions {
            think,
            effort: self.reasoning_effort,
            dialect,
            ..RenderOptions::default()
        }
    }

    fn check(&self, format: &ChatFormat, dialect: Dialect, want: &Rendering) {
        let prompt = format
            .render(&self.conversation, &self.options(dialect))
            .unwrap();
        assert_eq!(prompt.as_str(), want.text, "{} as {dialect:?}", self.name);
        assert_eq!(
            tokenizer().encode(prompt.as_str(), Special::All),
            want.ids,
            "{}, markers anywhere",
            self.name
        );
        if dialect == Dialect::Reference || want.ids_safe.is_some() {
            let safe = want.ids_safe.as_ref().unwrap_or(&want.ids);
            assert_eq!(
                &tokenizer().encode_segments(&prompt),
                safe,
                "{}, only the renderer's markers",
                self.name
            );
        }
    }
}

/// Indented JSON on one line, as Python writes it and as the clients sent it: one dialect keeps a client's blanks.
fn one_line(json: &str) -> String {
    json.lines()
        .map(|line| line.trim_start().to_owned() + if line.ends_with(',') { " " } else { "" })
        .collect()
}

fn cases() -> Vec<Case> {
    let all: Conversations =
        serde_json::from_str(include_str!("data/tokenizer/v4-conversations.json")).unwrap();
    assert_eq!(all.cases.len(), 27);
    let case = |raw: &RawValue| {
        let json = one_line(raw.get());
        Case {
            conversation: serde_json::from_str(&json).unwrap(),
            ..serde_json::from_str(&json).unwrap()
        }
    };
    all.cases.iter().map(|raw| case(raw)).collect()
}

#[test]
fn conversations_render_as_deepseeks_encoder_renders_them() {
    for case in cases() {
        case.check(&ChatFormat::V4, Dialect::Reference, &case.reference);
        case.check(
            &ChatFormat::V4_0731,
            Dialect::Reference,
            case.reference_0731.as_ref().unwrap_or(&case.reference),
        );
    }
}

/// A rendering is only in the file where it differs from the reference.
#[test]
fn conversations_render_as_other_programs_render_them() {
    for case in cases() {
        case.check(
            &ChatFormat::V4,
            Dialect::Template,
            case.llamacpp_template.as_ref().unwrap_or(&case.reference),
        );
        case.check(
            &ChatFormat::V4,
            Dialect::Ds4,
            case.ds4_server.as_ref().unwrap_or(&case.reference),
        );
    }
}

/// The standard dialect is the reference but for several system messages.
#[test]
fn the_standard_dialect_differs_only_where_it_says() {
    for case in cases() {
        let mut want = case.reference.clone();
        if case.name == "two_systems" {
            want = case.ds4_server.clone().unwrap();
        }
        case.check(&ChatFormat::V4, Dialect::Standard, &want);
    }
    let developer = |role: &str| {
        let json = format!(
            r#"{{"messages": [{{"role": "{role}", "content": "Be brief."}}, {{"role": "user", "content": "Hi"}}]}}"#
        );
        let conversation: Conversation = serde_json::from_str(&json).unwrap();
        ChatFormat::V4
            .render(&conversation, &RenderOptions::default())
            .unwrap()
    };
    assert_eq!(developer("developer"), developer("system"));
}

#[derive(Deserialize)]
struct Official {
    cases: Vec<OfficialCase>,
}

#[derive(Deserialize)]
struct OfficialCase {
    name: String,
    input: Box<RawValue>,
    thinking: bool,
    text: String,
    ids: Vec<Token>,
}

#[test]
fn deepseeks_own_vectors_render_exactly() {
    let official: Official =
        serde_json::from_str(include_str!("data/tokenizer/v4-official-vectors.json")).unwrap();
    assert_eq!(official.cases.len(), 4);
    for case in official.cases {
        let conversation = match case.input.get() {
            list if list.starts_with('[') => {
                Conversation::from(serde_json::from_str::<Vec<Message>>(list).unwrap())
            }
            object => serde_json::from_str(object).unwrap(),
        };
        let think = if case.thinking {
            ThinkMode::On
        } else {
            ThinkMode::Off
        };
        let options = RenderOptions {
            think,
            dialect: Dialect::Reference,
            ..RenderOptions::default()
        };
        let prompt = ChatFormat::V4.render(&conversation, &options).unwrap();
        assert_eq!(prompt.as_str(), case.text, "{}", case.name);
        assert_eq!(
            tokenizer().encode_segments(&prompt),
            case.ids,
            "{}",
            case.name
        );
    }
}
