//! `--expert-profile FILE`: which routed experts were used, as JSON.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::NewFile;
use ds4_model::diagnose::ExpertUse;
use ds4_model::{Engine, Tap};
use serde_json::json;

use crate::interrupt;
use crate::running::file_name;

/// What is being counted, and the file that it will be in.
pub(crate) struct ExpertProfile {
    used: ExpertUse,
    file: NewFile,
}

impl ExpertProfile {
    /// For the file that the command line names, if it does. It is begun at once: a folder that is not there is no surprise for
    /// the end.
    pub(crate) fn new(path: Option<&Path>, engine: &Engine) -> Result<Option<Self>> {
        let file = path.map(|path| NewFile::create(path, true)).transpose()?;
        if file.is_some() {
            interrupt::hear_termination();
        }
        let used = || ExpertUse::of(engine);
        Ok(file.map(|file| Self { used: used(), file }))
    }

    /// What a session shows its steps to.
    pub(crate) fn tap(profile: Option<&Self>) -> Option<Box<dyn Tap>> {
        profile.map(|profile| profile.used.tap())
    }

    /// Write the file, if there is one.
    pub(crate) fn write(profile: Option<Self>, source: &str, model: &Path) -> Result<()> {
        let Some(Self { used, mut file }) = profile else {
            return Ok(());
        };
        let mut report = json!({ "source": source, "model": file_name(model) });
        report["layers"] = used.to_json()["layers"].take();
        let name = file.target().display().to_string();
        writeln!(file, "{report:#}").with_context(|| format!("cannot write {name}"))?;
        Ok(file.publish()?)
    }
}
