//! `read`, `list` and `write`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use ds4_gguf::NewFile;

use super::{Arguments, Toolbox, number, text};

/// Largest file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// Most entries of a folder that are listed.
const ENTRIES: usize = 1000;

pub(super) const READ: &str = r#"{"name": "read", "description": "Read a text file, or some of its lines.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Path of the file"}, "start_line": {"type": "integer", "description": "First line, from 1"}, "max_lines": {"type": "integer", "description": "Most lines"}}, "required": ["path"]}}"#;

pub(super) const LIST: &str = r#"{"name": "list", "description": "List a folder: files with their bytes, folders with a slash.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Path of the folder; by default the working folder"}}, "required": []}}"#;

pub(super) const WRITE: &str = r#"{"name": "write", "description": "Write a whole file, new or in place of the old one.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Path of the file"}, "content": {"type": "string", "description": "All of its text"}}, "required": ["path", "content"]}}"#;

/// The text of a file of moderate size.
pub(super) fn load(path: &Path, name: &str) -> Result<String> {
    let metadata = fs::metadata(path).with_context(|| format!("`{name}`"))?;
    ensure!(!metadata.is_dir(), "`{name}` is a folder");
    ensure!(metadata.is_file(), "`{name}` is no ordinary file");
    ensure!(
        metadata.len() <= LARGEST,
        "`{name}` has {} bytes, more than {LARGEST}",
        metadata.len()
    );
    let bytes = fs::read(path).with_context(|| format!("`{name}`"))?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => bail!("`{name}` is no text"),
    }
}

/// Replace or make a file, which appears when it is whole. It keeps the permissions it had.
pub(super) fn store(path: &Path, name: &str, content: &str) -> Result<()> {
    ensure!(!path.is_dir(), "`{name}` is a folder");
    let permissions = fs::metadata(path).ok().map(|m| m.permissions());
    let mut file = NewFile::create(path, true)?;
    file.write_all(content.as_bytes())
        .with_context(|| format!("`{name}`"))?;
    file.publish()?;
    if let Some(permissions) = permissions {
        fs::set_permissions(path, permissions).with_context(|| format!("`{name}`"))?;
    }
    Ok(())
}

pub(super) fn read(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let name = text(arguments, "path")?;
    let content = load(&toolbox.sandbox.existing(name)?, name)?;
    let (start, most) = (
        number(arguments, "start_line")?,
        number(arguments, "max_lines")?,
    );
    if start.is_none() && most.is_none() {
        return Ok(content);
    }
    let start = start.unwrap_or(1).max(1);
    let total = content.lines().count();
    ensure!(
        start <= total,
        "`{name}` has {total} lines, `start_line` is {start}"
    );
    let lines: Vec<&str> = content
        .split_inclusive('\n')
        .skip(start - 1)
        .take(most.unwrap_or(usize::MAX).max(1))
        .collect();
    let end = start + lines.len() - 1;
    Ok(format!(
        "lines {start} to {end} of {total}\n{}",
        lines.concat()
    ))
}

pub(super) fn list(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let name = match arguments.get("path") {
        None => ".",
        Some(_) => text(arguments, "path")?,
    };
    let folder = toolbox.sandbox.existing(name)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("`{name}`"))? {
        let entry = entry.with_context(|| format!("`{name}`"))?;
        // Of a link, what it is and not where it leads.
        let metadata = entry.metadata().with_context(|| format!("`{name}`"))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        names.push(if metadata.is_dir() {
            format!("{file}/")
        } else if metadata.is_symlink() {
            format!("{file}@")
        } else {
            format!("{file}  {}", metadata.len())
        });
    }
    names.sort();
    let (total, mut out) = (names.len(), String::new());
    for name in names.iter().take(ENTRIES) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name}");
    }
    if total > ENTRIES {
        let _ = writeln!(out, "({} more)", total - ENTRIES);
    }
    if total == 0 {
        out.push_str("(empty)");
    }
    Ok(out)
}

pub(super) fn write(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let (name, content) = (text(arguments, "path")?, text(arguments, "content")?);
    toolbox.sandbox.make_folders(name)?;
    let path = toolbox.sandbox.for_writing(name)?;
    store(&path, name, content)?;
    Ok(format!(
        "wrote {} bytes to {}",
        content.len(),
        toolbox.sandbox.show(&path)
    ))
}
