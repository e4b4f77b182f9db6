//! What a value in a request must be, where nothing else is done with it.

use std::fmt;

use serde_json::Value;

use super::error::ApiError;

/// A type of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Integer,
    List,
    Object,
    /// A switch of thinking: a flag or an object.
    Switch,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a text",
            Self::Flag => "true or false",
            Self::Integer => "an integer",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Switch => "true, false or an object",
        })
    }
}

impl Kind {
    /// Refuse a `value`, which is at `path`, of another kind. A `null` is no value.
    pub(crate) fn check(self, value: &Value, path: &str) -> Result<(), ApiError> {
        let fits = match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Switch => value.is_boolean() || value.is_object(),
        };
        if fits || value.is_null() {
            return Ok(());
        }
        // The value itself may be as large as a body.
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let what = format!("`{path}` is {found}, expected {self}");
        Err(ApiError::invalid(path, what))
    }
}
