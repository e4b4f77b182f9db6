//! `search`: lines of text files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use globset::{Glob, GlobMatcher};
use regex::{Regex, RegexBuilder};

use super::files::load;
use super::{Arguments, Toolbox, flag, number, text};

/// Lines found, when the call does not say.
const RESULTS: usize = 100;
/// Most files that are looked at.
const FILES: usize = 20_000;
/// Most characters of a line that are shown.
const LINE: usize = 200;
/// Memory that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

pub(super) const SEARCH: &str = r#"{"name": "search", "description": "Search text files, line by line.", "parameters": {"type": "object", "properties": {"query": {"type": "string", "description": "What to look for"}, "path": {"type": "string", "description": "File or folder; by default the working folder"}, "glob": {"type": "string", "description": "Names of files, such as *.rs"}, "regex": {"type": "boolean", "description": "The query is a regular expression"}, "case_sensitive": {"type": "boolean", "description": "Upper and lower case differ"}, "max_results": {"type": "integer", "description": "Most lines"}}, "required": ["query"]}}"#;

pub(super) fn search(toolbox: &Toolbox, arguments: &Arguments) -> Result<String> {
    let query = text(arguments, "query")?;
    let pattern = if flag(arguments, "regex")? {
        query.to_owned()
    } else {
        regex::escape(query)
    };
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(!flag(arguments, "case_sensitive")?)
        .size_limit(PATTERN_BYTES)
        .build()
        .context("`query`")?;
    let glob = match arguments.get("glob") {
        None => None,
        Some(_) => Some(
            Glob::new(text(arguments, "glob")?)
                .context("`glob`")?
                .compile_matcher(),
        ),
    };
    let name = match arguments.get("path") {
        None => ".",
        Some(_) => text(arguments, "path")?,
    };
    let start = toolbox.sandbox.existing(name)?;
    let most = number(arguments, "max_results")?.unwrap_or(RESULTS);
    let mut found = Found {
        toolbox,
        most,
        lines: 0,
        files: 0,
        out: String::new(),
    };
    if !found.below(&start, glob.as_ref(), &pattern) {
        found.out.push_str("(more was left out)\n");
    }
    if found.out.is_empty() {
        found.out.push_str("nothing found");
    }
    Ok(found.out)
}

struct Found<'t> {
    toolbox: &'t Toolbox,
    most: usize,
    lines: usize,
    files: usize,
    out: String,
}

impl Found<'_> {
    /// Everything at and below `start`, in the order of names; false when a limit is reached. Hidden entries and links are
    /// left out: links below are either found elsewhere or lead out.
    fn below(&mut self, start: &Path, glob: Option<&GlobMatcher>, pattern: &Regex) -> bool {
        let mut stack: Vec<PathBuf> = vec![start.to_owned()];
        while let Some(path) = stack.pop() {
            if path.is_dir() {
                // What cannot be read is left out, as a text search does.
                let Ok(entries) = fs::read_dir(&path) else {
                    continue;
                };
                let mut inner: Vec<PathBuf> = entries
                    .flatten()
                    .filter(|e| e.file_type().is_ok_and(|t| t.is_file() || t.is_dir()))
                    .filter(|e| !e.file_name().to_string_lossy().starts_with('.'))
                    .map(|e| e.path())
                    .collect();
                inner.sort();
                stack.extend(inner.into_iter().rev());
                continue;
            }
            let relative = path.strip_prefix(self.toolbox.sandbox.root());
            let relative = relative.unwrap_or(&path).to_owned();
            let named = |glob: &GlobMatcher| {
                glob.is_match(&relative) || path.file_name().is_some_and(|n| glob.is_match(n))
            };
            if !glob.is_none_or(named) {
                continue;
            }
            self.files += 1;
            if self.files > FILES {
                return false;
            }
            let Ok(content) = load(&path, "") else {
                continue;
            };
            for (at, line) in content.lines().enumerate() {
                if !pattern.is_match(line) {
                    continue;
                }
                if self.lines == self.most {
                    return false;
                }
                self.lines += 1;
                let shown: String = line.chars().take(LINE).collect();
                // Writing to a String cannot fail.
                let _ = writeln!(self.out, "{}:{}: {shown}", relative.display(), at + 1);
            }
        }
        true
    }
}
