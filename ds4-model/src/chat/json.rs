//! JSON text as Python's `json.dumps(…, ensure_ascii=False)` writes it: the form that models saw in training.
//!
//! Works on raw text, not on a parsed tree: integers of any size keep their digits and keys their order.
//! Repeated keys keep the first place and the last value, as a Python dictionary does.

use super::Error;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt::Write as _;

/// Deeper values are refused: they would be no schema and no argument, only an attack on the stack.
const MAX_DEPTH: usize = 128;

/// A member of a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) value: Value,
}

/// A value, as far as rendering cares.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A string, unescaped.
    Text(String),
    /// Anything else, as raw JSON.
    Json(String),
}

/// `"…"` with what JSON must escape and nothing more.
pub(super) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string has a JSON form")
}

/// The members of the object `json`.
///
/// # Errors
/// [`Error::Json`] when it is no JSON, [`Error::NotAnObject`] when it is something else; both name `what`.
pub(super) fn members(what: &str, json: &str) -> Result<Vec<Member>, Error> {
    if first_byte(json) != Some(b'{') {
        let _: &RawValue = parse(what, json)?;
        return Err(Error::NotAnObject {
            what: what.to_owned(),
        });
    }
    let object: Object<'_> = parse(what, json)?;
    object
        .0
        .into_iter()
        .map(|(key, raw)| {
            let value = match first_byte(raw.get()) {
                Some(b'"') => Value::Text(parse(what, raw.get())?),
                _ => Value::Json(raw.get().to_owned()),
            };
            Ok(Member { key, value })
        })
        .collect()
}

/// `json` with Python's separators, numbers and escapes.
///
/// # Errors
/// [`Error::Json`] when it is no JSON or nested more than 128 deep; it names `what`.
pub(super) fn python(what: &str, json: &str) -> Result<String, Error> {
    let raw: &RawValue = parse(what, json)?;
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    write(what, raw, 0, &mut out)?;
    Ok(out)
}

/// `json` without blanks between its parts; numbers as they are.
pub(super) fn compact(what: &str, json: &str) -> Result<String, Error> {
    let value: serde_json::Value = parse(what, json)?;
    Ok(value.to_string())
}

fn write(what: &str, raw: &RawValue, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep {
            what: what.to_owned(),
            max: MAX_DEPTH,
        });
    }
    let text = raw.get();
    match first_byte(text) {
        Some(b'{') => {
            let object: Object<'_> = parse(what, text)?;
            out.push('{');
            for (i, (key, value)) in object.0.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                let _ = write!(out, "{}: ", quote(key));
                write_value(what, value, depth, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = parse(what, text)?;
            out.push('[');
            for (i, value) in list.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_value(what, value, depth, out)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&quote(&parse::<String>(what, text)?)),
        Some(b'-' | b'0'..=b'9') => out.push_str(&number(text)),
        _ => out.push_str(text),
    }
    Ok(())
}

fn write_value(what: &str, raw: &RawValue, depth: usize, out: &mut String) -> Result<(), Error> {
    write(what, raw, depth + 1, out)
}

/// A JSON number as Python prints it after reading it.
fn number(text: &str) -> String {
    if text.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        return if text == "-0" {
            "0".to_owned()
        } else {
            text.to_owned()
        };
    }
    float(text.parse().expect("a JSON number is a Rust number"))
}

/// `repr(x)`: the shortest digits that read back as `x`; exponent form from 1e16 up and below 1e-4.
pub(super) fn float(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if x.is_nan() {
        return "NaN".to_owned();
    }
    let size = x.abs();
    if x == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{x:?}");
    }
    let form = format!("{x:e}");
    let (digits, exponent) = form.split_once('e').expect("exponent form has an exponent");
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn first_byte(json: &str) -> Option<u8> {
    json.trim_start_matches([' ', '\t', '\n', '\r'])
        .bytes()
        .next()
}

fn parse<'j, T: Deserialize<'j>>(what: &str, json: &'j str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|source| Error::Json {
        what: what.to_owned(),
        source,
    })
}

struct Object<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                let mut places = std::collections::HashMap::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    match places.get(&key) {
                        Some(&at) => {
                            let (_, known): &mut (String, &RawValue) = &mut members[at];
                            *known = value;
                        }
                        None => {
                            places.insert(key.clone(), members.len());
                            members.push((key, value));
                        }
                    }
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: `json.dumps(json.loads(x), ensure_ascii=False)`, Python 3.12.
    #[test]
    fn values_print_as_python_prints_them() {
        for (json, want) in [
            (
                r#"{"b":1,"a":[true,null,"é\u00e9\n\"/\u007f"]}"#,
                "{\"b\": 1, \"a\": [true, null, \"éé\\n\\\"/\u{7f}\"]}",
            ),
            ("-1.5e3", "-1500.0"),
            ("1E400", "Infinity"),
            ("1e16", "1e+16"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("9007199254740993.0", "9007199254740992.0"),
            ("0.0001", "0.0001"),
            ("0.00001234", "1.234e-05"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1.5e-300", "1.5e-300"),
            ("  [ 1 ,2 ] ", "[1, 2]"),
            ("{}", "{}"),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a": 3, "b": 2}"#),
        ] {
            assert_eq!(python("test", json).unwrap(), want, "{json}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_surrogates_are_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(matches!(python("x", &deep), Err(Error::TooDeep { .. })));
        let very_deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert!(python("x", &very_deep).is_err());
        assert!(matches!(
            python("x", r#""\ud800""#),
            Err(Error::Json { .. })
        ));
        assert!(matches!(
            members("x", "[1]"),
            Err(Error::NotAnObject { .. })
        ));
        assert!(matches!(members("x", "{"), Err(Error::Json { .. })));
    }
}
