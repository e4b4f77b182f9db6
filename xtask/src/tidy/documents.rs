//! Documents stay true: the required ones exist, and every path they name exists.

use std::path::Path;

use super::Finding;
use crate::workspace::File;

const REQUIRED: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "STYLE.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "NOTICE",
    "assets/README.md",
];

/// Required documents that are missing, and paths in documents that lead nowhere.
pub(crate) fn check(root: &Path, documents: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = REQUIRED
        .iter()
        .filter(|name| !root.join(name).exists())
        .map(|name| Finding::new(*name, "is missing"))
        .collect();
    let is_folder = |name: &str| !name.is_empty() && root.join(name).is_dir();
    for document in documents {
        let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
        for (line, path) in named_paths(&document.text, is_folder) {
            if !root.join(&path).exists() {
                findings.push(Finding::new(
                    format!("{}:{line}", document.path),
                    format!("names `{path}`, which does not exist"),
                ));
            }
        }
        for (line, target) in links(&document.text) {
            if !root.join(folder).join(&target).exists() {
                findings.push(Finding::new(
                    format!("{}:{line}", document.path),
                    format!("links to `{target}`, which does not exist"),
                ));
            }
        }
    }
    findings
}

/// Words in backticks that are paths into the workspace: they start with a top-level folder and have no placeholder.
fn named_paths(text: &str, is_top_folder: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in prose(text) {
        for word in line.split('`').skip(1).step_by(2) {
            let is_path = word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
            if is_path
                && word
                    .split_once('/')
                    .is_some_and(|(first, _)| is_top_folder(first))
                && !word.starts_with("target/")
            {
                found.push((n, word.to_owned()));
            }
        }
    }
    found
}

/// Targets of Markdown links that are files of this repository.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((n, target.to_owned()));
            }
        }
    }
    found
}

/// Lines outside code fences, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((n + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_that_start_with_a_folder_of_the_workspace() {
        let text = "see `src/a.rs` and `other/b.rs`, not `src/{a,b}.rs`, `src/<name>.rs` or `target/x`\n```\n`src/c.rs`\n```\n`src/d.rs`\n";
        let found = named_paths(text, |f| f == "src");
        assert_eq!(
            found,
            [(1, "src/a.rs".to_owned()), (5, "src/d.rs".to_owned())]
        );
    }

    #[test]
    fn links_to_files_are_found_without_their_anchor() {
        let text = "[a](b.md#c) [d](https://example.com/e) [f](#g)\n";
        assert_eq!(links(text), [(1, "b.md".to_owned())]);
    }

    #[test]
    fn a_missing_path_is_reported_with_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = File {
            path: "X.md".into(),
            text: "`src/main.rs`\n`src/nowhere.rs`\n".into(),
        };
        let findings = check(root, &[file]);
        assert!(
            findings
                .iter()
                .any(|f| f.place == "X.md:2" && f.message.contains("nowhere"))
        );
        assert!(!findings.iter().any(|f| f.message.contains("main.rs")));
    }
}
