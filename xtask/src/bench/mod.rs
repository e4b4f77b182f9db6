//! `cargo xtask bench`: the criterion benches of the libraries, and tokens a second of the whole engine, with another beside it if asked.
//!
//! Results go to `target/bench/report.json` and two charts. Engines take turns (ours, theirs, ours, theirs …), so that a
//! machine that slows down slows both; what is compared is the ratio of medians.

mod machine;
mod micro;
mod speed;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ds4_model::measure::chart::{self, Bar, significant};
use regex::Regex;
use serde::Serialize;

use crate::{shell, synthetic, workspace};
use machine::Machine;
use micro::Median;
use speed::{Contender, Load, Speed};

/// Packages whose criterion benches are run.
const MICRO: [&str; 2] = ["ds4-gguf", "ds4-quant"];

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fewer rounds, shorter benches, fewer layers: a few minutes in all.
    #[arg(long)]
    quick: bool,
    /// Leave the criterion benches out.
    #[arg(long)]
    no_micro: bool,
    /// Measure this GGUF instead of the demo model and the synthetic slice; may be given more than once.
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// Another engine's command, measured on the same files: {model}, {threads}, {prompt} and {gen} are filled in.
    #[arg(long, value_name = "CMD")]
    peer: Option<String>,
    /// Finds the peer's prefill tokens a second in what it prints: the first group that matches.
    #[arg(long, value_name = "REGEX", default_value = speed::PEER_PREFILL)]
    peer_prefill: String,
    /// Finds the peer's decode tokens a second.
    #[arg(long, value_name = "REGEX", default_value = speed::PEER_DECODE)]
    peer_decode: String,
    /// Layers of the synthetic slice [default: 4, 3 with --quick].
    #[arg(long)]
    layers: Option<u32>,
    /// Rounds: runs of each engine on each file [default: 5, 3 with --quick].
    #[arg(long)]
    rounds: Option<usize>,
    /// Prompt tokens of the demo model; a synthetic slice gets 64.
    #[arg(long, default_value_t = 256)]
    prompt: usize,
    /// Tokens generated after the prompt.
    #[arg(long = "gen", default_value_t = 32)]
    generate: usize,
    /// Threads of each engine [default: all cores].
    #[arg(long)]
    threads: Option<usize>,
}

/// Everything that was measured.
#[derive(Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    micro: Vec<Median>,
    models: Vec<ModelReport>,
}

/// One file.
#[derive(Serialize)]
struct ModelReport {
    model: String,
    bytes: u64,
    load: Load,
    engines: Vec<EngineReport>,
    /// Ours over the peer's.
    ratio: Option<Speed>,
}

/// One engine on one file.
#[derive(Serialize)]
struct EngineReport {
    name: String,
    runs: Vec<Speed>,
    median: Speed,
}

/// Measure, write the report, print it.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let metadata = workspace::metadata(root)?;
    let target = metadata.target_directory.as_std_path();
    let folder = target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let engines = engines(root, target, args)?;

    let micro = if args.no_micro {
        Vec::new()
    } else {
        micro::run(root, &metadata, &MICRO, args.quick)?
    };
    let rounds = args.rounds.unwrap_or(if args.quick { 3 } else { 5 });
    ensure!(rounds > 0, "--rounds 0 measures nothing");
    let mut models = Vec::new();
    for (model, prompt) in files(root, &folder, args)? {
        let threads = args
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let load = Load {
            prompt,
            generate: args.generate,
            threads,
        };
        models.push(measure(root, &model, load, rounds, &engines)?);
    }
    let report = Report {
        machine: Machine::of(root),
        quick: args.quick,
        micro,
        models,
    };
    write(&folder, &report)?;
    print(&report);
    println!("\nwritten: {}", folder.join("report.json").display());
    Ok(())
}

