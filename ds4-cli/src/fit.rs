//! `ds4 fit`.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use ds4_gguf::Gguf;
use ds4_model::Options;
use ds4_model::fit::{Fit, Machine, Need};

use crate::args;
use crate::exit::{Exit, Usage};

pub(crate) fn run(args: &args::Fit) -> Result<Exit> {
    let gguf = Gguf::open(&args.model).with_context(|| args.model.display().to_string())?;
    let mut options = Options::default();
    options.context = Some(args.context.get());
    options.prefill_rows = args.prefill_chunk.get();
    let need = Need::of(&gguf, options, args.sessions.get())
        .with_context(|| args.model.display().to_string())?;
    let machine = match args.memory {
        Some(bytes) => Machine {
            total: bytes,
            available: bytes,
        },
        None => this_machine().ok_or_else(|| {
            Usage("cannot tell how much memory this machine has; say it with --memory".to_owned())
        })?,
    };
    let fit = Fit { need, machine };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", fit.to_json())?;
    } else {
        writeln!(out, "{fit}")?;
    }
    Ok(if fit.fits() { Exit::Ok } else { Exit::Failed })
}

/// Memory by `/proc/meminfo`, or what the control group of this process leaves of it.
fn this_machine() -> Option<Machine> {
    let machine = meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|groups| group_limit(&groups, Path::new("/sys/fs/cgroup")));
    Some(match group {
        Some(group) => Machine {
            total: machine.total.min(group.total),
            available: machine.available.min(group.available),
        },
        None => machine,
    })
}

fn meminfo(text: &str) -> Option<Machine> {
    let bytes = |key: &str| field(text, key)?.checked_mul(1024);
    Some(Machine {
        total: bytes("MemTotal:")?,
        available: bytes("MemAvailable:")?,
    })
}

/// The number after `key` at the start of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(key)).then(|| words.next()?.parse().ok())?
    })
}

/// The limit of a version 2 group and what is left below it; files in memory make room.
fn group_limit(groups: &str, root: &Path) -> Option<Machine> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let read = |name| fs::read_to_string(root.join(group).join(name)).ok();
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let total = number("memory.max")?;
    let files = read("memory.stat").and_then(|stat| field(&stat, "file"));
    let used = number("memory.current")?.saturating_sub(files.unwrap_or(0));
    Some(Machine {
        total,
        available: total.saturating_sub(used),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kibibytes() {
        let text = "MemTotal:       16 kB\nMemFree:  1 kB\nMemAvailable:    8 kB\n";
        let machine = meminfo(text).unwrap();
        assert_eq!((machine.total, machine.available), (16384, 8192));
        assert_eq!(meminfo("MemTotal: 16 kB\n"), None);
    }

    #[test]
    fn a_group_with_a_limit_has_less() {
        let root = tempfile::TempDir::new().unwrap();
        let group = root.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        for (name, text) in [
            ("memory.max", "1000\n"),
            ("memory.current", "700\n"),
            ("memory.stat", "anon 400\nfile 300\n"),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
        let machine = group_limit("1:name:/x\n0::/a/b\n", root.path()).unwrap();
        assert_eq!((machine.total, machine.available), (1000, 600));
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(group_limit("0::/a/b\n", root.path()), None);
    }
}
