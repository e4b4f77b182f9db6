//! The environment: every variable that the program reads, in one table.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

/// Threads, where the command line does not say.
pub(crate) const THREADS: &str = "DS4_THREADS";
/// Where the prompts of conversations are kept.
const HISTORY: &str = "DS4_HISTORY";
/// The key of the server. Its value is nobody's business.
pub(crate) const API_KEY: &str = "DS4_API_KEY";

/// How `ds4-bench` goes back to a frontier.
pub(crate) const BENCH_NO_SNAPSHOT: &str = "DS4_BENCH_DISABLE_SNAPSHOT";
pub(crate) const BENCH_ANY_SNAPSHOT: &str = "DS4_BENCH_FORCE_SNAPSHOT";
pub(crate) const BENCH_SNAPSHOT_BYTES: &str = "DS4_BENCH_SNAPSHOT_MAX_BYTES";

/// A file to lock, for one program with a model at a time.
pub(crate) const LOCK: &str = "DS4_LOCK_FILE";

/// What begins like ours.
const PREFIX: &str = "DS4_";

/// Each variable and what it does.
const TABLE: &[(&str, &str)] = &[
    (
        THREADS,
        "threads of every program, where -t does not say; 0 is one a core",
    ),
    (
        HISTORY,
        "file for what is typed at prompts, instead of ~/.ds4_history; empty: none",
    ),
    (
        API_KEY,
        "key that clients of ds4-server must send, where --api-key does not say",
    ),
    (
        BENCH_NO_SNAPSHOT,
        "set: ds4-bench goes back without a copy of the session, where --snapshot-max-bytes does not say",
    ),
    (
        BENCH_ANY_SNAPSHOT,
        "set: ds4-bench makes that copy however large it is",
    ),
    (
        BENCH_SNAPSHOT_BYTES,
        "most bytes of that copy, or `unlimited`",
    ),
    (
        LOCK,
        "file that ds4 and ds4-server lock, so that one of them runs at a time; it has the number of its process",
    ),
];

/// `ds4 env`.
pub(crate) fn run() -> Result<()> {
    let mut out = std::io::stdout().lock();
    for &(name, meaning) in TABLE {
        let value = std::env::var_os(name);
        let shown = match value {
            None => "(not set)".to_owned(),
            Some(_) if name == API_KEY => "(set)".to_owned(),
            Some(value) => format!("{value:?}"),
        };
        writeln!(out, "{name:<28} {shown:<12} {meaning}")?;
    }
    Ok(())
}

/// Say in one line which variables look like ours and are not. Where nobody reads warnings, there is nowhere to say so.
pub(crate) fn warn() {
    let names = unknown(std::env::vars_os().map(|(name, _)| name));
    if names.is_empty() {
        return;
    }
    let _ = writeln!(
        std::io::stderr(),
        "warning: nothing in this build reads {}; `ds4 env` lists what is read",
        names.join(", ")
    );
}

fn unknown(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with(PREFIX) && TABLE.iter().all(|(ours, _)| ours != name))
        .collect();
    unknown.sort();
    unknown
}

/// The file of earlier prompts, if they are kept.
pub(crate) fn history() -> Option<PathBuf> {
    match std::env::var_os(HISTORY) {
        Some(file) => (!file.is_empty()).then(|| file.into()),
        None => std::env::home_dir().map(|home| home.join(".ds4_history")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_the_table_is_unknown() {
        let names = ["PATH", "DS4_THREADS", "DS4_ROCM_X", "DS4_A", "MY_DS4_B"];
        assert_eq!(
            unknown(names.into_iter().map(OsString::from)),
            ["DS4_A", "DS4_ROCM_X"]
        );
    }
}
