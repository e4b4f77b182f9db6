//! What every member's manifest must say: workspace lints, a `clippy.toml` of its own, and for published crates the words of crates.io.

use std::fs;
use std::path::Path;

use cargo_metadata::{Metadata, Package};

use super::Finding;

/// Gaps in the manifests of all workspace members.
pub(crate) fn check(root: &Path, metadata: &Metadata) -> Vec<Finding> {
    metadata
        .workspace_packages()
        .into_iter()
        .flat_map(|p| check_package(root, p))
        .collect()
}

fn check_package(root: &Path, package: &Package) -> Vec<Finding> {
    let name = package.name.as_str();
    let mut findings = Vec::new();
    let mut demand = |holds: bool, message: &str| {
        if !holds {
            findings.push(Finding::new(name, message));
        }
    };
    let manifest = fs::read_to_string(&package.manifest_path).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let at = |path: [&str; 2]| manifest.get(path[0]).and_then(|v| v.get(path[1]));

    demand(
        at(["lints", "workspace"]).is_some_and(|v| v.as_bool() == Some(true)),
        "needs `[lints] workspace = true`",
    );
    let folder = package.manifest_path.parent();
    demand(
        folder.is_some_and(|f| f.join("clippy.toml").exists()),
        "needs a clippy.toml of its own",
    );
    demand(package.description.is_some(), "needs a description");

    let published = package
        .publish
        .as_ref()
        .is_none_or(|registries| !registries.is_empty());
    if published {
        demand(!package.keywords.is_empty(), "needs keywords");
        demand(!package.categories.is_empty(), "needs categories");
        demand(package.readme.is_some(), "needs a readme");
        demand(
            at(["package", "include"]).is_some(),
            "needs an `include` list",
        );
        demand(
            package.license.as_deref() == Some("MIT OR Apache-2.0"),
            "needs the workspace licence",
        );
        demand(package.rust_version.is_some(), "needs a rust-version");
        let documented = manifest
            .get("package")
            .and_then(|p| p.get("metadata"))
            .and_then(|m| m.get("docs"))
            .is_some();
        demand(
            documented,
            "needs [package.metadata.docs.rs] with all-features = true",
        );
    }
    if let Some(readme) = &package.readme {
        let readme = folder.map(|f| f.join(readme));
        demand(
            readme.is_some_and(|r| root.join(r).exists()),
            "names a readme that does not exist",
        );
    }
    findings
}
