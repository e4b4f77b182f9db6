//! Whether an answer is right.
//!
//! | kind | right when |
//! |---|---|
//! | exact | the whole answer is one of the expected texts; runs of blanks count as one |
//! | contains | one of the expected texts stands in it as whole words, whatever the case |
//! | integer | its last number (the last in `\boxed{…}`, if there is one) is the expected one |
//! | choice | the letter it decides for is the expected one |
//! | regex | the pattern is found in it |
//! | json | it is the expected JSON value, alone or as its only fenced block |

use super::Expected;

/// What a grader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grade {
    /// Whether it is right.
    pub correct: bool,
    /// What was taken for the answer, if anything was.
    pub found: Option<String>,
}

impl Expected {
    /// Grade an answer's content.
    #[must_use]
    pub fn grade(&self, content: &str) -> Grade {
        let grade = |correct, found| Grade { correct, found };
        match self {
            Self::Exact(texts) => {
                let said = blanks(content);
                grade(texts.iter().any(|t| blanks(t) == said), Some(said))
            }
            Self::Contains(texts) => {
                let found = texts.iter().find(|t| has_words(content, t));
                grade(found.is_some(), found.cloned())
            }
            Self::Integer(expected) => {
                let found = last_number(boxed(content).unwrap_or(content));
                let correct = found.as_deref().and_then(integer) == Some(*expected);
                grade(correct, found)
            }
            Self::Choice(expected) => {
                let found = letter(content);
                grade(found == Some(*expected), found.map(String::from))
            }
            Self::Regex(pattern) => {
                let found = pattern.find(content);
                grade(found.is_some(), found.map(|m| m.as_str().to_owned()))
            }
            Self::Json(expected) => {
                let found: Option<serde_json::Value> = serde_json::from_str(unfenced(content)).ok();
                grade(
                    found.as_ref() == Some(expected),
                    found.map(|v| v.to_string()),
                )
            }
        }
    }
}

/// Without outer blanks, inner runs of them as one.
fn blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_words(content: &str, words: &str) -> bool {
    let (content, words) = (blanks(content).to_lowercase(), blanks(words).to_lowercase());
    let inner = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !words.is_empty()
        && content.match_indices(&words).any(|(at, _)| {
            let (before, after) = (&content[..at], &content[at + words.len()..]);
            let begins = !inner(words.chars().next()) || !inner(before.chars().next_back());
            let ends = !inner(words.chars().next_back()) || !inner(after.chars().next());
            begins && ends
        })
}

/// What the last `\boxed{…}` holds.
fn boxed(content: &str) -> Option<&str> {
    let (_, rest) = content.rsplit_once("\\boxed{")?;
    rest.split_once('}').map(|(inner, _)| inner)
}

/// The last number, with sign and fraction, without separators of thousands.
fn last_number(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let end = chars.iter().rposition(char::is_ascii_digit)? + 1;
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut start = end - 1;
    loop {
        match start.checked_sub(1).map(|at| chars[at]) {
            Some(c) if c.is_ascii_digit() => start -= 1,
            // A comma before three digits separates thousands, as long as digits go on before it.
            Some(',') if start >= 2 && digit(start - 2) && groups(&chars[start..end]) => start -= 1,
            Some('.') if start >= 2 && digit(start - 2) && !chars[start..end].contains(&'.') => {
                start -= 1;
            }
            _ => break,
        }
    }
    let mut number: String = chars[start..end].iter().filter(|c| **c != ',').collect();
    let sign = start.checked_sub(1).map(|at| chars[at]);
    let before = start.checked_sub(2).map(|at| chars[at]);
    // Between two numbers or letters it is an operator or a hyphen.
    if matches!(sign, Some('-' | '−')) && !before.is_some_and(|c| c.is_alphanumeric() || c == ')')
    {
        number.insert(0, '-');
    }
    Some(number)
}

/// Whether what follows a comma are three digits, and no more before the next comma or the fraction.
fn groups(after: &[char]) -> bool {
    let run = after.iter().take_while(|c| c.is_ascii_digit()).count();
    run == 3
}

/// A number without a fraction other than zeros.
fn integer(number: &str) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    fraction
        .chars()
        .all(|c| c == '0')
        .then(|| whole.parse().ok())
        .flatten()
}

