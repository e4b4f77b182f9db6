//! The tokenizer against Hugging Face's own pipeline: golden files, and the same library with the published patterns.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod v4;

use ds4_model::tokenizer::{Special, StreamDecoder, Token, Tokenizer};
use proptest::prelude::*;
use serde::Deserialize;
use std::sync::OnceLock;
use v4::{definition, tokenizer};

#[derive(Deserialize)]
struct Strings {
    cases: Vec<StringCase>,
    invalid_utf8: Vec<InvalidCase>,
}

#[derive(Deserialize)]
struct StringCase {
    text: String,
    ids: Vec<Token>,
    ids_plain: Option<Vec<Token>>,
    pieces: Vec<String>,
}

#[derive(Deserialize)]
struct InvalidCase {
    name: String,
    bytes_hex: String,
    lossy_text: String,
    lossy_ids: Vec<Token>,
}

/// Hexadecimal digits, two a byte.
fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn strings() -> Strings {
    serde_json::from_str(include_str!("data/tokenizer/v4-strings.json")).unwrap()
}

fn stream(mut decoder: StreamDecoder, ids: &[Token]) -> String {
    let mut text: String = ids.iter().filter_map(|&id| decoder.push(id)).collect();
    text.extend(decoder.finish());
    text
}

/// All 398, with added tokens and without, and back.
#[test]
fn golden_strings_have_the_reference_ids() {
    let cases = strings().cases;
    assert_eq!(cases.len(), 398);
    for case in &cases {
        assert_eq!(
            tokenizer().encode(&case.text, Special::All),
            case.ids,
            "{:?}",
            case.text
        );
        let plain = case.ids_plain.as_ref().unwrap_or(&case.ids);
        assert_eq!(
            &tokenizer().encode(&case.text, Special::None),
            plain,
            "{:?} as plain text",
            case.text
        );
        for ids in [&case.ids, plain] {
            assert_eq!(tokenizer().decode(ids), case.text);
            assert_eq!(stream(tokenizer().decoder(), ids), case.text);
        }
    }
}

/// Every token lies within one piece.
#[test]
fn golden_strings_split_into_the_reference_pieces() {
    for case in strings().cases {
        assert_eq!(
            tokenizer().pieces(&case.text),
            case.pieces,
            "{:?}",
            case.text
        );
    }
}

#[test]
fn invalid_utf8_is_replaced_and_counted() {
    let cases = strings().invalid_utf8;
    assert_eq!(cases.len(), 11);
    for case in cases {
        let (ids, replaced) = tokenizer().encode_bytes(&bytes(&case.bytes_hex), Special::All);
        assert_eq!(ids, case.lossy_ids, "{}", case.name);
        assert_eq!(
            replaced,
            case.lossy_text.matches('\u{FFFD}').count(),
            "{}",
            case.name
        );
    }
}

#[derive(Deserialize)]
struct Decode {
    byte_token_ids: Vec<Token>,
    cases: Vec<DecodeCase>,
}

#[derive(Deserialize)]
struct DecodeCase {
    text: String,
    ids: Vec<Token>,
    token_bytes_hex: Vec<String>,
}

#[test]
fn tokens_have_the_reference_bytes() {
    let decode: Decode =
        serde_json::from_str(include_str!("data/tokenizer/v4-decode.json")).unwrap();
    assert_eq!(decode.byte_token_ids.len(), 256);
    for (byte, &id) in (0..=255u8).zip(&decode.byte_token_ids) {
        assert_eq!(tokenizer().token_bytes(id), [byte]);
    }
    for case in &decode.cases {
        assert_eq!(tokenizer().encode(&case.text, Special::All), case.ids);
        for (&id, hex) in case.ids.iter().zip(&case.token_bytes_hex) {
            assert_eq!(tokenizer().token_bytes(id), bytes(hex));
        }
        let mut decoder = tokenizer().decoder();
        let mut shown = String::new();
        for &id in &case.ids {
            shown.extend(decoder.push(id));
            assert!(
                case.text.starts_with(&shown),
                "{shown:?}: never half a character"
            );
        }
        assert_eq!(shown, case.text);
    }
}

