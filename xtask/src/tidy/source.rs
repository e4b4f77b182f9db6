//! A source file seen as code and as comments, so that a rule about one never trips over the other.

use crate::workspace::File;

/// A Rust or HIP source file. `code` and `comments` have the same lines as the file; what belongs to the other is blank.
pub(crate) struct Source {
    /// Path from the workspace root.
    pub(crate) path: String,
    /// The file without comments and without the content of string and character literals.
    pub(crate) code: String,
    /// The text of comments alone.
    pub(crate) comments: String,
    /// Lines in the file.
    pub(crate) lines: usize,
}

impl Source {
    /// Take `file` apart.
    pub(crate) fn new(file: File) -> Self {
        let (code, comments) = split(&file.text);
        Self {
            path: file.path,
            lines: file.text.lines().count(),
            code,
            comments,
        }
    }

    /// Whether `word` occurs in the code as a whole word; the first line (from 1) where it does.
    pub(crate) fn line_of_word(&self, word: &str) -> Option<usize> {
        self.code
            .lines()
            .position(|line| words(line).any(|w| w == word))
            .map(|at| at + 1)
    }
}

/// The identifiers and keywords of a line.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|w| !w.is_empty())
}

/// Where in the text the reader stands.
enum At {
    Code,
    LineComment,
    /// Inside this many nested block comments.
    BlockComment(usize),
    String,
    /// A raw string that ends with a quote and this many hashes.
    RawString(usize),
}

fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::new());
    let mut at = At::Code;
    let mut i = 0;
    // Each turn takes `take` characters and says which of the two views keeps them.
    while i < chars.len() {
        let rest = &chars[i..];
        let (take, in_code, in_comments, next) = match at {
            At::Code => match rest {
                ['/', '/', ..] => (2, false, true, At::LineComment),
                ['/', '*', ..] => (2, false, true, At::BlockComment(1)),
                ['"', ..] => (1, true, false, At::String),
                ['r', ..] if !ends_in_word(&code) || code.ends_with(['b', 'c']) => {
                    match raw_hashes(rest) {
                        Some(hashes) => (2 + hashes, true, false, At::RawString(hashes)),
                        None => (1, true, false, At::Code),
                    }
                }
                ['\'', ..] => (char_literal(rest), false, false, At::Code),
                _ => (1, true, false, At::Code),
            },
            At::LineComment => (
                1,
                false,
                true,
                if rest[0] == '\n' {
                    At::Code
                } else {
                    At::LineComment
                },
            ),
            At::BlockComment(depth) => match rest {
                ['/', '*', ..] => (2, false, true, At::BlockComment(depth + 1)),
                ['*', '/', ..] if depth == 1 => (2, false, true, At::Code),
                ['*', '/', ..] => (2, false, true, At::BlockComment(depth - 1)),
                _ => (1, false, true, At::BlockComment(depth)),
            },
            At::String => match rest {
                ['\\', _, ..] => (2, false, false, At::String),
                ['"', ..] => (1, true, false, At::Code),
                _ => (1, false, false, At::String),
            },
            At::RawString(hashes) => match rest {
                ['"', tail @ ..]
                    if tail.len() >= hashes && tail[..hashes].iter().all(|c| *c == '#') =>
                {
                    (1 + hashes, true, false, At::Code)
                }
                _ => (1, false, false, At::RawString(hashes)),
            },
        };
        for &c in &rest[..take.min(rest.len())] {
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if in_code { c } else { blank });
            comments.push(if in_comments { c } else { blank });
        }
        i += take;
        at = next;
    }
    (code, comments)
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// For text that starts with `r`: how many hashes stand before the quote of a raw string, if it is one.
fn raw_hashes(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    (rest.get(1 + hashes) == Some(&'"')).then_some(hashes)
}

/// For text that starts with `'`: the length of the character literal, or 1 when it is a lifetime.
fn char_literal(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', tail @ ..] => {
            3 + tail.iter().skip(1).position(|c| *c == '\'').unwrap_or(0) + 1
        }
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(File {
            path: "x.rs".into(),
            text: text.into(),
        })
    }

    #[test]
    fn words_in_comments_and_strings_are_not_code() {
        let s = source(
            "// unsafe\nlet a = \"unsafe\"; /* unsafe /* unsafe */ unsafe */\nlet b = r#\"unsafe \" unsafe\"#;\nlet c = br\"unsafe\";\n",
        );
        assert_eq!(s.line_of_word("unsafe"), None);
        assert_eq!(s.comments.matches("unsafe").count(), 4);
    }

    #[test]
    fn code_after_every_kind_of_literal_is_seen() {
        for before in [
            "'\"'",
            "'\\''",
            "'\\\\'",
            "'\\u{1F600}'",
            "\"a\\\"b\"",
            "r\"\\\"",
            "r##\"a\"#b\"##",
            "b'\"'",
            "&'static str",
            "/* a */",
        ] {
            let s = source(&format!("let a = {before};\nunsafe {{}}\n"));
            assert_eq!(s.line_of_word("unsafe"), Some(2), "after {before}");
        }
    }

    #[test]
    fn a_word_is_whole() {
        assert_eq!(
            source("#![expect(unsafe_code)]\nfn not_unsafe() {}\n").line_of_word("unsafe"),
            None
        );
    }

    #[test]
    fn views_keep_the_lines_of_the_file() {
        let text = "let a = \"one\ntwo\"; // three\n/* four\nfive */ let b = 1;\n";
        let s = source(text);
        assert_eq!(
            (s.code.lines().count(), s.comments.lines().count(), s.lines),
            (4, 4, 4)
        );
        assert!(s.code.lines().nth(3).unwrap().contains("let b"));
        assert!(s.comments.lines().nth(1).unwrap().contains("three"));
    }
}
