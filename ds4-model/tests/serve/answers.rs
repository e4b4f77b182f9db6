//! What an answer says of its tokens, and what ends it.

use super::*;

/// The prompt of the demo model's case `name`.
fn case(name: &str) -> Vec<Token> {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../data/tokenizer/demo-answers.json")).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == name).unwrap();
    serde_json::from_value(case["prompt_ids"].clone()).unwrap()
}

/// The answer, and the bytes of all tokens that were listed.
fn listed(engine: &Engine, mut request: Request) -> (End, Vec<u8>) {
    request.logprobs = Some(2);
    let mut session = engine.session().unwrap();
    let mut answer = Answer::new(engine, request).unwrap();
    let mut bytes = Vec::new();
    loop {
        let update = answer.turn(&mut session, 64);
        for logprob in update.logprobs {
            assert!(logprob.logprob.is_finite());
            assert!(logprob.top.iter().all(|(_, p)| p.is_finite()));
            bytes.extend(logprob.bytes);
        }
        if let Some(end) = update.end {
            return (end, bytes);
        }
    }
}

#[test]
fn listed_tokens_are_the_content_up_to_a_stop_string() {
    let engine = engine();
    for stop in ["nce is P", "capital", "ris.", "nowhere"] {
        let mut asked = ask(&engine, QUESTIONS[0]);
        asked.stop = engine.stops().with_strings([stop]);
        let (end, bytes) = listed(&engine, asked);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            end.parsed.content,
            "{stop}"
        );
    }
}

#[test]
fn the_markup_of_calls_is_not_listed() {
    let engine = engine();
    let mut asked = request(&engine, case("tool_call"));
    asked.limit = 200;
    let (end, bytes) = listed(&engine, asked);
    assert_eq!(end.parsed.calls.len(), 1, "{}", end.text);
    assert_eq!(String::from_utf8(bytes).unwrap(), end.parsed.content);
    assert_eq!(end.replay.text.as_str(), end.text);
    assert!(end.replay.text.markers().any(|m| m == "｜DSML｜"));
}

#[test]
fn listed_tokens_are_the_text_whatever_characters_are_cut() {
    let engine = engine();
    let mut compared = 0;
    for seed in 0..8 {
        let mut asked = request(&engine, case("capital"));
        asked.reading = Reading::Text;
        asked.sampler = Sampler::seeded(seed);
        asked.sampler.temperature = 3.0;
        let (end, bytes) = listed(&engine, asked);
        if let Ok(text) = String::from_utf8(bytes) {
            assert_eq!(text, end.parsed.content);
            compared += 1;
        }
    }
    assert!(compared > 0);
}

#[cfg(feature = "grammar")]
mod grammar {
    use super::*;
    use ds4_model::grammar::{GrammarError, Grammars};
    use serde_json::json;

    #[test]
    fn a_turn_does_not_end_in_reasoning_when_an_answer_must_follow() {
        let engine = engine();
        let prompt = case("capital_think");
        let mut session = engine.session().unwrap();
        session.sync(&prompt).unwrap();
        // What the model would say first ends the turn.
        let first = Sampler::default().sample(session.logits());
        let parser = engine.chat().stream_parser(&ParseOptions {
            evidence: true,
            ..ParseOptions::default()
        });
        let mut asked = request(&engine, prompt);
        asked.reading = Reading::Chat(Box::new(parser));
        let ends = engine.stops().tokens().to_vec();
        asked.stop = ds4_model::Stop::new(ends.into_iter().chain([first]));
        let grammars = Grammars::new(engine.tokenizer()).unwrap();
        asked.grammar = Some(grammars.json_object().unwrap());
        let end = alone(&engine, asked);
        assert!(end.usage.completion > 1);
        let is_empty = end.parsed.content.is_empty();
        assert!(end.ended == Ended::Length || !is_empty, "{end:?}");
    }

    #[test]
    fn probabilities_are_the_models_own_under_a_grammar() {
        let engine = engine();
        let grammars = Grammars::new(engine.tokenizer()).unwrap();
        let schema = json!({ "enum": ["Lima"] });
        let mut asked = ask(&engine, QUESTIONS[0]);
        asked.grammar = Some(grammars.json_schema(&schema).unwrap());
        asked.logprobs = Some(1);
        let mut session = engine.session().unwrap();
        let mut answer = Answer::new(&engine, asked).unwrap();
        let mut total = 0.0;
        let mut bytes = Vec::new();
        while !answer.is_over() {
            for logprob in answer.turn(&mut session, 64).logprobs {
                total += logprob.logprob;
                bytes.extend(logprob.bytes);
            }
        }
        assert_eq!(bytes, b"\"Lima\"");
        // With the rest masked each would be certain.
        assert!(total < -1.0, "{total}");
    }

    #[test]
    fn schemas_that_take_too_long_are_refused_or_end_the_answer_as_such() {
        let engine = engine();
        let grammars = Grammars::new(engine.tokenizer()).unwrap();
        let long = json!({ "enum": ["x".repeat(70_000)] });
        assert!(matches!(
            grammars.json_schema(&long),
            Err(GrammarError::Schema { .. })
        ));
        let slow =
            json!({ "type": "string", "pattern": "^(.*a.{1,300}){1,20}b(.*c.{1,300}){1,20}$" });
        let mut grammar = match grammars.json_schema(&slow) {
            Ok(grammar) => grammar,
            Err(error) => {
                assert!(matches!(error, GrammarError::Schema { .. }));
                return;
            }
        };
        let begun = std::time::Instant::now();
        let mut logits = vec![0.0; engine.tokenizer().vocab_len()];
        for token in engine
            .tokenizer()
            .encode("\"aaaacaabcaaaccc", Special::None)
        {
            if grammar.mask(&mut logits).is_err() || grammar.accept(token).is_err() {
                break;
            }
        }
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn an_answer_that_its_grammar_ends_says_so() {
        let engine = engine();
        let grammars = Grammars::new(engine.tokenizer()).unwrap();
        let mut grammar = grammars.json_schema(&json!({ "type": "integer" })).unwrap();
        // A grammar that has seen something it forbids cannot go on.
        let word = engine.tokenizer().encode("x", Special::None);
        assert!(grammar.accept(word[0]).is_err());
        let mut asked = ask(&engine, QUESTIONS[0]);
        asked.grammar = Some(grammar);
        let end = alone(&engine, asked);
        assert!(matches!(end.ended, Ended::Grammar(_)), "{:?}", end.ended);
    }
}
