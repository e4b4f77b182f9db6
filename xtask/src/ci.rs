//! `cargo xtask ci`: what continuous integration runs, step by step, with the time each took.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::examples::{EXAMPLES, Run};
use crate::{shell, tidy, workspace};

/// Which steps to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run this step alone; may be given more than once.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and stop.
    #[arg(long)]
    list: bool,
}

/// One step: its name, what it proves, and how.
struct Step {
    name: &'static str,
    proves: &'static str,
    run: fn(&Path) -> Result<String>,
}

/// In the order they run: cheap and likely to fail first.
const STEPS: [Step; 11] = [
    Step {
        name: "format",
        proves: "rustfmt agrees with every file",
        run: format,
    },
    Step {
        name: "tidy",
        proves: "layers, file sizes, unsafe files, licences, documents",
        run: tidy,
    },
    Step {
        name: "clippy",
        proves: "no lint fires, all targets, all features",
        run: clippy,
    },
    Step {
        name: "docs",
        proves: "every public item is documented, every link leads somewhere",
        run: docs,
    },
    Step {
        name: "crates",
        proves: "each library builds alone, without and with all features",
        run: crates,
    },
    Step {
        name: "wasm",
        proves: "ds4-gguf and ds4-quant build for WebAssembly",
        run: wasm,
    },
    Step {
        name: "kernels",
        proves: "GPU kernels compile for every target, those of gfx1151 within their budgets",
        run: crate::kernels::ci,
    },
    Step {
        name: "tests",
        proves: "unit, golden, property and corpus tests",
        run: tests,
    },
    Step {
        name: "doctests",
        proves: "the snippets in README and documentation run",
        run: doctests,
    },
    Step {
        name: "examples",
        proves: "every example runs and prints what it should",
        run: examples,
    },
    Step {
        name: "clients",
        proves: "official clients and a browser get what they expect from ds4-server",
        run: crate::clients::run,
    },
];

/// What became of a step.
struct Outcome {
    name: &'static str,
    result: Result<String>,
    took: Duration,
}

/// Run the steps; stop at the first that fails.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.list {
        for step in &STEPS {
            println!("{:<10} {}", step.name, step.proves);
        }
        return Ok(());
    }
    for name in &args.only {
        ensure!(
            STEPS.iter().any(|s| s.name == name),
            "no step is called `{name}`; `cargo xtask ci --list` names them"
        );
    }
    let chosen = STEPS
        .iter()
        .filter(|s| args.only.is_empty() || args.only.iter().any(|name| name == s.name));
    let started = Instant::now();
    let mut outcomes = Vec::new();
    for step in chosen {
        println!("\n== {}: {}", step.name, step.proves);
        let from = Instant::now();
        let result = (step.run)(root);
        let failed = result.is_err();
        outcomes.push(Outcome {
            name: step.name,
            result,
            took: from.elapsed(),
        });
        if failed {
            break;
        }
    }
    summary(&outcomes, started.elapsed())
}

fn summary(outcomes: &[Outcome], total: Duration) -> Result<()> {
    println!("\n{:<10} {:>8}  result", "step", "time");
    for o in outcomes {
        let result = o.result.as_ref().map_or("FAILED", String::as_str);
        println!("{:<10} {:>6.1} s  {result}", o.name, o.took.as_secs_f64());
    }
    println!("{:<10} {:>6.1} s", "total", total.as_secs_f64());
    for o in outcomes {
        if let Err(error) = &o.result {
            bail!(
                "ci failed at step `{0}`: {error:#}\nrun it alone with: cargo xtask ci --only {0}",
                o.name
            );
        }
    }
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    shell::command(root, "cargo", arguments)
}

fn format(root: &Path) -> Result<String> {
    shell::run(&mut cargo(root, &["fmt", "--all", "--", "--check"]))?;
    Ok("ok".into())
}

fn tidy(root: &Path) -> Result<String> {
    tidy::run(root)?;
    Ok("ok".into())
}

fn clippy(root: &Path) -> Result<String> {
    shell::run(&mut cargo(
        root,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ],
    ))?;
    Ok("ok".into())
}

fn docs(root: &Path) -> Result<String> {
    let mut doc = cargo(root, &["doc", "--workspace", "--all-features", "--no-deps"]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok("ok".into())
}

/// Feature unification over the workspace hides a missing dependency or feature; a crate checked alone does not.
fn crates(root: &Path) -> Result<String> {
    let metadata = workspace::metadata(root)?;
    let libraries: Vec<String> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|p| {
            p.publish.is_none()
                && p.targets
                    .iter()
                    .any(|t| t.kind.contains(&cargo_metadata::TargetKind::Lib))
        })
        .map(|p| p.name.to_string())
        .collect();
    for name in &libraries {
        shell::run(&mut cargo(
            root,
            &["check", "--package", name, "--no-default-features"],
        ))?;
        shell::run(&mut cargo(
            root,
            &["check", "--package", name, "--all-features"],
        ))?;
    }
    Ok(format!("ok, {} crates", libraries.len()))
}

