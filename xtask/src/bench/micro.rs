//! The criterion benches of the libraries, and their results gathered from criterion's files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, TargetKind};
use serde::{Deserialize, Serialize};

use crate::shell;

/// The median of one benchmark.
#[derive(Serialize, Debug, PartialEq)]
pub(crate) struct Median {
    /// `group/function/parameter` as criterion spells it.
    pub(crate) name: String,
    /// Nanoseconds an iteration.
    pub(crate) ns: f64,
    /// Bytes a second, for benchmarks that state how many bytes an iteration handles.
    pub(crate) bytes_per_second: Option<f64>,
}

/// Run every bench target of `packages`, short ones when `quick`, and gather what they measured.
///
/// Results of earlier runs are removed first, so that nothing stale is reported.
pub(crate) fn run(
    root: &Path,
    metadata: &Metadata,
    packages: &[&str],
    quick: bool,
) -> Result<Vec<Median>> {
    let folder = metadata.target_directory.join("criterion");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {folder}"))?;
    }
    for package in metadata
        .workspace_packages()
        .into_iter()
        .filter(|p| packages.contains(&p.name.as_str()))
    {
        for target in package
            .targets
            .iter()
            .filter(|t| t.kind.contains(&TargetKind::Bench))
        {
            let mut words = vec![
                "bench",
                "--package",
                &package.name,
                "--bench",
                &target.name,
                "--",
            ];
            if quick {
                words.extend([
                    "--quick",
                    "--warm-up-time",
                    "0.3",
                    "--measurement-time",
                    "1",
                ]);
            }
            shell::run(&mut shell::command(root, "cargo", &words))?;
        }
    }
    let mut medians = Vec::new();
    gather(folder.as_std_path(), &mut medians)?;
    medians.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(medians)
}

/// `estimates.json` of criterion, the part that is used.
#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// `benchmark.json` of criterion, the part that is used.
#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<serde_json::Value>,
}

/// Read every `new/` folder below `folder`.
fn gather(folder: &Path, medians: &mut Vec<Median>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.ends_with("new") && path.join("estimates.json").exists() {
            let estimates: Estimates = read(&path.join("estimates.json"))?;
            let benchmark: Benchmark = read(&path.join("benchmark.json"))?;
            medians.push(median(estimates, benchmark));
        } else if path.is_dir() {
            gather(&path, medians)?;
        }
    }
    Ok(())
}

fn median(estimates: Estimates, benchmark: Benchmark) -> Median {
    let ns = estimates.median.point_estimate;
    let bytes = benchmark
        .throughput
        .as_ref()
        .and_then(|t| t.get("Bytes"))
        .and_then(serde_json::Value::as_f64);
    Median {
        name: benchmark.full_id,
        ns,
        bytes_per_second: bytes.map(|b| b / ns * 1e9),
    }
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not what criterion 0.8 writes", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_bytes_over_the_median() {
        let estimates = serde_json::from_str(r#"{"mean":{"point_estimate":9.0},"median":{"point_estimate":2.0,"standard_error":0.1}}"#).unwrap();
        let benchmark =
            serde_json::from_str(r#"{"group_id":"g","full_id":"g/f/1","throughput":{"Bytes":34}}"#)
                .unwrap();
        assert_eq!(
            median(estimates, benchmark),
            Median {
                name: "g/f/1".into(),
                ns: 2.0,
                bytes_per_second: Some(17e9)
            }
        );
    }

    #[test]
    fn a_benchmark_without_bytes_has_no_throughput() {
        let estimates = serde_json::from_str(r#"{"median":{"point_estimate":2.0}}"#).unwrap();
        let benchmark =
            serde_json::from_str(r#"{"full_id":"g","throughput":{"Elements":34}}"#).unwrap();
        assert_eq!(median(estimates, benchmark).bytes_per_second, None);
    }
}
