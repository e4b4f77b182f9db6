//! The tokenizer of a GGUF file: the same as that of the definition it was converted from, and errors for broken ones.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod v4;

use ds4_gguf::{Gguf, Metadata, Plan, Value, Writer};
use ds4_model::Tokenizer;
use ds4_model::tokenizer::{Error, Pre, Special, Vocab};
use serde::Deserialize;
use std::collections::HashMap;
use v4::{definition, tokenizer};

/// A file with this metadata and no tensors.
fn file(metadata: Metadata) -> Gguf {
    let plan = Plan::new(metadata).unwrap();
    Gguf::from_vec(Writer::new(Vec::new(), plan).unwrap().finish().unwrap()).unwrap()
}

/// The keys of a file with every byte, one merge, and three added tokens.
fn small() -> Metadata {
    let mut tokens: Vec<String> = (0..=255).map(|b| Vocab::symbol(b).to_string()).collect();
    tokens.extend(["he", "<｜end▁of▁sentence｜>", "<think>", "<|turn|>"].map(str::to_owned));
    let mut types = vec![1i32; 257];
    types.extend([3, 4, 3]);
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "joyai-llm");
    metadata.set("tokenizer.ggml.tokens", tokens);
    metadata.set("tokenizer.ggml.token_type", types);
    metadata.set("tokenizer.ggml.merges", vec!["h e".to_owned()]);
    metadata.set("tokenizer.ggml.eos_token_id", 257u32);
    metadata
}

fn with(key: &str, value: impl Into<Value>) -> Result<Tokenizer, Error> {
    let mut metadata = small();
    metadata.set(&format!("tokenizer.ggml.{key}"), value);
    Tokenizer::from_gguf(&file(metadata))
}

fn without(key: &str) -> Result<Tokenizer, Error> {
    let mut metadata = small();
    metadata.remove(&format!("tokenizer.ggml.{key}"));
    Tokenizer::from_gguf(&file(metadata))
}

#[derive(Deserialize)]
struct Definition {
    added_tokens: Vec<Added>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: usize,
    content: String,
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, usize>,
    merges: Vec<String>,
}

/// The real tables as a converter writes them: with kinds, and without.
#[test]
fn a_converted_file_encodes_like_its_definition() {
    let definition: Definition = serde_json::from_str(definition()).unwrap();
    let mut tokens = vec![String::new(); tokenizer().vocab_len()];
    let mut types = vec![1i32; tokens.len()];
    for (text, id) in definition.model.vocab {
        tokens[id] = text;
    }
    for added in definition.added_tokens {
        let framed =
            |open, close| added.content.starts_with(open) && added.content.ends_with(close);
        let framed = framed("<｜", "｜>") || framed("<|", "|>");
        types[added.id] = if added.special || framed { 3 } else { 4 };
        tokens[added.id] = added.content;
    }
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "joyai-llm");
    metadata.set("tokenizer.ggml.tokens", tokens);
    metadata.set("tokenizer.ggml.merges", definition.model.merges);
    metadata.set("tokenizer.ggml.add_bos_token", false);
    let bare = Tokenizer::from_gguf(&file(metadata.clone())).unwrap();
    metadata.set("tokenizer.ggml.token_type", types);
    metadata.set("tokenizer.ggml.bos_token_id", 0u32);
    metadata.set("tokenizer.ggml.eos_token_id", 1u32);
    metadata.set("tokenizer.ggml.padding_token_id", 2u32);
    let full = Tokenizer::from_gguf(&file(metadata)).unwrap();

    let text = "<｜User｜>Zwölf Boxkämpfer jagen Viktor 12345 quer über den Sylter Deich.\n\n一些文字<think>｜DSML｜<|EOT|><dsml:";
    for other in [&bare, &full] {
        assert_eq!(
            other.encode(text, Special::All),
            tokenizer().encode(text, Special::All)
        );
        assert_eq!(
            other.encode(text, Special::None),
            tokenizer().encode(text, Special::None)
        );
        assert_eq!(
            (other.bos(), other.stop_tokens()),
            (Some(0), [1].as_slice())
        );
        assert_eq!(other.markers().count(), 1283);
        assert!((0..129_280).all(|id| other.token_bytes(id) == tokenizer().token_bytes(id)));
    }
    assert!((0..129_280).all(|id| full.is_control(id) == tokenizer().is_control(id)));
}