fn wasm(root: &Path) -> Result<String> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let folder = shell::output(
        root,
        "rustc",
        &["--print", "target-libdir", "--target", TARGET],
    )?;
    if !Path::new(folder.trim()).exists() {
        println!("  skipped: target {TARGET} is not installed");
        return Ok(format!("skipped, target {TARGET} is not installed"));
    }
    for name in ["ds4-gguf", "ds4-quant"] {
        shell::run(&mut cargo(
            root,
            &[
                "check",
                "--package",
                name,
                "--no-default-features",
                "--target",
                TARGET,
            ],
        ))?;
    }
    Ok("ok".into())
}

fn tests(root: &Path) -> Result<String> {
    counted(cargo(
        root,
        &[
            "test",
            "--workspace",
            "--all-features",
            "--lib",
            "--bins",
            "--tests",
        ],
    ))
}

fn doctests(root: &Path) -> Result<String> {
    counted(cargo(
        root,
        &["test", "--workspace", "--all-features", "--doc"],
    ))
}

/// Run `cargo test` and add up its result lines.
fn counted(mut command: Command) -> Result<String> {
    let mut counts = Counts::default();
    shell::run_watched(&mut command, |line| counts.add(line))?;
    let text = format!(
        "{} passed, {} failed, {} ignored",
        counts.passed, counts.failed, counts.ignored
    );
    println!("  {text}");
    Ok(text)
}

/// What the `test result:` lines say together.
#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result:") else {
            return;
        };
        let words: Vec<&str> = counts
            .split([' ', ';', '.'])
            .filter(|w| !w.is_empty())
            .collect();
        for pair in words.windows(2) {
            let Ok(n) = pair[0].parse::<usize>() else {
                continue;
            };
            match pair[1] {
                "passed" => self.passed += n,
                "failed" => self.failed += n,
                "ignored" => self.ignored += n,
                _ => {}
            }
        }
    }
}

fn examples(root: &Path) -> Result<String> {
    let target = workspace::metadata(root)?.target_directory;
    // The same selection of packages and features as the tests, so nothing is built twice.
    shell::run(&mut cargo(
        root,
        &["build", "--workspace", "--all-features", "--examples"],
    ))?;
    let programs = target.join("debug/examples");
    let mut runs = 0;
    for example in &EXAMPLES {
        let out = target.join("ci").join(example.name);
        for run in example.runs {
            if out.exists() {
                fs::remove_dir_all(&out).with_context(|| format!("cannot remove {out}"))?;
            }
            fs::create_dir_all(&out).with_context(|| format!("cannot make {out}"))?;
            let program = programs.join(example.name);
            run_example(root, program.as_str(), run, out.as_str())
                .with_context(|| format!("example `{}`", example.name))?;
            runs += 1;
        }
    }
    Ok(format!("ok, {} examples, {runs} runs", EXAMPLES.len()))
}

fn run_example(root: &Path, program: &str, run: &Run, out: &str) -> Result<()> {
    const SHOWN: usize = 12;
    let arguments: Vec<String> = run.args.iter().map(|a| a.replace("{out}", out)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    println!("  $ {program} {}", arguments.join(" "));
    let printed = shell::output(root, program, &arguments)?;
    printed
        .lines()
        .take(SHOWN)
        .for_each(|line| println!("    {line}"));
    for expected in run.stdout {
        ensure!(
            printed.contains(expected),
            "standard output lacks `{expected}`:\n{printed}"
        );
    }
    for (file, bytes) in run.writes {
        let length = fs::metadata(Path::new(out).join(file))
            .with_context(|| format!("it did not write {file}"))?
            .len();
        ensure!(
            length == *bytes,
            "{file} has {length} bytes, expected {bytes}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up() {
        let mut counts = Counts::default();
        counts.add("test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out; finished in 0.52s");
        counts.add("test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s");
        counts.add("running 12 tests");
        assert_eq!(
            counts,
            Counts {
                passed: 17,
                failed: 2,
                ignored: 3
            }
        );
    }

    #[test]
    fn step_names_are_unique() {
        let mut names: Vec<_> = STEPS.iter().map(|s| s.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