#[test]
fn special_tokens_are_those_of_the_file() {
    let t = tokenizer();
    assert_eq!(t.vocab_len(), 129_280);
    assert_eq!(
        (t.bos(), t.eos(), t.stop_tokens()),
        (Some(0), 1, [1].as_slice())
    );
    assert_eq!(t.markers().count(), 1283);
    for (text, id, hidden) in [
        ("<｜User｜>", 128_803, true),
        ("<｜Assistant｜>", 128_804, true),
        ("<think>", 128_821, false),
        ("</think>", 128_822, false),
        ("｜DSML｜", 128_825, false),
        ("<｜image｜>", 129_279, true),
    ] {
        assert_eq!(
            (t.id_of(text), t.is_control(id)),
            (Some(id), hidden),
            "{text}"
        );
        assert_eq!(t.encode(text, Special::All), [id]);
        assert!(t.encode(text, Special::None).len() > 1);
    }
    assert_eq!(
        (t.id_of(" the"), t.id_of("<|User|>")),
        (Some(t.encode(" the", Special::None)[0]), None)
    );
    assert!(t.token_bytes(129_280).is_empty() && t.token_bytes(Token::MAX).is_empty());
    assert_eq!(t.decode(&[129_280, 19_923, Token::MAX]), "Hello");
}

/// Hugging Face's whole pipeline, published patterns and backtracking included.
fn reference() -> &'static tokenizers::Tokenizer {
    static REFERENCE: OnceLock<tokenizers::Tokenizer> = OnceLock::new();
    REFERENCE.get_or_init(|| definition().parse().unwrap())
}

/// Characters on which splitting rules differ: every class and blank there is, and text that looks like markers.
fn mixed() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        "[ \t\n\r\u{a0}\u{85}\u{2003}\u{3000}\u{b}]{1,3}",
        "[a-zA-Zéß]{1,4}",
        "[0-9½②Ⅷ٣]{1,5}",
        "[!\"#'.,;«»。、・ー—\\-_|~]{1,3}",
        "[一龥鿿ぁゟァヿ々가힣ｱ]{1,3}",
        "[\u{301}\u{94d}\u{200d}\u{fe0f}\u{fffd}😀👩€\u{0}\u{7f}\u{200b}]{1,2}",
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("｜DSML｜".to_owned()),
        Just("<｜User｜>".to_owned()),
        Just("<｜place▁holder▁no▁10｜>".to_owned()),
        "\\PC{1,2}",
    ];
    prop::collection::vec(bit, 0..10).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_has_the_ids_of_the_whole_reference_pipeline(text in mixed()) {
        let want = reference().encode(text.as_str(), false).unwrap();
        prop_assert_eq!(tokenizer().encode(&text, Special::All), want.get_ids());
    }

    #[test]
    fn decoding_undoes_encoding(text in mixed()) {
        for special in [Special::None, Special::All] {
            let ids = tokenizer().encode(&text, special);
            prop_assert_eq!(tokenizer().decode(&ids), text.clone());
            prop_assert_eq!(stream(tokenizer().decoder(), &ids), text.clone());
        }
    }

    #[test]
    fn any_bytes_encode_like_their_lossy_text(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let lossy = String::from_utf8_lossy(&bytes);
        let (ids, replaced) = tokenizer().encode_bytes(&bytes, Special::None);
        prop_assert_eq!(&ids, &tokenizer().encode(&lossy, Special::None));
        let written: usize = bytes.utf8_chunks().map(|c| c.valid().matches(char::REPLACEMENT_CHARACTER).count()).sum();
        prop_assert_eq!(replaced + written, lossy.matches(char::REPLACEMENT_CHARACTER).count());
    }
}

/// Long runs that a backtracking or quadratic splitter stumbles over. Eight times the text may take at most 32 times as
/// long: linear is 8, with the merge queue's logarithm 10, quadratic 64.
#[test]
fn time_is_near_linear_in_runs_of_one_class() {
    for unit in ["a", " ", " \n", "1", "字", "!", "\u{301}", "\u{0}", "<｜"] {
        let time = |bytes: usize| {
            let text = unit.repeat(bytes / unit.len());
            let run = || {
                let start = std::time::Instant::now();
                let _ = tokenizer().encode(&text, Special::All);
                start.elapsed()
            };
            (0..4).map(|_| run()).min().unwrap()
        };
        let (short, long) = (time(12_500), time(100_000));
        let floor = std::time::Duration::from_micros(200);
        assert!(
            long < 32 * short.max(floor),
            "{unit:?}: {short:?}, eight times the text {long:?}"
        );
    }
}

/// `Tokenizer` only needs `&self`, whatever the thread.
#[test]
fn threads_share_one_tokenizer() {
    let text = "Some text, 一些文字 and ｜DSML｜ 12345.";
    let want = tokenizer().encode(text, Special::All);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(tokenizer().clone().encode(text, Special::All), want));
        }
    });
}

#[test]
fn a_definition_of_another_kind_is_refused_by_name() {
    let small = r#"{"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "BPE", "vocab": {}, "merges": []}}"#;
    let message = Tokenizer::from_hf_json(small).unwrap_err().to_string();
    assert!(
        message.contains("pre_tokenizer") && message.contains("Whitespace"),
        "{message}"
    );
    assert!(Tokenizer::from_hf_json("{").is_err());
}
