//! What a number is worth nothing without: processor, memory, compiler, commit, date.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::shell;

/// Where and from what a measurement comes. A fact the system does not tell is an empty string.
#[derive(Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory: String,
    rustc: String,
    commit: String,
    /// Seconds since 1970.
    time: u64,
}

impl Machine {
    /// Ask the system.
    pub(crate) fn of(root: &Path) -> Self {
        let line = |program: &str, arguments: &[&str]| {
            shell::output(root, program, arguments)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let changed = !line("git", &["status", "--porcelain"]).is_empty();
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: field("/proc/meminfo", "MemTotal"),
            rustc: line("rustc", &["--version"]),
            commit: line("git", &["rev-parse", "--short", "HEAD"])
                + if changed { " with changes" } else { "" },
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
        }
    }
}

/// The value of the first `name : value` line of a file.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}
