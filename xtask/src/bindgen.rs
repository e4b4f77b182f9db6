//! `cargo xtask bindgen`: the bindings of ds4-hip, made again from HIP's header.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

/// What the bindings are made of.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder that has `hip/hip_runtime_api.h`: ROCm's `include`, or the same folder of a package that carries it.
    #[arg(long, value_name = "FOLDER")]
    include: PathBuf,
}

/// The version that the checked-in bindings were made with.
const BINDGEN: &str = "0.73.2";

/// Write `ds4-hip/src/sys/hip.rs`.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let tools = root.join("target/tools");
    let program = tools.join("bin/bindgen");
    if !program.exists() {
        let folder = tools.to_string_lossy();
        let install = [
            "install",
            "bindgen-cli",
            "--version",
            BINDGEN,
            "--root",
            &folder,
        ];
        shell::run(&mut shell::command(root, "cargo", &install))?;
    }
    let sys = root.join("ds4-hip/src/sys");
    let functions =
        fs::read_to_string(sys.join("functions.txt")).context("cannot read functions.txt")?;
    let names: Vec<&str> = functions
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect();
    let header = tools.join("hip.h");
    fs::write(
        &header,
        "#define __HIP_PLATFORM_AMD__ 1\n#include <hip/hip_runtime_api.h>\n",
    )
    .with_context(|| format!("cannot write {}", header.display()))?;
    let functions = format!("({})", names.join("|"));
    let mut bindgen = shell::command(root, &program.to_string_lossy(), &[]);
    bindgen
        .arg(&header)
        .args([
            "--dynamic-loading",
            "Hip",
            "--allowlist-function",
            &functions,
        ])
        .args([
            "--no-layout-tests",
            "--no-doc-comments",
            "--merge-extern-blocks",
        ])
        // A status that a newer runtime made up is a number, not undefined behaviour.
        .args(["--default-enum-style", "newtype", "--with-derive-default"])
        .args(["--rust-target", "1.85", "--rust-edition", "2024"])
        .arg("-o")
        .arg(sys.join("hip.rs"))
        .arg("--")
        .arg("-isystem")
        .arg(&args.include);
    shell::run(&mut bindgen)
}
