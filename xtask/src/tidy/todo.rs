//! An open end carries its issue number, `TODO(#12)`, or does not exist; other spellings of it are not used.

use super::Finding;
use super::source::{Source, words};

/// Notes without an issue, in comments and as macros.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (n, line) in source.comments.lines().enumerate() {
            let unnumbered = line
                .match_indices("TODO")
                .any(|(at, _)| !has_issue(&line[at + "TODO".len()..]));
            if unnumbered || words(line).any(|w| w == "FIXME" || w == "XXX") {
                findings.push(Finding::new(
                    format!("{}:{}", source.path, n + 1),
                    "an open end needs an issue number: TODO(#12)",
                ));
            }
        }
        for (n, line) in source.code.lines().enumerate() {
            if line.contains("todo!") || line.contains("unimplemented!") {
                findings.push(Finding::new(
                    format!("{}:{}", source.path, n + 1),
                    "no unfinished code: return a typed error instead",
                ));
            }
        }
    }
    findings
}

fn has_issue(after: &str) -> bool {
    after
        .strip_prefix("(#")
        .and_then(|rest| rest.split_once(')'))
        .is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::File;

    fn findings(text: &str) -> usize {
        check(&[Source::new(File {
            path: "x.rs".into(),
            text: text.into(),
        })])
        .len()
    }

    #[test]
    fn a_number_makes_a_note_an_issue() {
        assert_eq!(findings("// TODO(#12): later\n"), 0);
        for text in [
            "// TODO: later\n",
            "// TODO(me): later\n",
            "// TODO(#): later\n",
            "/* FIXME */\n",
            "fn f() { todo!() }\n",
        ] {
            assert_eq!(findings(text), 1, "{text}");
        }
    }

    #[test]
    fn strings_are_not_notes() {
        assert_eq!(findings("let a = \"TODO\";\n"), 0);
    }
}
