//! Tokens a second of a whole engine, ours or another: one run is one process, and its output is read with patterns.

use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde::Serialize;

use crate::shell;

/// Tokens a second.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    /// Of the prompt.
    pub(crate) prefill: f64,
    /// Of the answer.
    pub(crate) decode: f64,
}

/// What one run computes.
#[derive(Serialize, Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Tokens of the prompt.
    pub(crate) prompt: usize,
    /// Tokens generated after it.
    pub(crate) generate: usize,
    /// Threads.
    pub(crate) threads: usize,
}

/// A program that reports tokens a second on its output.
pub(crate) struct Contender {
    /// How the report calls it.
    pub(crate) name: String,
    /// Words of its command line; `{model}`, `{threads}`, `{prompt}` and `{gen}` are filled in.
    pub(crate) command: Vec<String>,
    /// Finds the prefill speed: the first group that matched is the number.
    pub(crate) prefill: Regex,
    /// Finds the decode speed.
    pub(crate) decode: Regex,
}

/// Reads the table of `llama-bench` and the closing lines of `llama-cli`.
pub(crate) const PEER_PREFILL: &str =
    r"\|\s*pp\d+[^|]*\|\s*([0-9.]+)|prompt eval time =.*?([0-9.]+) tokens per second";
/// Reads the table of `llama-bench` and the closing lines of `llama-cli`.
pub(crate) const PEER_DECODE: &str =
    r"\|\s*tg\d+[^|]*\|\s*([0-9.]+)|(?m:(?:^|:)\s*eval time =.*?([0-9.]+) tokens per second)";

impl Contender {
    /// Run once on `model`.
    ///
    /// # Errors
    /// When the program does not start or fails, or a pattern finds no number in what it printed.
    pub(crate) fn run(&self, root: &Path, model: &Path, load: Load) -> Result<Speed> {
        let words: Vec<String> = self.command.iter().map(|w| fill(w, model, load)).collect();
        let [program, arguments @ ..] = words.as_slice() else {
            bail!("the command of {} is empty", self.name)
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = shell::command(root, program, &arguments)
            .output()
            .with_context(|| format!("cannot start `{program}`"))?;
        let printed = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .join("\n");
        if !output.status.success() {
            bail!(
                "`{}` ended with {}:\n{}",
                words.join(" "),
                output.status,
                tail(&printed)
            );
        }
        self.read(&printed)
    }

    fn read(&self, printed: &str) -> Result<Speed> {
        let number = |pattern: &Regex, what: &str| {
            let found = pattern.captures(printed).and_then(|groups| {
                groups
                    .iter()
                    .skip(1)
                    .flatten()
                    .next()
                    .map(|m| m.as_str().to_owned())
            });
            let text = found.with_context(|| {
                format!(
                    "{} printed no {what} speed that matches `{pattern}`:\n{}",
                    self.name,
                    tail(printed)
                )
            })?;
            text.parse::<f64>()
                .with_context(|| format!("{what} speed `{text}`"))
        };
        Ok(Speed {
            prefill: number(&self.prefill, "prefill")?,
            decode: number(&self.decode, "decode")?,
        })
    }
}

fn fill(word: &str, model: &Path, load: Load) -> String {
    word.replace("{model}", &model.display().to_string())
        .replace("{threads}", &load.threads.to_string())
        .replace("{prompt}", &load.prompt.to_string())
        .replace("{gen}", &load.generate.to_string())
}

/// The last lines, for a message.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The middle value; the mean of the two middle ones for an even count. 0 for none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => 0.0,
        _ if n % 2 == 1 => sorted[n / 2],
        _ => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Medians of prefill and decode, each on its own.
pub(crate) fn medians(runs: &[Speed]) -> Speed {
    Speed {
        prefill: median(runs.iter().map(|s| s.prefill)),
        decode: median(runs.iter().map(|s| s.decode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Contender {
        Contender {
            name: "peer".into(),
            command: vec![],
            prefill: Regex::new(PEER_PREFILL).unwrap(),
            decode: Regex::new(PEER_DECODE).unwrap(),
        }
    }

    #[test]
    fn the_table_of_llama_bench_is_read() {
        let printed = "| model | size | params | backend | threads | test | t/s |\n\
                       | deepseek4 | 8.6 GiB | 30 B | CPU | 2 | pp64 | 11.83 ± 0.10 |\n\
                       | deepseek4 | 8.6 GiB | 30 B | CPU | 2 | tg16 | 3.02 ± 0.05 |\n";
        assert_eq!(
            peer().read(printed).unwrap(),
            Speed {
                prefill: 11.83,
                decode: 3.02
            }
        );
    }

    #[test]
    fn the_closing_lines_of_llama_cli_are_read() {
        let printed = "common_perf_print: prompt eval time =    541.20 ms /    64 tokens (    8.46 ms per token,   118.26 tokens per second)\n\
                       common_perf_print:        eval time =    331.10 ms /    15 runs   (   22.07 ms per token,    45.30 tokens per second)\n";
        assert_eq!(
            peer().read(printed).unwrap(),
            Speed {
                prefill: 118.26,
                decode: 45.30
            }
        );
    }

    #[test]
    fn output_without_a_speed_is_an_error_that_shows_the_output() {
        let error = peer()
            .read("loading\nno such model")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("prefill") && error.contains("no such model"),
            "{error}"
        );
    }

    #[test]
    fn placeholders_are_filled_anywhere_in_a_word() {
        let load = Load {
            prompt: 64,
            generate: 16,
            threads: 2,
        };
        assert_eq!(
            fill(
                "{model}:{threads}:{prompt}:{gen}",
                Path::new("a.gguf"),
                load
            ),
            "a.gguf:2:64:16"
        );
    }

    #[test]
    fn medians_ignore_an_outlier() {
        assert_eq!(
            [median([1.0, 100.0, 2.0]), median([1.0, 3.0]), median([])],
            [2.0, 2.0, 0.0]
        );
    }
}