/// Ours, built for release, and the peer if there is one.
fn engines(root: &Path, target: &Path, args: &Args) -> Result<Vec<Contender>> {
    shell::run(&mut shell::command(
        root,
        "cargo",
        &["build", "--release", "--package", "ds4-cli"],
    ))?;
    let ours = target.join("release/ds4").display().to_string();
    let words = [
        &ours,
        "bench",
        "--model",
        "{model}",
        "--threads",
        "{threads}",
        "--prompt",
        "{prompt}",
        "--gen",
        "{gen}",
        "--json",
    ];
    let mut engines = vec![Contender {
        name: "ds4".into(),
        command: words.map(str::to_owned).to_vec(),
        prefill: Regex::new(r#""prefill_tokens_per_second":\s*([0-9.]+)"#)?,
        decode: Regex::new(r#""decode_tokens_per_second":\s*([0-9.]+)"#)?,
    }];
    if let Some(command) = &args.peer {
        engines.push(Contender {
            name: "peer".into(),
            command: command.split_whitespace().map(str::to_owned).collect(),
            prefill: Regex::new(&args.peer_prefill).context("--peer-prefill")?,
            decode: Regex::new(&args.peer_decode).context("--peer-decode")?,
        });
    }
    Ok(engines)
}

/// The files to measure, each with its prompt length.
fn files(root: &Path, folder: &Path, args: &Args) -> Result<Vec<(PathBuf, usize)>> {
    if !args.model.is_empty() {
        return Ok(args
            .model
            .iter()
            .map(|m| (m.clone(), args.prompt))
            .collect());
    }
    let layers = args.layers.unwrap_or(if args.quick { 3 } else { 4 });
    Ok(vec![
        (root.join("assets/ds4-demo.gguf"), args.prompt),
        (synthetic::cached(folder, layers)?, args.prompt.min(64)),
    ])
}

fn measure(
    root: &Path,
    model: &Path,
    load: Load,
    rounds: usize,
    engines: &[Contender],
) -> Result<ModelReport> {
    let name = model
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let bytes = fs::metadata(model)
        .with_context(|| format!("cannot read {}", model.display()))?
        .len();
    let mut runs = vec![Vec::new(); engines.len()];
    for round in 1..=rounds {
        for (engine, runs) in engines.iter().zip(&mut runs) {
            let speed = engine.run(root, model, load)?;
            println!(
                "  {name} round {round} {:<5} prefill {} decode {} tok/s",
                engine.name,
                significant(speed.prefill),
                significant(speed.decode)
            );
            runs.push(speed);
        }
    }
    let engines: Vec<EngineReport> = engines
        .iter()
        .zip(runs)
        .map(|(engine, runs)| EngineReport {
            name: engine.name.clone(),
            median: speed::medians(&runs),
            runs,
        })
        .collect();
    let ratio = match engines.as_slice() {
        [ours, peer] => Some(Speed {
            prefill: ours.median.prefill / peer.median.prefill,
            decode: ours.median.decode / peer.median.decode,
        }),
        _ => None,
    };
    Ok(ModelReport {
        model: name,
        bytes,
        load,
        engines,
        ratio,
    })
}

fn write(folder: &Path, report: &Report) -> Result<()> {
    let save = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    save("report.json", &serde_json::to_string_pretty(report)?)?;
    save(
        "engine.svg",
        &chart::bars("Whole engine", "tok/s", &engine_bars(report)),
    )?;
    if !report.micro.is_empty() {
        save(
            "micro.svg",
            &chart::bars("Packed weights", "GB/s", &micro_bars(report)),
        )?;
    }
    Ok(())
}

fn engine_bars(report: &Report) -> Vec<Bar> {
    let mut bars = Vec::new();
    for model in &report.models {
        for (what, of) in [
            ("prefill", (|s| s.prefill) as fn(&Speed) -> f64),
            ("decode", |s| s.decode),
        ] {
            for (series, engine) in model.engines.iter().enumerate() {
                bars.push(Bar {
                    label: format!("{} {what}, {}", model.model, engine.name),
                    value: of(&engine.median),
                    series,
                });
            }
        }
    }
    bars
}

fn micro_bars(report: &Report) -> Vec<Bar> {
    let with_bytes = report
        .micro
        .iter()
        .filter_map(|m| Some((m, m.bytes_per_second?)));
    with_bytes
        .map(|(m, speed)| Bar {
            label: m.name.clone(),
            value: speed / 1e9,
            series: 0,
        })
        .collect()
}

fn print(report: &Report) {
    if !report.micro.is_empty() {
        println!("\n{:<60} {:>12} {:>10}", "bench", "median", "GB/s");
        for m in &report.micro {
            let speed = m
                .bytes_per_second
                .map_or_else(String::new, |s| significant(s / 1e9));
            println!(
                "{:<60} {:>9} µs {speed:>10}",
                m.name,
                significant(m.ns / 1e3)
            );
        }
    }
    for model in &report.models {
        let Load {
            prompt,
            generate,
            threads,
        } = model.load;
        println!(
            "\n{} ({:.2} GB), {prompt} prompt + {generate} generated tokens, {threads} threads",
            model.model,
            model.bytes as f64 / 1e9
        );
        for engine in &model.engines {
            let Speed { prefill, decode } = engine.median;
            println!(
                "  {:<6} prefill {:>8} tok/s   decode {:>8} tok/s   (medians of {})",
                engine.name,
                significant(prefill),
                significant(decode),
                engine.runs.len()
            );
        }
        if let Some(ratio) = model.ratio {
            println!(
                "  ratio  prefill {:>8.2}×        decode {:>8.2}×",
                ratio.prefill, ratio.decode
            );
        }
    }
}