/// The letter an answer decides for: in a box; after the last "answer is" or "answer:"; at the beginning, set off; else the
/// last that stands alone.
fn letter(content: &str) -> Option<char> {
    let alone = |text: &str| {
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut chars = text.chars();
        let letter = chars.next().filter(char::is_ascii_alphabetic)?;
        let next = chars.next();
        next.is_none_or(|c| !c.is_alphanumeric())
            .then_some((letter.to_ascii_uppercase(), next))
    };
    if let Some((letter, _)) = boxed(content).and_then(alone) {
        return Some(letter);
    }
    let lower = content.to_ascii_lowercase();
    for words in ["answer is", "answer:", "answer**:"] {
        if let Some(at) = lower.rfind(words)
            && let Some((letter, _)) = alone(&content[at + words.len()..])
        {
            return Some(letter);
        }
    }
    let set_off = |next: Option<char>| next.is_none_or(|c| c != ' ' && c != '\'' && c != '’');
    if let Some((letter, next)) = alone(content)
        && set_off(next)
    {
        return Some(letter);
    }
    content
        .split(|c: char| !c.is_alphanumeric())
        .rfind(|word| word.len() == 1 && word.as_bytes()[0].is_ascii_uppercase())
        .and_then(|word| word.chars().next())
}

/// The inside of the only fenced block, or the text.
fn unfenced(content: &str) -> &str {
    let mut parts = content.split("```");
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(block), Some(_), None) => {
            let (first, rest) = block.split_once('\n').unwrap_or(("", block));
            // The first line names the language, if it says anything.
            if first.trim().chars().all(char::is_alphanumeric) {
                rest
            } else {
                block
            }
        }
        _ => content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;
    use serde_json::json;

    fn right(expected: &Expected, content: &str) -> bool {
        expected.grade(content).correct
    }

    #[test]
    fn exact_answers_may_differ_in_blanks_alone() {
        let expected = Expected::Exact(vec!["4, 5".into(), "four".into()]);
        assert!(right(&expected, " 4,\n 5 ") && right(&expected, "four"));
        assert!(!right(&expected, "4, 5.") && !right(&expected, "Four"));
    }

    #[test]
    fn words_are_found_whole_and_in_any_case() {
        let expected = Expected::Contains(vec!["Rome".into(), "N'Djamena".into(), "C++".into()]);
        assert!(right(&expected, "It is ROME.") && right(&expected, "n'djamena"));
        assert!(
            right(&expected, "use C++20"),
            "a sign ends a word by itself"
        );
        assert!(!right(&expected, "Jerome") && !right(&expected, "Romeo") && !right(&expected, ""));
    }

    #[test]
    fn the_last_number_counts_with_sign_thousands_and_empty_fraction() {
        for (text, number) in [
            ("2 + 2 = 4.", 4),
            ("2 - 5 = -3", -3),
            ("so 10-3", 3),
            ("about 1,234,567 people", 1_234_567),
            ("1, 2, 3", 3),
            ("it is 12.00", 12),
            ("\\boxed{7}, since 3 + 4", 7),
            ("x = −5", -5),
        ] {
            assert!(right(&Expected::Integer(number), text), "{text}");
        }
        for text in ["", "four", "4.5", "99999999999999999999", "44"] {
            assert!(!right(&Expected::Integer(4), text), "{text}");
        }
    }

    #[test]
    fn a_choice_is_read_from_how_people_write_it() {
        for text in [
            "B",
            "b",
            "(B)",
            "B) Rome",
            "**B**",
            "The answer is B.",
            "The answer is (B), not C",
            "Answer: B",
            "\\boxed{B}",
            "A is wrong. It must be B",
            "B: because C is wrong",
        ] {
            assert_eq!(letter(text), Some('B'), "{text}");
        }
        for text in ["", "Rome", "Because of that"] {
            assert_eq!(letter(text), None, "{text}");
        }
    }

    #[test]
    fn json_is_compared_by_value_alone_or_in_a_fence() {
        let expected = Expected::Json(json!({"a": 1, "b": [true]}));
        assert!(right(&expected, "{\"b\": [true], \"a\": 1}"));
        assert!(right(
            &expected,
            "Here:\n```json\n{\"a\": 1, \"b\": [true]}\n```\n"
        ));
        assert!(
            !right(&expected, "{\"a\": 1}") && !right(&expected, "{\"a\": 1, \"b\": [true]} ok")
        );
    }

    #[test]
    fn a_pattern_is_searched() {
        let expected = Expected::Regex(Regex::new("^[a-z]+$").unwrap());
        assert!(right(&expected, "word") && !right(&expected, "two words"));
    }
}
