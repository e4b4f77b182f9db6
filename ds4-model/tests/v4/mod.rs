//! The real tokenizer, read once.

use ds4_model::Tokenizer;
use std::io::Read as _;
use std::sync::OnceLock;

/// `tokenizer.json` of DeepSeek-V4.
pub(crate) fn definition() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let packed = include_bytes!("../data/tokenizer/deepseek-v4.tokenizer.json.gz");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_string(&mut text)
            .unwrap();
        text
    })
}

/// The tokenizer of DeepSeek-V4.
pub(crate) fn tokenizer() -> &'static Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| Tokenizer::from_hf_json(definition()).unwrap())
}
