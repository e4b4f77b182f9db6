//! `cargo xtask tidy`: the rules a compiler does not check.
//!
//! Each rule is one file with a pure function from sources or metadata to [`Finding`]s, tested beside it.

mod documents;
mod examples;
mod layers;
mod licences;
mod lines;
mod manifests;
mod reexports;
mod source;
mod todo;
mod unsafe_files;

use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace;
use source::Source;

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A path from the workspace root, or the name of a package.
    pub(crate) place: String,
    /// What was expected and what was found.
    pub(crate) message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            message: message.into(),
        }
    }
}

/// Check everything, print every finding, fail if there was one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = workspace::metadata(root)?;
    let sources: Vec<Source> = workspace::files(root, &["rs", "hip", "hpp"])?
        .into_iter()
        .map(Source::new)
        .collect();
    let documents = workspace::files(root, &["md"])?;

    let (mut findings, warnings) = lines::check(&sources);
    findings.extend(layers::check(&layers::edges(&metadata), &layers::LAYERS));
    findings.extend(licences::check(&metadata));
    findings.extend(manifests::check(root, &metadata));
    findings.extend(unsafe_files::check(&sources, &unsafe_files::ALLOWED));
    findings.extend(reexports::check(
        &sources,
        &reexports::dependency_names(&metadata),
    ));
    findings.extend(todo::check(&sources));
    findings.extend(examples::check(
        &examples::targets(&metadata),
        &crate::examples::EXAMPLES,
    ));
    findings.extend(documents::check(root, &documents));

    for warning in &warnings {
        println!("warning: {}: {}", warning.place, warning.message);
    }
    for finding in &findings {
        println!("error: {}: {}", finding.place, finding.message);
    }
    if !findings.is_empty() {
        bail!("tidy found {} problem(s)", findings.len());
    }
    println!(
        "tidy: {} source files, {} packages in the graph, no problems",
        sources.len(),
        metadata.packages.len()
    );
    Ok(())
}
