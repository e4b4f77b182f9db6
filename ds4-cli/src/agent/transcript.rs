//! What was said and done, one JSON object a line, in the file as soon as it has happened.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::args::Args;

/// Conversations hold whatever a model has read: nobody else is to see them.
pub(super) const FILE_MODE: u32 = 0o600;
pub(super) const FOLDER_MODE: u32 = 0o700;

/// A file that grows, or none.
pub(super) struct Transcript {
    file: Option<(File, PathBuf)>,
}

impl Transcript {
    /// The one that the command line names.
    pub(super) fn open(args: &Args) -> Result<Self> {
        if args.no_transcript {
            return Ok(Self { file: None });
        }
        let path = match &args.transcript {
            Some(path) => path.clone(),
            None => {
                let folder = home("--transcript, or use --no-transcript")?;
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(FOLDER_MODE)
                    .create(&folder)
                    .with_context(|| folder.display().to_string())?;
                folder.join(format!("{}-{}.jsonl", now(), std::process::id()))
            }
        };
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        Ok(Self {
            file: Some((file, path)),
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(_, path)| path.as_path())
    }

    /// Add a line; `what` is an object.
    pub(super) fn add(&mut self, event: &str, what: &Value) -> Result<()> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let mut line = json!({ "time": now(), "event": event });
        for (name, value) in what.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        // One write a line: a line is there whole, or not at all.
        file.write_all(format!("{line}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Where an agent keeps things; `instead` is what names another place.
pub(super) fn home(instead: &str) -> Result<PathBuf> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home = home.with_context(|| format!("HOME is not set; name a place with {instead}"))?;
    Ok(home.join(".ds4/agent"))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}
