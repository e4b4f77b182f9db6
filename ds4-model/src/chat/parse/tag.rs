//! Recognising one DSML tag at the start of a text that may still be arriving.
//!
//! ```text
//! tag    := "<" "/"? mark? name (blank attribute)* blank? ">"
//! mark   := bar* "DSML" bar+          bar := "｜" | "|", at most three in a row
//! name   := "tool_calls" | "toolcalls" | "tool_call" | "function_calls" | "invoke" | "parameter"
//! attribute := word "=" quote … quote
//! ```
//! The canonical mark is `｜DSML｜`, one token. The others are what models have been seen to write instead: a bar lost or
//! doubled, ASCII bars, or no mark at all.

use super::super::marker;

/// What the text starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scan<T> {
    /// That thing, and the bytes it takes.
    Is(T, usize),
    /// Something else, whatever may follow.
    No,
    /// More text decides.
    More,
}

/// What a tag is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// The wrapper around calls.
    Block,
    /// One call.
    Invoke,
    /// One argument.
    Parameter,
}

const NAMES: [(&str, Name); 6] = [
    ("tool_calls", Name::Block),
    ("toolcalls", Name::Block),
    ("tool_call", Name::Block),
    ("function_calls", Name::Block),
    ("invoke", Name::Invoke),
    ("parameter", Name::Parameter),
];

/// Longer attribute values are no names: the bound keeps what is held back small.
const MAX_VALUE: usize = 1024;
const MAX_ATTRIBUTES: usize = 8;
const MAX_BARS: usize = 3;

/// A whole tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) closing: bool,
    /// The mark as written, empty without one.
    pub(super) mark: String,
    pub(super) name: Name,
    attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Bytes from the start of the tag to the mark's token, when it has the token.
    pub(super) fn token_at(&self) -> Option<usize> {
        Some(if self.closing { 2 } else { 1 } + self.mark.find(marker::DSML)?)
    }
}

/// Unwrap a scan, or return what it says.
macro_rules! need {
    ($scan:expr) => {
        match $scan {
            Scan::Is(value, len) => (value, len),
            Scan::No => return Scan::No,
            Scan::More => return Scan::More,
        }
    };
}

/// The tag that `text` starts with.
pub(super) fn scan(text: &str) -> Scan<Tag> {
    let Some(rest) = text.strip_prefix('<') else {
        return if text.is_empty() {
            Scan::More
        } else {
            Scan::No
        };
    };
    let closing = rest.starts_with('/');
    let mut at = 1 + usize::from(closing);
    let ((), mark_len) = need!(mark(&text[at..]));
    let mark = text[at..at + mark_len].to_owned();
    at += mark_len;
    let (name, len) = need!(name(&text[at..]));
    at += len;
    let mut attributes = Vec::new();
    loop {
        let rest = text[at..].trim_start();
        let blank = text.len() - at - rest.len();
        at += blank;
        match rest.chars().next() {
            None if blank > MAX_VALUE => return Scan::No,
            None => return Scan::More,
            Some('>') => {
                return Scan::Is(
                    Tag {
                        closing,
                        mark,
                        name,
                        attributes,
                    },
                    at + 1,
                );
            }
            Some(_) if blank == 0 => return Scan::No,
            Some(_) => {}
        }
        if attributes.len() == MAX_ATTRIBUTES {
            return Scan::No;
        }
        let (attribute, len) = need!(attribute(rest));
        attributes.push(attribute);
        at += len;
    }
}

/// A mark, possibly empty.
fn mark(text: &str) -> Scan<()> {
    let bars = |text: &str| -> usize {
        text.chars()
            .take(MAX_BARS)
            .take_while(|c| is_bar(*c))
            .map(char::len_utf8)
            .sum()
    };
    let before = bars(text);
    let rest = &text[before..];
    if let Some(after) = rest.strip_prefix("DSML") {
        return match bars(after) {
            0 if after.is_empty() => Scan::More,
            0 => Scan::No,
            _ if after.chars().count() < MAX_BARS && after.chars().all(is_bar) => Scan::More,
            after => Scan::Is((), before + "DSML".len() + after),
        };
    }
    match () {
        () if "DSML".starts_with(rest) => Scan::More,
        () if before == 0 => Scan::Is((), 0),
        () => Scan::No,
    }
}

