//! The workspace as the checks see it: its root, its packages, its source files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask lies in a folder of the workspace")
}

/// What `cargo metadata` says of the workspace with all features on, for the platform this runs on.
pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let host = crate::shell::output(root, "rustc", &["--print", "host-tuple"])?;
    MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(cargo_metadata::CargoOpt::AllFeatures)
        .other_options(["--filter-platform".to_owned(), host.trim().to_owned()])
        .exec()
        .context("cargo metadata")
}

/// One text file of the project.
pub(crate) struct File {
    /// Path from the workspace root, `/` between its parts.
    pub(crate) path: String,
    /// Its whole content.
    pub(crate) text: String,
}

/// Every file below `root` whose extension is in `extensions`, sorted by path.
///
/// Build output (`target`), version control and other hidden folders are not entered.
pub(crate) fn files(root: &Path, extensions: &[&str]) -> Result<Vec<File>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|e| extensions.iter().any(|x| e == *x))
            {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let relative = path.strip_prefix(root).unwrap_or(&path);
                let parts: Vec<_> = relative
                    .components()
                    .map(|c| c.as_os_str().to_string_lossy())
                    .collect();
                found.push(File {
                    path: parts.join("/"),
                    text,
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
