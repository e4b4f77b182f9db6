//! `edit`: one place of a file, named by its text.

use anyhow::{Result, ensure};

use super::files::{load, store};
use super::{Arguments, Toolbox, text};

pub(super) const EDIT: &str = r#"{"name": "edit", "description": "Replace a text in a file. The old text must be there exactly once: take enough lines around it.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Path of the file"}, "old": {"type": "string", "description": "The text that is there now"}, "new": {"type": "string", "description": "The text in its place"}}, "required": ["path", "old", "new"]}}"#;

pub(super) fn edit(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let name = text(arguments, "path")?;
    let (old, new) = (text(arguments, "old")?, text(arguments, "new")?);
    ensure!(!old.is_empty(), "`old` is empty; `write` makes a file");
    let path = toolbox.sandbox.existing(name)?;
    let content = load(&path, name)?;
    let at = only_place(&content, old, name)?;
    let changed = format!("{}{new}{}", &content[..at], &content[at + old.len()..]);
    store(&path, name, &changed)?;
    let first = content[..at].matches('\n').count() + 1;
    let last = first + new.trim_end_matches('\n').matches('\n').count();
    Ok(format!(
        "changed lines {first} to {last} of {}",
        toolbox.sandbox.show(&path)
    ))
}

/// Where `old` is, if that is one place. Places may overlap.
fn only_place(content: &str, old: &str, name: &str) -> Result<usize> {
    let places: Vec<usize> = content
        .char_indices()
        .map(|(at, _)| at)
        .filter(|&at| content[at..].starts_with(old))
        .collect();
    ensure!(!places.is_empty(), "`old` is not there in `{name}`");
    ensure!(
        places.len() == 1,
        "`old` is there {} times in `{name}`, expected once",
        places.len()
    );
    Ok(places[0])
}
