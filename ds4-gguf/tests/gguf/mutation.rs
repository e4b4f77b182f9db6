//! Mutated files: each is opened and used, or refused with an error; none ends the program.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::exercise::{Outcome, exercise};
use crate::mutate::{Rng, mutant, seeds};

/// What `count` mutants did.
#[derive(Default)]
struct Tally {
    opened: u64,
    refused: BTreeMap<String, u64>,
    /// Seeds of the mutants that panicked.
    panicked: Vec<u64>,
}

fn run(count: u64) -> Tally {
    let seeds = seeds();
    let mut tally = Tally::default();
    for seed in 0..count {
        let bytes = mutant(&seeds, &mut Rng(seed));
        match catch_unwind(AssertUnwindSafe(|| exercise(&bytes))) {
            Ok(Outcome::Opened) => tally.opened += 1,
            Ok(Outcome::Refused(error)) => *tally.refused.entry(kind(&error)).or_default() += 1,
            Err(_) => tally.panicked.push(seed),
        }
    }
    tally
}

/// The name of the error's variant, of the fault's where there is one.
fn kind(error: &ds4_gguf::Error) -> String {
    let shown = error
        .fault()
        .map_or_else(|| format!("{error:?}"), |fault| format!("{fault:?}"));
    shown
        .split([' ', '{', '('])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Largest resident set of this process so far in MiB, where the system tells.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

#[test]
fn seeds_are_valid_files() {
    for (i, seed) in seeds().iter().enumerate() {
        if let Outcome::Refused(error) = exercise(seed) {
            panic!("seed {i}: {error}");
        }
    }
}

#[test]
fn twenty_thousand_mutants_open_or_are_refused() {
    let tally = run(20_000);
    assert_eq!(tally.panicked, [0u64; 0]);
    // The mutations reach deep: some files still open, and most rules get broken.
    assert!(tally.opened > 1000, "{}", tally.opened);
    assert!(tally.refused.len() >= 15, "{:?}", tally.refused);
}

#[test]
#[ignore = "one million mutants take minutes; run with -- --ignored --nocapture million"]
fn a_million_mutants_open_or_are_refused_in_bounded_memory() {
    let tally = run(1_000_000);
    let refused: u64 = tally.refused.values().sum();
    let peak = peak_mib();
    println!(
        "1000000 mutants: {} opened, {refused} refused, {} panicked",
        tally.opened,
        tally.panicked.len()
    );
    println!(
        "peak RSS: {} MiB",
        peak.map_or("unknown".into(), |mib| mib.to_string())
    );
    for (kind, count) in &tally.refused {
        println!("{count:>8} {kind}");
    }
    assert_eq!(tally.panicked, [0u64; 0]);
    // The reader's limits allow far more than a file of kilobytes can hold.
    assert!(peak.is_none_or(|mib| mib < 100), "{peak:?} MiB");
}
