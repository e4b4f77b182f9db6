//! `cargo xtask kernels`: every GPU kernel compiled for every target, and what it needs of gfx1151 held against a budget.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use ds4_hip_compile::{Compiler, Error, Target};

use crate::shell;

/// What is compiled for. gfx1151 is the product; the others must compile.
const TARGETS: [Target; 6] = [
    Target::Amd("gfx1151"),
    Target::Amd("gfx1100"),
    Target::Amd("gfx1150"),
    Target::Amd("gfx1201"),
    Target::Nvidia("sm_90"),
    Target::Host,
];

/// Debian's packages with what compiles for GPUs.
const PACKAGES: [&str; 3] = ["clang-19", "lld-19", "llvm-19"];

/// How to go about it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install the compiler where Debian's packages are, as root.
    #[arg(long)]
    install: bool,
    /// Write `blocks.h` anew from ds4-quant.
    #[arg(long)]
    blocks: bool,
}

/// Compile, and hold the result against the budget; without a compiler that is said, and no failure.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.install {
        install(root)?;
    }
    if args.blocks {
        fs::write(header(root), ds4_quant::c_header()).context("cannot write blocks.h")?;
    }
    println!("{}", check(root)?);
    Ok(())
}

/// The step of continuous integration; a summary. On its machines what is missing is installed first.
pub(crate) fn ci(root: &Path) -> Result<String> {
    let missing = Compiler::find(Target::Amd("gfx1151")).is_err();
    if missing
        && std::env::var_os("CI").is_some()
        && let Err(why) = install(root)
    {
        println!("SKIPPED: the compiler cannot be installed: {why:#}");
    }
    check(root)
}

fn install(root: &Path) -> Result<()> {
    shell::run(&mut shell::command(root, "apt-get", &["update", "-qq"]))?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(PACKAGES);
    shell::run(&mut shell::command(root, "apt-get", &install))
}

fn check(root: &Path) -> Result<String> {
    let written = fs::read_to_string(header(root)).context("cannot read blocks.h")?;
    ensure!(
        written == ds4_quant::c_header(),
        "blocks.h is not what ds4-quant says; run `cargo xtask kernels --blocks`"
    );
    let sources = sources(root)?;
    let cache = root.join("target/kernels");
    let (mut compiled, mut skipped, mut report) = (0, Vec::new(), None);
    for target in TARGETS {
        let compiler = match Compiler::find(target) {
            Ok(found) => found
                .include(root.join("ds4-hip/include"))
                .include(root.join("ds4-model/kernels/include")),
            Err(why @ Error::NoCompiler { .. }) => {
                println!("SKIPPED: {why}");
                skipped.push(target.arch());
                continue;
            }
            Err(other) => return Err(other.into()),
        };
        let mut codes = Vec::new();
        for source in &sources {
            codes.push(compiler.compile(source, &cache)?);
            compiled += 1;
        }
        if target == Target::Amd("gfx1151") {
            report = Some(gate(root, &codes)?);
        }
    }
    let skipped = match skipped.as_slice() {
        [] => String::new(),
        targets => format!("; SKIPPED {}: no compiler", targets.join(", ")),
    };
    let gate = report.map_or_else(String::new, |r| format!("; {r}"));
    Ok(format!(
        "{compiled} compilations of {} files{gate}{skipped}",
        sources.len()
    ))
}

fn header(root: &Path) -> PathBuf {
    root.join("ds4-model/kernels/include/blocks.h")
}

fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("ds4-model/kernels");
    let mut sources = Vec::new();
    for entry in
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "hip") {
            sources.push(path);
        }
    }
    sources.sort();
    ensure!(!sources.is_empty(), "no kernels in {}", folder.display());
    Ok(sources)
}

#[derive(serde::Deserialize)]
struct Budgets {
    budget: Vec<Budget>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    kernels: String,
    vgpr: u32,
    lds: u32,
    #[serde(default)]
    instructions: Vec<String>,
}

/// What the code object's notes say of one kernel.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    vgpr: u32,
    sgpr: u32,
    lds: u32,
    scratch: u32,
    spilled: u32,
    wave: u32,
}

/// Hold every kernel of the code objects against the budget; print the table.
fn gate(root: &Path, codes: &[PathBuf]) -> Result<String> {
    let path = root.join("ds4-model/kernels/budget.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let budgets: Budgets =
        toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))?;
    let (mut kernels, mut faults) = (0, Vec::new());
    println!("| kernel | VGPR | SGPR | LDS | instructions |");
    println!("|---|---|---|---|---|");
    for code in codes {
        let needs = notes(&output("llvm-readelf-19", &["--notes"], code)?);
        let listing = listing(&output("llvm-objdump-19", &["-d", "--mcpu=gfx1151"], code)?);
        ensure!(!needs.is_empty(), "{} has no kernel", code.display());
        for (name, needs) in needs {
            kernels += 1;
            let words = listing.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            println!(
                "| {name} | {} | {} | {} | {} |",
                needs.vgpr,
                needs.sgpr,
                needs.lds,
                words.len()
            );
            match budgets.budget.iter().find(|b| fits(&b.kernels, &name)) {
                Some(budget) => faults.extend(broken(&name, &needs, words, budget)),
                None => faults.push(format!("{name} has no row in {}", path.display())),
            }
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(format!("{kernels} kernels of gfx1151 within their budgets"))
}

/// What of the budget a kernel breaks.
fn broken(name: &str, needs: &Needs, words: &[String], budget: &Budget) -> Vec<String> {
    let mut faults = Vec::new();
    let mut most = |what: &str, found: u32, most: u32| {
        if found > most {
            faults.push(format!("{name}: {what} {found}, the budget is {most}"));
        }
    };
    most("VGPRs", needs.vgpr, budget.vgpr);
    most("bytes of LDS", needs.lds, budget.lds);
    most("bytes of scratch", needs.scratch, 0);
    most("spilled registers", needs.spilled, 0);
    if needs.wave != 32 {
        faults.push(format!("{name}: waves of {}, expected 32", needs.wave));
    }
    for instruction in &budget.instructions {
        if !words.iter().any(|w| w.contains(instruction.as_str())) {
            faults.push(format!("{name}: no {instruction} in its code"));
        }
    }
    faults
}

/// Whether `name` is what `pattern` says, `*` standing for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = true;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (open && pattern.ends_with('*'))
}

