//! `ds4` without a command, and `fit`, `env`, `completions`, `man`: the built program, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ds4_model::tokenizer::Special;
use ds4_model::{Engine, Message, Options, diagnose};
use serde_json::Value;
use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
const FRANCE: &str = "What is the capital of France?";
const PARIS: &str = "The capital of France is Paris.\n";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4"));
    command
        .args(arguments)
        .env_remove("DS4_THREADS")
        .stdin(Stdio::null());
    command
}

fn ds4(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a success.
fn said(arguments: &[&str]) -> String {
    let output = ds4(arguments);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    text(&output.stdout)
}

fn piped(arguments: &[&str], input: &str) -> Output {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its command line does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn engine() -> Engine {
    let mut options = Options::default();
    options.context = Some(32_768);
    Engine::open(DEMO, options).unwrap()
}

#[test]
fn the_answer_alone_is_on_standard_output() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("question");
    std::fs::write(&file, FRANCE).unwrap();
    let model = ["-m", DEMO, "--temp", "0"];
    for rest in [
        &["-p", FRANCE] as &[&str],
        &["--prompt", FRANCE, "--nothink", "-sys", ""],
        &["--prompt-file", file.to_str().unwrap(), "--cpu", "-t", "1"],
        &[
            "-p",
            FRANCE,
            "--prefill-chunk",
            "3",
            "--quality",
            "--warm-weights",
        ],
    ] {
        let arguments = [&model[..], rest].concat();
        assert_eq!(said(&arguments), PARIS, "{arguments:?}");
    }
    let output = piped(&model, &format!("{FRANCE}\n"));
    assert_eq!(text(&output.stdout), PARIS);
    let errors = text(&output.stderr);
    assert!(
        errors.contains("<think>The user asks") && errors.contains("</think>\n"),
        "{errors}"
    );
    assert!(!errors.contains('\x1b'), "no terminal: {errors:?}");
}

#[test]
fn a_seed_draws_the_same_answer_and_the_last_thinking_flag_wins() {
    let warm = [
        "-m", DEMO, "-p", FRANCE, "--temp", "3", "--seed", "5", "-n", "12",
    ];
    assert_eq!(said(&warm), said(&warm));
    let arguments = [&warm[..], &["--nothink", "--think-max"]].concat();
    let output = ds4(&arguments);
    let errors = text(&output.stderr);
    assert!(errors.contains("needs a context of 393216"), "{errors}");
    let arguments = [
        "-m",
        DEMO,
        "-p",
        FRANCE,
        "--temp",
        "0",
        "--think-max",
        "--nothink",
    ];
    let output = ds4(&arguments);
    let errors = text(&output.stderr);
    assert_eq!(text(&output.stdout), PARIS);
    assert!(!errors.contains("think"), "{errors}");
}

#[test]
fn a_raw_prompt_is_continued() {
    let prompt =
        "<｜begin▁of▁sentence｜><｜User｜>What is the capital of France?<｜Assistant｜></think>";
    let arguments = ["-m", DEMO, "--raw", "--temp", "0", "-p", prompt];
    assert_eq!(said(&arguments), PARIS);
    let arguments = ["-m", DEMO, "--temp", "0", "--raw", "-p", prompt, "-n", "2"];
    assert_eq!(said(&arguments), "The capital\n");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_code() {
    let folder = TempDir::new().unwrap();
    let nowhere = folder.path().join("no/where");
    let nowhere = nowhere.to_str().unwrap();
    let short = folder.path().join("short");
    std::fs::write(&short, "Too short.").unwrap();
    let short = short.to_str().unwrap();
    let long = FRANCE.repeat(20);
    for (arguments, code, words) in [
        (&["-m", DEMO] as &[&str], 2, "the prompt is empty"),
        (&["-m", DEMO, "-p", ""], 2, "the prompt is empty"),
        (&["-m", DEMO, "--dump-tokens"], 2, "the prompt is empty"),
        (&["-p", "a", "--prompt-file", short], 2, "--prompt-file"),
        (&["-p", "a", "-p", "b"], 2, "--prompt"),
        (
            &["-p", "a", "--perplexity-file", short],
            2,
            "--perplexity-file",
        ),
        (&["-p", "a", "--dump-tokens", "--inspect"], 2, "--inspect"),
        (
            &["-m", DEMO, "--perplexity-file", short],
            2,
            "more than 32 tokens",
        ),
        (&["--temp", "101"], 2, "from 0 to 100"),
        (&["--temp", "NaN"], 2, "from 0 to 100"),
        (&["--top-p", "1.1"], 2, "from 0 to 1"),
        (&["--min-p=-1"], 2, "from 0 to 1"),
        (&["--top-k", "1025"], 2, "1024"),
        (&["--ctx", "0"], 2, "--ctx"),
        (&["-n", "0"], 2, "--tokens"),
        (&["--backend", "rocm"], 2, "processor alone"),
        (&["inspect", "-m", DEMO], 2, "-m"),
        (&["-m", DEMO, "inspect", DEMO], 2, "inspect"),
        (&["-m", nowhere, "-p", "a"], 3, "-m FILE names a model"),
        (&["-m", short, "-p", "a"], 3, "short"),
        (&["-m", DEMO, "--prompt-file", nowhere], 1, "no/where"),
        (
            &["-m", DEMO, "-p", "a", "--dump-logits", nowhere],
            1,
            "no/where",
        ),
        (&["-m", DEMO, "-c", "64", "-p", &long], 1, "context of 64"),
        (&["--help", "magic"], 2, "`magic`"),
        (&["fit"], 2, "MODEL"),
        (&["fit", nowhere], 3, "no/where"),
        (&["completions", "sh"], 2, "bash"),
    ] {
        let output = ds4(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[test]
fn options_of_other_builds_are_refused_in_one_line() {
    for (arguments, words) in [
        (&["--rocm"] as &[&str], "--rocm is not taken"),
        (&["--hip"], "processor alone"),
        (&["--metal"], "--metal"),
        (&["--cuda"], "--cuda"),
        (&["--power", "50"], "--power"),
        (&["--ssd-streaming"], "streams none"),
        (&["--ssd-streaming-cache-experts", "8GB"], "streams none"),
        (&["--mtp", "FILE"], "without drafts"),
        (&["--mtp"], "without drafts"),
        (&["--dspark-confidence", "0.7"], "without drafts"),
        (&["--listen", "HOST", "80"], "one machine"),
        (&["--imatrix-min-expert-samples", "8"], "`ds4 imatrix "),
        (&["--head-test"], "--decode-consistency"),
        (&["--server"], "`ds4-server`"),
    ] {
        let arguments = [arguments, &["-m", DEMO, "-p", FRANCE]].concat();
        let output = ds4(&arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[test]
fn dumps_are_whole_files_that_agree_with_the_library() {
    let folder = TempDir::new().unwrap();
    let (logits, logprobs) = (folder.path().join("a.json"), folder.path().join("b.json"));
    let prompt = ["-m", DEMO, "--nothink", "-sys", "", "-p", FRANCE];
    let dump = |more: &[&str]| assert_eq!(said(&[&prompt[..], more].concat()), "");
    dump(&["--dump-logits", logits.to_str().unwrap()]);
    let more = ["--logprobs-top-k", "3", "-n", "4", "--dump-logprobs"];
    dump(&[&more[..], &[logprobs.to_str().unwrap()]].concat());
    let engine = engine();
    let tokens = engine.render(&[Message::user(FRANCE)]).unwrap();
    let on = &mut |_, _| std::ops::ControlFlow::Continue(());
    assert_eq!(
        json(&logits),
        diagnose::logits(&engine, &tokens, on).unwrap()
    );
    let found = json(&logprobs);
    assert_eq!(
        found,
        diagnose::logprobs(&engine, &tokens, 4, 3, on).unwrap()
    );
    assert_eq!(found["steps"].as_array().unwrap().len(), 4);
    let names = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 2, "nothing unfinished is left");
}

#[test]
fn tokens_of_a_prompt_are_listed_without_its_weights() {
    // A file that ends where its weights would begin to matter is enough.
    let listed = said(&["-m", DEMO, "--dump-tokens", "-p", "<｜User｜>Hi"]);
    let tokenizer = engine().tokenizer().clone();
    let ids = tokenizer.encode("<｜User｜>Hi", Special::All);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], format!("{ids:?}"));
    assert!(lines[1].ends_with("  <｜User｜>") && lines[2].ends_with("  Hi"));
    assert_eq!(lines.len(), 3);
}

#[test]
fn perplexity_and_consistency_are_those_of_the_library() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("text");
    let facts = "The capital of France is Paris. Water boils at a hundred degrees. ".repeat(4);
    std::fs::write(&file, &facts).unwrap();
    let file = file.to_str().unwrap();
    let engine = engine();
    let tokens = engine.tokenizer().encode(&facts, Special::None);
    let on = &mut |_, _| std::ops::ControlFlow::Continue(());
    for limit in [50_000, 5] {
        let shown = said(&[
            "-m",
            DEMO,
            "--perplexity-file",
            file,
            "-n",
            &limit.to_string(),
        ]);
        let want = diagnose::perplexity(&engine, &tokens, limit, on).unwrap();
        assert_eq!(shown, format!("{want}\n"));
    }
    let shown = said(&["-m", DEMO, "--decode-consistency", "6", "-p", FRANCE]);
    assert!(
        shown.contains("max_abs=0 ") && shown.ends_with("top=same\n"),
        "{shown}"
    );
}

#[test]
fn inspect_is_the_same_by_either_name() {
    assert_eq!(said(&["-m", DEMO, "--inspect"]), said(&["inspect", DEMO]));
}

#[test]
fn a_model_fits_or_not() {
    let shown = said(&["fit", DEMO, "-c", "4096", "--memory", "1G", "--json"]);
    let fit: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&fit["fits"], &fit["context"]),
        (&true.into(), &4096.into())
    );
    let bytes = fit["total"].as_u64().unwrap();
    for (memory, code) in [(bytes, 0), (bytes - 1, 1)] {
        let output = ds4(&["fit", DEMO, "-c", "4096", "--memory", &memory.to_string()]);
        let shown = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert_eq!(shown.contains("would not fit"), code == 1, "{shown}");
    }
}

/// Where there is `/proc/meminfo`, no number need be given.
#[cfg(target_os = "linux")]
#[test]
fn this_machine_has_memory() {
    let fit: Value = serde_json::from_str(&said(&["fit", DEMO, "-c", "64", "--json"])).unwrap();
    assert!(
        fit["machine"]["total"].as_u64().unwrap() > 100_000_000,
        "{fit}"
    );
}

#[test]
fn the_environment_is_listed_and_the_flag_wins() {
    let output = command(&["env"])
        .env("DS4_THREADS", "3")
        .env("DS4_NO_SUCH", "1")
        .output()
        .unwrap();
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    assert!(
        shown.contains("DS4_BENCH_SNAPSHOT_MAX_BYTES") && shown.contains("DS4_HISTORY"),
        "{shown}"
    );
    let threads = shown.lines().find(|line| line.starts_with("DS4_THREADS"));
    assert!(
        threads.is_some_and(|line| line.contains("\"3\"")),
        "{shown}"
    );
    assert_eq!(errors.matches("DS4_NO_SUCH").count(), 1, "{errors}");
    for (threads, flag, code) in [
        ("1", None, 0),
        ("many", None, 2),
        ("1025", None, 2),
        ("3", Some("1"), 0),
        ("many", Some("1"), 0),
    ] {
        let mut arguments = vec!["bench", "-m", DEMO, "-p", "2", "-g", "1", "--json"];
        arguments.extend(flag.iter().flat_map(|n| ["-t", n]));
        let output = command(&arguments)
            .env("DS4_THREADS", threads)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{threads} {flag:?}");
        if code == 0 {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["threads"], 1);
        }
    }
}

#[test]
fn an_answer_can_be_profiled_by_its_experts() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("e.json");
    let arguments = [
        "-m",
        DEMO,
        "--nothink",
        "-sys",
        "",
        "--temp",
        "0",
        "-p",
        FRANCE,
        "--expert-profile",
        file.to_str().unwrap(),
    ];
    assert_eq!(said(&arguments), "The capital of France is Paris.\n");
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["source"], "ds4");
    let raw = [&arguments[..], &["--raw", "-n", "3"]].concat();
    said(&raw);
    let again: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    // The prompt without markers has 7 tokens; of those drawn the last one is not computed.
    assert_eq!(again["layers"][0]["tokens"], 7 + 2);
    assert!(json["layers"][0]["tokens"].as_u64() > Some(9), "{json}");
}

