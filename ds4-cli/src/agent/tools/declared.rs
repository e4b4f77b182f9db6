//! Tools of the user's: a declaration with a shell command.
//!
//! ```json
//! [{"name": "get_weather", "description": "Get the current weather for a city.", "command": "weather \"$ARG_city\"",
//!   "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]
//! ```
//! The command gets each argument as the variable `ARG_name`, texts as they are and all else as JSON, and the whole
//! object on standard input.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use ds4_model::chat::Tool;
use serde_json::Value;

use super::{Arguments, Toolbox, shell};

/// One of them.
#[derive(Clone, Debug)]
pub(in crate::agent) struct Declared {
    pub(super) tool: Tool,
    command: String,
}

impl Declared {
    /// Those of a file.
    pub(in crate::agent) fn load(path: &Path) -> Result<Vec<Self>> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let list: Vec<Value> = serde_json::from_str(&text).with_context(name)?;
        list.into_iter()
            .enumerate()
            .map(|(at, value)| Self::new(value).with_context(|| format!("tool {}", at + 1)))
            .collect::<Result<_>>()
            .with_context(name)
    }

    fn new(mut value: Value) -> Result<Self> {
        let command = value.as_object_mut().and_then(|o| o.remove("command"));
        let Some(Value::String(command)) = command else {
            bail!("`command` is missing, or no text")
        };
        Ok(Self {
            tool: Tool::new(&value.to_string())?,
            command,
        })
    }

    pub(super) fn run(&self, toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
        let declared: Value = serde_json::from_str(self.tool.json()).context("its declaration")?;
        for required in declared["parameters"]["required"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = required.as_str().unwrap_or_default();
            if !arguments.contains_key(name) {
                bail!("`{name}` is missing");
            }
        }
        let variables: Vec<(String, String)> = arguments
            .iter()
            // Only names that a shell can speak of.
            .filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
            .map(|(name, value)| {
                let text = value.as_str().map(str::to_owned);
                (
                    format!("ARG_{name}"),
                    text.unwrap_or_else(|| value.to_string()),
                )
            })
            .collect();
        let input = Value::Object(arguments.clone()).to_string();
        let said = shell::run(toolbox, &self.command, &variables, Some(input))?;
        // One line break more than what was meant is what commands print.
        Ok(said.strip_suffix('\n').unwrap_or(&said).to_owned())
    }
}
