//! Which pieces of a text may become one token: the pre-tokenizer patterns, by the name in `tokenizer.ggml.pre`.
//!
//! A rule is a list of passes. Each pass isolates its matches and leaves what lies between them to the next pass;
//! what the last pass leaves over is one piece a gap.
//!
//! The published patterns end in `\s+(?!\S)|\s+`: a run of blanks gives its last character to the word that follows.
//! Written here without the look-ahead, as `\s+` plus [`give_back`], so that matching needs no backtracking: time is
//! linear in the text and no input, however long its runs, exceeds a limit. `tests/tokenizer.rs` holds the pieces of the
//! published patterns against these.
//! Source: `pre_tokenizer` of DeepSeek-V4's tokenizer.json; ggml-org/llama.cpp:src/llama-vocab.cpp (`glm4`).

use super::Error;
use regex::Regex;

/// A splitting rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pre {
    /// DeepSeek V3 and V4: digits by three, Chinese and kana runs, then words, punctuation and blanks.
    DeepSeek,
    /// GLM-4 and GLM-5.
    Glm,
}

/// Names in `tokenizer.ggml.pre`.
const NAMES: [(&str, Pre); 4] = [
    ("joyai-llm", Pre::DeepSeek),
    ("deepseek-v3", Pre::DeepSeek),
    ("glm4", Pre::Glm),
    ("chatglm-bpe", Pre::Glm),
];

/// Full patterns as published, look-ahead included.
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
        "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
        "| ?[\\p{P}\\p{S}]+[\r\n]*",
        "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
    ),
];
const GLM: [&str; 1] = [concat!(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}",
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*",
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)];
const LOOK_AHEAD: &str = r"|\s+(?!\S)";

impl Pre {
    /// The rule that a file's `tokenizer.ggml.pre` names.
    ///
    /// # Errors
    /// [`Error::UnknownPre`], which lists the names that are known.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, pre)| pre)
            .ok_or_else(|| Error::UnknownPre {
                found: name.to_owned(),
                supported: NAMES.map(|(known, _)| known).join(", "),
            })
    }

    /// The rule whose published patterns are exactly `patterns`.
    pub(super) fn by_patterns(patterns: &[&str]) -> Option<Self> {
        [Self::DeepSeek, Self::Glm]
            .into_iter()
            .find(|pre| pre.patterns() == patterns)
    }

    /// The published patterns, one a pass.
    #[must_use]
    pub fn patterns(self) -> &'static [&'static str] {
        match self {
            Self::DeepSeek => &DEEPSEEK,
            Self::Glm => &GLM,
        }
    }
}

/// A rule ready to use.
#[derive(Debug)]
pub(super) struct Splitter {
    isolate: Vec<Regex>,
    words: Regex,
}

impl Splitter {
    pub(super) fn new(pre: Pre) -> Self {
        let compile = |pattern: &str| {
            Regex::new(&pattern.replace(LOOK_AHEAD, ""))
                .expect("the patterns above are valid without their look-ahead")
        };
        let (words, isolate) = pre.patterns().split_last().expect("every rule has a pass");
        Self {
            isolate: isolate.iter().map(|p| compile(p)).collect(),
            words: compile(words),
        }
    }

    /// Call `piece` with the pieces of `text`, in order; joined they are `text`.
    pub(super) fn split<'t>(&self, text: &'t str, piece: &mut impl FnMut(&'t str)) {
        self.pass(0, text, piece);
    }

    fn pass<'t>(&self, pass: usize, text: &'t str, piece: &mut impl FnMut(&'t str)) {
        let Some(isolate) = self.isolate.get(pass) else {
            return self.words(text, piece);
        };
        let mut from = 0;
        for found in isolate.find_iter(text) {
            self.pass(pass + 1, &text[from..found.start()], piece);
            piece(found.as_str());
            from = found.end();
        }
        self.pass(pass + 1, &text[from..], piece);
    }

    fn words<'t>(&self, text: &'t str, piece: &mut impl FnMut(&'t str)) {
        let mut from = 0;
        while let Some(found) = self.words.find_at(text, from) {
            if found.start() > from {
                piece(&text[from..found.start()]);
            }
            let end = if found.end() < text.len() {
                give_back(found.as_str())
            } else {
                found.len()
            };
            from = found.start() + end;
            piece(&text[found.start()..from]);
        }
        if from < text.len() {
            piece(&text[from..]);
        }
    }
}

/// Bytes of a match that is followed by more text once a run of blanks has returned its last character.
///
/// Only the last alternative can end in a blank that is no line break, and it always stops before a non-blank.
fn give_back(found: &str) -> usize {
    match found.chars().next_back() {
        Some(last)
            if last.is_whitespace()
                && !matches!(last, '\r' | '\n')
                && found.len() > last.len_utf8() =>
        {
            found.len() - last.len_utf8()
        }
        _ => found.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pre: Pre, text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        Splitter::new(pre).split(text, &mut |p| out.push(p));
        out
    }

    #[test]
    fn a_run_of_blanks_gives_its_last_to_the_next_word() {
        assert_eq!(pieces(Pre::DeepSeek, "  Hello  "), [" ", " Hello", "  "]);
        assert_eq!(pieces(Pre::DeepSeek, "a \t1"), ["a", " \t", "1"]);
        assert_eq!(
            pieces(Pre::Glm, "I'll  go\n\n  42"),
            ["I", "'ll", " ", " go", "\n\n", " ", " ", "42"]
        );
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let message = Pre::by_name("llama-bpe").unwrap_err().to_string();
        assert!(
            message.contains("llama-bpe")
                && message.contains("joyai-llm")
                && message.contains("glm4"),
            "{message}"
        );
    }
}