/// Each kernel and its needs, out of `llvm-readelf --notes`.
fn notes(text: &str) -> BTreeMap<String, Needs> {
    let mut all = BTreeMap::new();
    let mut now = Needs::default();
    let mut name = None;
    // A kernel's entries are in the order of the alphabet, the last one `.wavefront_size`; arguments have a `.name` each too,
    // deeper in.
    for line in text.lines() {
        let depth = line.len() - line.trim_start_matches([' ', '-']).len();
        let Some((key, value)) = line.trim_start_matches([' ', '-']).split_once(':') else {
            continue;
        };
        let value = value.trim();
        let number = || value.parse().unwrap_or(u32::MAX);
        match key {
            ".name" if depth <= 4 => name = Some(value.to_owned()),
            ".vgpr_count" => now.vgpr = number(),
            ".sgpr_count" => now.sgpr = number(),
            ".group_segment_fixed_size" => now.lds = number(),
            ".private_segment_fixed_size" => now.scratch = number(),
            ".vgpr_spill_count" | ".sgpr_spill_count" => now.spilled += number(),
            ".wavefront_size" => {
                now.wave = number();
                if let Some(name) = name.take() {
                    all.insert(name, std::mem::take(&mut now));
                }
            }
            _ => {}
        }
    }
    all
}

/// The instructions of each function, out of `llvm-objdump -d`; both halves of a pair.
fn listing(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(label) = line.split_once('<').and_then(|(_, r)| r.strip_suffix(">:")) {
            name = label.to_owned();
        } else if line.starts_with('\t') {
            let code = line.split("//").next().unwrap_or_default();
            let words = code
                .split("::")
                .filter_map(|half| half.split_whitespace().next());
            all.entry(name.clone())
                .or_default()
                .extend(words.map(str::to_owned));
        }
    }
    all
}

fn output(program: &str, arguments: &[&str], file: &Path) -> Result<String> {
    let said = Command::new(program)
        .args(arguments)
        .arg(file)
        .output()
        .with_context(|| {
            format!("cannot start {program}; `cargo xtask kernels --install` installs it")
        })?;
    ensure!(
        said.status.success(),
        "{program} {}: {}",
        file.display(),
        String::from_utf8_lossy(&said.stderr)
    );
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, want) in [
            ("linear_*", "linear_q8_0_1", true),
            ("linear_q8_0_1", "linear_q8_0_1", true),
            ("linear_q8_0", "linear_q8_0_1", false),
            ("linear_*_1", "linear_q8_0_1", true),
            ("linear_*_4", "linear_q8_0_1", false),
            ("other_*", "linear_q8_0_1", false),
        ] {
            assert_eq!(fits(pattern, name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn every_part_of_a_budget_is_held_to() {
        let budget = Budget {
            kernels: "k".to_owned(),
            vgpr: 24,
            lds: 0,
            instructions: vec!["v_dot4_i32_iu8".to_owned()],
        };
        let good = Needs {
            vgpr: 24,
            wave: 32,
            ..Needs::default()
        };
        let words = ["v_dot4_i32_iu8".to_owned()];
        assert!(broken("k", &good, &words, &budget).is_empty());
        assert_eq!(broken("k", &good, &[], &budget).len(), 1);
        let bad = Needs {
            vgpr: 25,
            sgpr: 1,
            lds: 1,
            scratch: 1,
            spilled: 1,
            wave: 64,
        };
        assert_eq!(broken("k", &bad, &words, &budget).len(), 5);
    }

    #[test]
    fn notes_and_listings_are_read() {
        let text = "\
amdhsa.kernels:
  - .args:
      - .name:           w
        .offset:         0
    .group_segment_fixed_size: 16
    .name:           k
    .private_segment_fixed_size: 0
    .sgpr_count:     9
    .sgpr_spill_count: 0
    .symbol:         k.kd
    .vgpr_count:     23
    .vgpr_spill_count: 2
    .wavefront_size: 32
";
        let want = Needs {
            vgpr: 23,
            sgpr: 9,
            lds: 16,
            scratch: 0,
            spilled: 2,
            wave: 32,
        };
        assert_eq!(notes(text), BTreeMap::from([("k".to_owned(), want)]));
        let text = "0000000000001900 <k>:\n\ts_load_b64 s[0:1], s[0:1], null // 1\n\tv_dual_mov_b32 v0, 0 :: v_dual_mov_b32 v1, 1 // 2\n";
        assert_eq!(
            listing(text)["k"],
            ["s_load_b64", "v_dual_mov_b32", "v_dual_mov_b32"]
        );
    }
}
