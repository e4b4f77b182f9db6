//! Requantization in place by a process that is killed, again and again.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod model;

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

use ds4_gguf::{Gguf, Malformed, TensorType};
use ds4_quant::recipe::Recipe;
use ds4_quant::requant::{FileStorage, Requant, journal_path, resume};
use ds4_quant::{NonFinite, Pool};

use model::{packed, weight};

/// Kills that must have met a living process.
const KILLS: usize = 200;

/// How the child is told its file.
const FILE: &str = "DS4_TEST_REQUANT_FILE";

fn original() -> Vec<u8> {
    use TensorType::*;
    packed(
        &[
            ("token_embd.weight", &[256, 4], Q8_0, &weight),
            ("blk.0.ffn_down_exps.weight", &[256, 40, 3], Mxfp4, &|i| {
                weight(i + 2)
            }),
            ("blk.1.attn_kv.weight", &[256, 7], Q8_0, &|i| weight(i + 3)),
            ("blk.1.ffn_down_exps.weight", &[256, 40, 3], Mxfp4, &|i| {
                weight(i + 4)
            }),
            ("output.weight", &[256, 9], Q8_0, &|i| weight(i + 5)),
        ],
        &[],
    )
}

/// Begin or resume; `on` hears of every step.
fn work(path: &Path, mut on: impl FnMut()) {
    let pool = Pool::new(1).unwrap();
    let mut on = |_: ds4_quant::quantize::Progress<'_>| {
        on();
        ControlFlow::Continue(())
    };
    match Gguf::open(path) {
        Ok(source) => {
            let recipe = Recipe::named("q2k-down").unwrap();
            let Ok(requant) = Requant::new(&source, &recipe, None, NonFinite::Refuse) else {
                // Killed between the last two operations: it is finished, and a journal is left.
                return drop(resume(&mut FileStorage::open(path).unwrap(), &pool, on));
            };
            drop(source);
            let mut storage = FileStorage::open(path).unwrap();
            let requant = requant.steps_of(1000, 400);
            requant.run(&mut storage, &pool, on).unwrap();
        }
        Err(error) => {
            assert!(
                matches!(error.fault(), Some(Malformed::Unfinished)),
                "{error}"
            );
            resume(&mut FileStorage::open(path).unwrap(), &pool, &mut on).unwrap();
        }
    }
}

#[test]
#[ignore = "runs only as a child of the test below"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test harness leaves a child no arguments"
)]
fn child() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let mut out = std::io::stdout();
    work(path.as_ref(), || {
        out.write_all(b"step\n").unwrap();
        out.flush().unwrap();
    });
}

/// Run the child, kill it after some steps. Whether it was alive then.
fn killed_after(path: &Path, steps: usize) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .filter(|line| line.ends_with("step"))
        .take(steps)
        .for_each(drop);
    // An error says that it has ended by itself.
    let _ = child.kill();
    !child.wait().unwrap().success()
}

#[test]
fn a_process_killed_two_hundred_times_leaves_the_old_model_or_one_that_resumes() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    let original = original();
    std::fs::write(&path, &original).unwrap();
    let mut steps = 0;
    work(&path, || steps += 1);
    assert!(steps > 20, "{steps}");
    let finished = std::fs::read(&path).unwrap();
    assert_eq!(Gguf::open(&path).unwrap().tensors()[1].ty, TensorType::Q2K);

    let mut state = 7u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % n
    };
    let (mut kills, mut unfinished) = (0, 0);
    while kills < KILLS {
        std::fs::write(&path, &original).unwrap();
        // One to eight kills on the way to the end, each after a part of the steps.
        for _ in 0..=random(8) {
            let after = random(steps / 4 + 1);
            if !killed_after(&path, after) {
                break;
            }
            kills += 1;
            let found = std::fs::read(&path).unwrap();
            match Gguf::open(&path) {
                Ok(_) => assert!(
                    found == original || found == finished,
                    "killed after {after} steps: neither the old nor the new model"
                ),
                Err(error) => {
                    assert!(
                        matches!(error.fault(), Some(Malformed::Unfinished)),
                        "{error}"
                    );
                    unfinished += 1;
                }
            }
        }
        work(&path, || {});
        assert!(std::fs::read(&path).unwrap() == finished, "other bytes");
        assert!(!journal_path(&path).exists());
    }
    // Otherwise the kills came at the wrong time and say nothing.
    assert!(
        unfinished > KILLS / 2,
        "{unfinished} of {kills} in the middle"
    );
}