/// What computes nothing does not ask how many threads should.
#[test]
fn a_variable_that_makes_no_sense_stops_only_what_would_use_it() {
    for (arguments, code) in [
        (&["inspect", DEMO] as &[&str], 0),
        (&["fit", DEMO, "-c", "64"], 0),
        (&["env"], 0),
        (&["quantize", DEMO, "-r", "q8", "--dry-run"], 0),
        (&["-m", DEMO, "-p", "Hello", "--dump-tokens"], 0),
        (&["-m", DEMO, "-p", "Hello", "-n", "1"], 2),
        (&["-m", DEMO, "-p", "Hello", "-n", "1", "-t", "1"], 0),
        (&["quantize", DEMO, "nowhere/out", "-r", "q8"], 2),
    ] {
        let output = command(arguments).env("DS4_THREADS", "x").output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert_eq!(errors.contains("DS4_THREADS is `x`"), code == 2, "{errors}");
    }
}

#[test]
fn shells_and_manuals_know_every_command() {
    for (shell, words) in [
        ("bash", "complete -F _ds4"),
        ("zsh", "#compdef ds4"),
        ("fish", "complete -c ds4"),
    ] {
        let script = said(&["completions", shell]);
        for words in [words, "perplexity-file", "quantize", "fit"] {
            assert!(script.contains(words), "{shell}: {words}");
        }
        assert!(!script.contains("ssd-streaming"), "{shell}");
    }
    let folder = TempDir::new().unwrap();
    let pages = folder.path().join("share/man1");
    assert_eq!(said(&["man", pages.to_str().unwrap()]), "");
    for (page, words) in [
        ("ds4.1", "perplexity\\-file"),
        ("ds4-quantize.1", "recipe"),
        ("ds4-fit.1", "memory"),
    ] {
        let page = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(words),
            "{page}"
        );
    }
}

/// A prompt that takes long to read is given up on the first Ctrl-C, with a code that says so.
#[cfg(unix)]
#[test]
fn an_interruption_ends_one_answer() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("long");
    std::fs::write(&file, "a ".repeat(30_000)).unwrap();
    let started = Instant::now();
    let arguments = ["-m", DEMO, "--prefill-chunk", "8", "--prompt-file"];
    let mut child = command(&[&arguments[..], &[file.to_str().unwrap()]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The line about the model appears when Ctrl-C is heard already.
    let mut errors = child.stderr.take().unwrap();
    let mut line = [0; 8];
    std::io::Read::read_exact(&mut errors, &mut line).unwrap();
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut errors, &mut rest).unwrap();
    assert_eq!(status.code(), Some(1), "{rest}");
    assert!(rest.contains("the question is forgotten"), "{rest}");
    assert!(started.elapsed() < Duration::from_secs(20), "{rest}");
}
