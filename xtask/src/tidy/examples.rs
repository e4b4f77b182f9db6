//! Every example is run by `cargo xtask ci`, and every row of its list is an example.

use cargo_metadata::{Metadata, TargetKind};

use super::Finding;
use crate::examples::Example;

/// The names of all `[[example]]` targets of the workspace.
pub(crate) fn targets(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let targets = packages.iter().flat_map(|p| &p.targets);
    targets
        .filter(|t| t.kind.contains(&TargetKind::Example))
        .map(|t| t.name.clone())
        .collect()
}

/// Examples that are not run, and runs of examples that do not exist.
pub(crate) fn check(targets: &[String], listed: &[Example]) -> Vec<Finding> {
    let missing = targets
        .iter()
        .filter(|t| !listed.iter().any(|e| e.name == **t));
    let gone = listed
        .iter()
        .filter(|e| !targets.iter().any(|t| t == e.name));
    missing
        .map(|t| {
            Finding::new(
                format!("examples/{t}.rs"),
                "is not run by ci; add it to xtask/src/examples.rs",
            )
        })
        .chain(gone.map(|e| {
            Finding::new(
                "xtask/src/examples.rs",
                format!("lists `{}`, which is no example", e.name),
            )
        }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_checked() {
        let listed = [
            Example {
                name: "chat",
                runs: &[],
            },
            Example {
                name: "old",
                runs: &[],
            },
        ];
        let findings = check(&["chat".into(), "new".into()], &listed);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].place.ends_with("new.rs"));
        assert!(findings[1].message.contains("old"));
    }
}
