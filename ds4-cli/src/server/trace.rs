//! `--trace FILE`: what happens, as lines of JSON.
//!
//! ```text
//! {"at": …, "event": "prompt", "request": 1, "tokens": 11, "text": "<｜begin▁of▁sentence｜>…"}
//! {"at": …, "event": "store", "what": "took up 512 kept tokens"}
//! {"at": …, "event": "parsed", "request": 1, "reasoning" | "content" | "call" | "arguments": "…"}
//! {"at": …, "event": "output", "request": 1, "text": "…", "ended": "stop", "tokens": {"prompt": 11, "cached": 10, …}}
//! {"at": …, "event": "gone", "request": 1}
//! ```
//! `at` is in seconds since 1970. Lines are added to what is in the file; what was said is in it, so it is its owner's alone.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use ds4_model::chat::Delta;
use ds4_model::serve::{Ended, Id, Update};
use serde_json::{Value, json};

use super::worker::how;

pub(crate) struct Trace {
    path: PathBuf,
    /// None when it could not be written to.
    file: Option<File>,
}

impl Trace {
    /// Add to `path`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let name = || format!("cannot write the trace {}", path.display());
        let file = options.open(path).with_context(name)?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
        })
    }

    /// A request came, with a prompt of so many tokens, as text.
    pub(crate) fn prompt(&mut self, id: Id, tokens: usize, text: &str) {
        self.write(
            "prompt",
            json!({ "request": id, "tokens": tokens, "text": text }),
        );
    }

    /// Something happened to kept timelines.
    pub(crate) fn store(&mut self, what: &str) {
        self.write("store", json!({ "what": what }));
    }

    /// An answer went on.
    pub(crate) fn update(&mut self, id: Id, update: &Update) {
        for delta in &update.deltas {
            let (kind, index, text) = match delta {
                Delta::Reasoning(text) => ("reasoning", None, text),
                Delta::Content(text) => ("content", None, text),
                Delta::Call { index, name } => ("call", Some(index), name),
                Delta::Arguments { index, json } => ("arguments", Some(index), json),
            };
            let mut line = json!({ "request": id, kind: text });
            if let Some(index) = index {
                line["index"] = json!(index);
            }
            self.write("parsed", line);
        }
        let Some(end) = &update.end else { return };
        let mut line = json!({
            "request": id,
            "text": end.text,
            "ended": how(&end.ended),
            "tokens": {
                "prompt": end.usage.prompt,
                "cached": end.usage.cached,
                "completion": end.usage.completion,
                "reasoning": end.usage.reasoning,
            },
        });
        match &end.ended {
            Ended::StopString(by) => line["by"] = json!(by),
            Ended::Failed(why) | Ended::Grammar(why) => line["why"] = json!(why),
            Ended::Stop | Ended::Length => {}
        }
        self.write("output", line);
    }

    /// Whoever asked left before the end, or the server stopped.
    pub(crate) fn gone(&mut self, id: Id) {
        self.write("gone", json!({ "request": id }));
    }

    fn write(&mut self, event: &str, members: Value) {
        let Some(file) = &mut self.file else { return };
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut line = json!({ "at": at.map_or(0.0, |at| at.as_secs_f64()), "event": event });
        if let (Some(line), Value::Object(members)) = (line.as_object_mut(), members) {
            line.extend(members);
        }
        // One write a line, so that a reader sees whole ones.
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            let path = self.path.display();
            super::log(format_args!("no more trace: cannot write {path}: {error}"));
            self.file = None;
        }
    }
}
