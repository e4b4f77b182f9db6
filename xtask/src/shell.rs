//! Running other programs: echoed, without a shell in between.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command to run in `root`, printed before it starts.
pub(crate) fn command(root: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    command
}

/// Run to the end; its output goes where ours goes.
///
/// # Errors
/// When the program cannot be started or ends with anything but success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Run to the end, showing each line of standard output to `see` after printing it.
///
/// # Errors
/// When the program cannot be started or ends with anything but success.
pub(crate) fn run_watched(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let line = announce(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let stdout = child
        .stdout
        .take()
        .context("standard output was asked for")?;
    for text in BufReader::new(stdout).lines() {
        let text = text.with_context(|| format!("output of `{line}`"))?;
        println!("{text}");
        see(&text);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Run quietly and give back standard output.
///
/// # Errors
/// When the program cannot be started, ends with anything but success, or prints something that is not UTF-8.
pub(crate) fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let line = format!("{program} {}", arguments.join(" "));
    let output = command(root, program, arguments)
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of `{line}`"))
}

/// The command as a person would type it, printed.
fn announce(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!(
                "{}={:?}",
                name.to_string_lossy(),
                value?.to_string_lossy()
            ))
        })
        .collect();
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    let line = words.join(" ");
    println!("  $ {line}");
    line
}
