//! No `pub use other_crate::*`: it makes another crate's every change a change of ours.

use std::collections::BTreeSet;

use cargo_metadata::Metadata;

use super::Finding;
use super::source::{Source, words};

/// The names under which source code of the workspace sees other crates.
pub(crate) fn dependency_names(metadata: &Metadata) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["std", "core", "alloc"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    for package in metadata.workspace_packages() {
        names.extend(
            package
                .dependencies
                .iter()
                .map(|d| d.rename.as_deref().unwrap_or(&d.name).replace('-', "_")),
        );
    }
    names
}

/// Every public glob import of a crate in `dependencies`.
pub(crate) fn check(sources: &[Source], dependencies: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (at, _) in source.code.match_indices("pub use ") {
            let statement = source.code[at..].split(';').next().unwrap_or_default();
            let first = words(statement).nth(2).unwrap_or_default();
            if statement.contains('*') && dependencies.contains(first) {
                let line = source.code[..at].matches('\n').count() + 1;
                findings.push(Finding::new(
                    format!("{}:{line}", source.path),
                    format!("`pub use {first}::…*`: name what is re-exported"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::File;

    #[test]
    fn globs_of_other_crates_are_found_and_own_modules_are_not() {
        let names = BTreeSet::from(["half".to_owned()]);
        let count = |text: &str| {
            check(
                &[Source::new(File {
                    path: "x.rs".into(),
                    text: text.into(),
                })],
                &names,
            )
            .len()
        };
        assert_eq!(count("pub use half::*;"), 1);
        assert_eq!(count("pub use ::half::{\n    bf16,\n    vec::*,\n};"), 1);
        assert_eq!(count("pub use half::f16;\nlet a = 2 * 3;"), 0);
        assert_eq!(count("pub use error::*;"), 0);
        assert_eq!(count("use half::*;"), 0);
    }
}