fn is_bar(c: char) -> bool {
    matches!(c, '｜' | '|')
}

fn name(text: &str) -> Scan<Name> {
    let len = text
        .bytes()
        .take_while(|b| b.is_ascii_alphabetic() || *b == b'_')
        .count();
    let word = &text[..len];
    if len == text.len() {
        return if NAMES.iter().any(|(known, _)| known.starts_with(word)) {
            Scan::More
        } else {
            Scan::No
        };
    }
    match NAMES.iter().find(|(known, _)| *known == word) {
        Some(&(_, name)) => Scan::Is(name, len),
        None => Scan::No,
    }
}

/// `name="value"`; typographic and single quotes are taken too.
fn attribute(text: &str) -> Scan<(String, String)> {
    let len = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    let (name, rest) = text.split_at(len);
    match rest.chars().next() {
        None if len <= MAX_VALUE => return Scan::More,
        Some('=') if len > 0 => {}
        _ => return Scan::No,
    }
    let quoted = &rest[1..];
    let closers: &[char] = match quoted.chars().next() {
        None => return Scan::More,
        Some('"') => &['"'],
        Some('\'') => &['\''],
        Some('“' | '”') => &['”', '"'],
        Some(_) => return Scan::No,
    };
    let open = quoted.chars().next().map_or(0, char::len_utf8);
    let value = &quoted[open..];
    match value.find(closers) {
        Some(end) if end <= MAX_VALUE => {
            let close = value[end..].chars().next().map_or(0, char::len_utf8);
            Scan::Is(
                (name.to_owned(), value[..end].to_owned()),
                len + 1 + open + end + close,
            )
        }
        None if value.len() <= MAX_VALUE => Scan::More,
        _ => Scan::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<(bool, String, Name, usize)> {
        match scan(text) {
            Scan::Is(tag, len) => Some((tag.closing, tag.mark, tag.name, len)),
            _ => None,
        }
    }

    #[test]
    fn canonical_and_drifted_tags_are_recognised() {
        for (text, mark, name) in [
            ("<｜DSML｜tool_calls>", "｜DSML｜", Name::Block),
            ("<DSML｜invoke>", "DSML｜", Name::Invoke),
            ("<｜｜DSML｜｜parameter>", "｜｜DSML｜｜", Name::Parameter),
            ("<|DSML|function_calls>", "|DSML|", Name::Block),
            ("<toolcalls >", "", Name::Block),
        ] {
            assert_eq!(
                whole(text),
                Some((false, mark.to_owned(), name, text.len())),
                "{text}"
            );
            let closing = text.replacen('<', "</", 1);
            assert_eq!(
                whole(&closing),
                Some((true, mark.to_owned(), name, closing.len()))
            );
        }
        for text in [
            "<b>",
            "< invoke>",
            "<｜User｜>",
            "<DSMLinvoke>",
            "<invoker>",
            "<invoke name=f>",
            "<invoke name>",
            "x",
            "<｜",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn attributes_take_any_quotes() {
        let Scan::Is(tag, _) = scan("<｜DSML｜parameter name=\"a>b\"  string=“true”>v")
        else {
            panic!()
        };
        assert_eq!(
            (
                tag.attribute("name"),
                tag.attribute("string"),
                tag.attribute("x")
            ),
            (Some("a>b"), Some("true"), None)
        );
    }

    /// A beginning of a tag never says no, and no beginning of anything else says yes.
    #[test]
    fn every_beginning_of_a_tag_waits_for_more() {
        let tag = "</｜DSML｜parameter name=\"a\" string='false' >";
        for (at, _) in tag.char_indices() {
            assert_eq!(scan(&tag[..at]), Scan::More, "{}", &tag[..at]);
        }
    }
}