#[test]
fn a_small_file_makes_a_tokenizer() {
    let t = Tokenizer::from_gguf(&file(small())).unwrap();
    assert_eq!(t.encode("he<think>", Special::All), [256, 258]);
    assert_eq!((t.bos(), t.eos(), t.add_bos()), (None, 257, false));
    let ends = with("eot_token_id", 259u32).unwrap();
    assert_eq!(ends.stop_tokens(), [257, 259]);
    assert_eq!(
        with("token_type", vec![1u8; 260])
            .unwrap()
            .markers()
            .count(),
        0
    );
}

#[test]
fn a_rule_named_by_the_caller_overrides_the_file() {
    let mut metadata = small();
    metadata.set("tokenizer.ggml.pre", "llama-bpe");
    let file = file(metadata);
    assert!(
        matches!(Tokenizer::from_gguf(&file), Err(Error::UnknownPre { found, .. }) if found == "llama-bpe")
    );
    assert_eq!(
        Tokenizer::from_gguf_with(&file, Pre::DeepSeek)
            .unwrap()
            .encode("he", Special::None),
        [256]
    );
}

#[test]
fn broken_tables_are_refused_by_name() {
    for key in ["model", "pre", "tokens", "merges"] {
        let error = without(key).unwrap_err();
        assert!(
            matches!(&error, Error::Metadata(source) if source.to_string().contains(key)),
            "{key}: {error:?}"
        );
    }
    assert!(matches!(with("model", "llama"), Err(Error::Model { found }) if found == "llama"));
    assert!(matches!(
        with("token_type", vec![1i32; 3]),
        Err(Error::Length {
            got: 3,
            want: 260,
            ..
        })
    ));
    assert!(matches!(
        with("token_type", vec!["x".to_owned(); 260]),
        Err(Error::Metadata(_))
    ));
    assert!(matches!(
        with("tokens", vec![1u32; 3]),
        Err(Error::Metadata(_))
    ));
    assert!(matches!(
        with("eos_token_id", 260u32),
        Err(Error::SpecialId {
            id: 260,
            len: 260,
            ..
        })
    ));
    assert!(matches!(
        with("eos_token_id", -1i32),
        Err(Error::Metadata(_))
    ));
    let one = with("tokens", vec!["a".to_owned(); 260]).unwrap_err();
    assert!(
        matches!(
            one,
            Error::MissingBytes {
                missing: 255,
                first: 0
            }
        ),
        "{one:?}"
    );
    let mut metadata = small();
    metadata.remove("tokenizer.ggml.eos_token_id");
    metadata.set("tokenizer.ggml.token_type", vec![1i32; 260]);
    assert!(matches!(
        Tokenizer::from_gguf(&file(metadata)),
        Err(Error::NoEos { .. })
    ));
}

/// Merge lines that are none, or of tokens that do not exist, are ignored; duplicates keep the lowest id; a token that is
/// not UTF-8 keeps its bytes.
#[test]
fn odd_tables_are_survived() {
    let merges = ["", "h", "h e e", "x yz", "h e", "  ", "he he"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(
        with("merges", merges)
            .unwrap()
            .encode("hehe", Special::None),
        [256, 256]
    );
    let mut tokens: Vec<Vec<u8>> = (0..=255)
        .map(|b| Vocab::symbol(b).to_string().into_bytes())
        .collect();
    tokens.extend([
        b"he".to_vec(),
        b"<end>".to_vec(),
        b"he".to_vec(),
        vec![0xff, 0xfe],
    ]);
    let mut metadata = small();
    metadata.set(
        "tokenizer.ggml.tokens",
        ds4_gguf::ArrayBuf::strings(&tokens),
    );
    let t = Tokenizer::from_gguf(&file(metadata)).unwrap();
    assert_eq!(t.token_bytes(259), [0xff, 0xfe]);
    assert_eq!(t.encode("he", Special::None), [256]);
    assert_eq!(t.decode(&[259]), "\u{fffd}\u{fffd}");
}
