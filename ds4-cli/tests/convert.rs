//! `ds4 convert`, `imatrix` and `compare`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

#[path = "../../ds4-model/tests/convert/hf.rs"]
mod hf;

use std::fs;
use std::process::{Command, Output};

use ds4_gguf::Gguf;
use ds4_quant::Imatrix;
use tempfile::TempDir;

const NATIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");
const STRIX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo-strix.gguf");

fn ds4(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4"));
    command
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

/// Standard output and standard error of a success.
fn said(folder: &TempDir, arguments: &[&str]) -> (String, String) {
    let output = ds4(folder, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// Exit code and standard error of a failure, which leaves the folder as it was.
fn failed(folder: &TempDir, arguments: &[&str]) -> (i32, String) {
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let before = names();
    let output = ds4(folder, arguments);
    assert_eq!(names(), before, "{arguments:?}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn with_text() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("text.txt"),
        "The capital of France is Paris. ".repeat(4),
    )
    .unwrap();
    folder
}

/// The options of the original: prompts between marked lines, the older kind of file.
#[test]
fn importance_is_collected_over_a_data_set_of_prompts_too() {
    let folder = with_text();
    let dataset = "===== DS4_IMATRIX_PROMPT 1\n<｜User｜>What is hot?<｜Assistant｜></think>\n===== DS4_IMATRIX_PROMPT 2\nThe sea.\n";
    fs::write(folder.path().join("prompts.txt"), dataset).unwrap();
    let collect = |more: &[&str]| {
        let arguments = [
            "-m",
            NATIVE,
            "-t",
            "1",
            "-c",
            "64",
            "--imatrix-dataset",
            "prompts.txt",
            "--imatrix-out",
            "p.dat",
        ];
        let (shown, _) = said(&folder, &[&arguments[..], more].concat());
        let tokens = shown.trim_end().rsplit(", ").next().unwrap().to_owned();
        let matrix = Imatrix::parse(fs::read(folder.path().join("p.dat")).unwrap()).unwrap();
        assert!(
            matrix
                .get("blk.3.ffn_down_exps.weight", 5, 16, 256)
                .unwrap()
                .is_some()
        );
        tokens
    };
    let all = collect(&[]);
    assert_eq!(collect(&["--imatrix-max-tokens", "5"]), "5 tokens");
    let one = collect(&["--imatrix-max-prompts", "1"]);
    assert_ne!(one, all);
    for (arguments, words) in [
        (
            &["--imatrix-dataset", "prompts.txt"] as &[&str],
            "--imatrix-out",
        ),
        (&["--imatrix-out", "o.dat"], "--imatrix-dataset"),
        (
            &["--imatrix-max-tokens", "9", "-p", "a"],
            "--imatrix-dataset",
        ),
        (
            &[
                "--imatrix-dataset",
                "prompts.txt",
                "--imatrix-out",
                "o.dat",
                "-p",
                "a",
            ],
            "cannot be used with",
        ),
    ] {
        let (code, error) = failed(&folder, arguments);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_importance_matrix_is_collected_and_used() {
    let folder = with_text();
    let (shown, warned) = said(
        &folder,
        &["imatrix", NATIVE, "text.txt", "im.gguf", "--chunk", "16"],
    );
    assert!(
        shown.contains("im.gguf: ") && shown.contains("matrices"),
        "{shown}"
    );
    // Once a layer, of seven.
    let warnings: Vec<&str> = warned.lines().collect();
    assert!(
        warnings
            .iter()
            .all(|line| line.starts_with("warning: ") && line.contains("saw no token")),
        "{warned}"
    );
    assert!((1..=7).contains(&warnings.len()), "{warned}");
    let matrix = Imatrix::parse(fs::read(folder.path().join("im.gguf")).unwrap()).unwrap();
    assert!(
        matrix
            .get("blk.3.ffn_down_exps.weight", 5, 16, 256)
            .unwrap()
            .is_some()
    );

    let (code, error) = failed(&folder, &["imatrix", NATIVE, "text.txt", "im.gguf"]);
    assert_eq!(code, 2, "{error}");
    said(
        &folder,
        &[
            "imatrix", NATIVE, "text.txt", "im.dat", "--legacy", "--chunks", "1", "-t", "1",
        ],
    );
    let legacy = Imatrix::parse(fs::read(folder.path().join("im.dat")).unwrap()).unwrap();
    assert_eq!(legacy.len(), matrix.len());

    said(
        &folder,
        &[
            "quantize",
            STRIX,
            "out.gguf",
            "--recipe",
            "native",
            "--imatrix",
            "im.gguf",
        ],
    );
    let made = Gguf::open(folder.path().join("out.gguf")).unwrap();
    let file: &str = made.metadata().get("quantize.imatrix.file").unwrap();
    assert_eq!(file, "im.gguf");
}

/// Ctrl-C keeps what was measured: the file is as if no more had been asked for.
#[cfg(unix)]
#[test]
fn an_interrupted_measurement_is_kept() {
    let folder = TempDir::new().unwrap();
    let text = "The capital of France is Paris. ".repeat(20_000);
    fs::write(folder.path().join("text.txt"), text).unwrap();
    let arguments = ["imatrix", NATIVE, "text.txt", "im.gguf", "--chunk", "16"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4"));
    command.args(arguments).current_dir(folder.path());
    let piped = std::process::Stdio::piped;
    let mut child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    while !folder.path().join("im.gguf.partial").exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("error: im.gguf has what was measured: stopped after "),
        "{error}"
    );
    let file = Gguf::open(folder.path().join("im.gguf")).unwrap();
    let number = |key: &str| file.metadata().get::<u64>(key).unwrap();
    let (tokens, pieces) = (number("imatrix.token_count"), number("imatrix.chunk_count"));
    assert!(tokens > 0 && tokens == 16 * pieces, "{tokens}, {pieces}");
    assert!(
        error.contains(&format!("stopped after {tokens} of ")),
        "{error}"
    );
    let pieces = pieces.to_string();
    let again = [
        &arguments[..3],
        &["again.gguf", "--chunk", "16", "--chunks", &pieces],
    ]
    .concat();
    said(&folder, &again);
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("im.gguf") == read("again.gguf"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_model_that_says_nothing_is_named() {
    let folder = with_text();
    let demo = Gguf::open(NATIVE).unwrap();
    let mut bytes = demo.shards()[0].bytes().to_vec();
    let output = demo.tensor("output.weight").unwrap().bytes;
    let at = output.as_ptr().addr() - demo.shards()[0].bytes().as_ptr().addr();
    bytes[at..at + 2].copy_from_slice(&half::f16::NAN.to_le_bytes());
    fs::write(folder.path().join("nan.gguf"), bytes).unwrap();
    for models in [[NATIVE, "nan.gguf"], ["nan.gguf", NATIVE]] {
        let [a, b] = models;
        let (code, error) = failed(&folder, &["compare", a, b, "--text", "text.txt"]);
        assert_eq!(code, 3, "{error}");
        assert!(
            error.contains("nan.gguf: the logit of token id 0 after token 0 of the text is NaN"),
            "{error}"
        );
        let (shown, _) = said(&folder, &["compare", a, b]);
        let line = shown.lines().find(|line| line.starts_with("output.weight"));
        assert!(line.unwrap().contains("max NaN"), "{shown}");
    }
}

#[test]
fn models_are_compared_by_weights_and_by_text() {
    let folder = with_text();
    let (shown, _) = said(&folder, &["compare", NATIVE, STRIX, "--text", "text.txt"]);
    for words in [
        "blk.3.ffn_down_exps.weight",
        "cosine",
        "KL divergence",
        "perplexity",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let (json, _) = said(
        &folder,
        &["compare", NATIVE, NATIVE, "--text", "text.txt", "--json"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["text"]["kl_divergence"]["max"], 0.0);
    let same = |t: &serde_json::Value| t["rmse"] == 0.0;
    assert!(json["tensors"].as_array().unwrap().iter().all(same));
}

const TINY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../ds4-model/tests/data/deepseek-v4/tiny-f16.gguf"
);

/// Whether a comparison of `source` with what the recipe q8 makes of it is what the types explain.
fn lossless_but_for_8_bits(source: &Gguf, compared: &serde_json::Value) {
    let tensors = compared["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), source.tensors().len(), "{compared:#}");
    let mut packed = 0;
    for t in tensors {
        let name = t["name"].as_str().unwrap();
        let error = t["max_error"].as_f64().unwrap();
        if t["types"][1] != "Q8_0" {
            assert_eq!(error, 0.0, "{t}");
            continue;
        }
        packed += 1;
        let tensor = source.tensor(name).unwrap();
        let mut x = vec![0.0; usize::try_from(tensor.info.dims.elements()).unwrap()];
        let codec = ds4_quant::codec(tensor.info.ty).unwrap();
        codec.decode(tensor.bytes, &mut x).unwrap();
        let largest = x.iter().fold(0.0f32, |a, x| a.max(x.abs()));
        // A block has 127 steps up to its largest weight. Half a step is lost in rounding, and 127 times half a unit in the
        // last place of the step, a half float: 2⁻¹¹ of it, or 2⁻²⁵ of a small one.
        let step = f64::from(largest) / 127.0;
        let bound = step / 2.0 + 127.0 * (step * 2f64.powi(-11)).max(2f64.powi(-25));
        assert!(error <= bound, "{t}: {bound}");
        // Cauchy and Schwarz: errors of at most `bound` turn a tensor by no more than their share of its length.
        let length: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
        let share = bound * (x.len() as f64).sqrt() / length.sqrt();
        assert!(share < 1.0, "{t}: the bound says nothing");
        let cosine = t["cosine"].as_f64().unwrap();
        assert!(cosine >= (1.0 - share * share).sqrt(), "{t}: {share}");
    }
    assert!(packed > 0, "{compared:#}");
}

#[test]
fn a_checkpoint_is_converted_or_nothing_is_left() {
    let folder = TempDir::new().unwrap();
    let checkpoint = folder.path().join("hf");
    fs::create_dir(&checkpoint).unwrap();
    let source = Gguf::open(TINY).unwrap();
    let mut tensors = hf::tensors(&source, hf::Names::Published);
    hf::write(&checkpoint, &source, &tensors, 2);
    let (forecast, _) = said(
        &folder,
        &["convert", "hf", "-r", "q8", "--dry-run", "--json"],
    );
    let forecast: serde_json::Value = serde_json::from_str(&forecast).unwrap();
    let arguments = [
        "convert",
        "hf",
        "out.gguf",
        "-r",
        "q8",
        "--dialect",
        "llama-cpp",
        "--name",
        "tiny",
    ];
    let (shown, _) = said(&folder, &arguments);
    assert!(shown.contains("bits a weight"), "{shown}");
    let made = Gguf::open(folder.path().join("out.gguf")).unwrap();
    assert_eq!(made.metadata().get::<&str>("general.name").unwrap(), "tiny");
    said(&folder, &["convert", "hf", "ds4.gguf", "-r", "q8"]);
    let size = fs::metadata(folder.path().join("ds4.gguf")).unwrap().len();
    assert_eq!(forecast["file_bytes"], size, "{forecast}");
    // llama.cpp's dialect has other names for some, this one the same for all.
    let (json, _) = said(&folder, &["compare", TINY, "ds4.gguf", "--json"]);
    lossless_but_for_8_bits(&source, &serde_json::from_str(&json).unwrap());
    let (code, error) = failed(&folder, &arguments);
    assert_eq!(code, 2, "{error}");

    let wide = fs::read(checkpoint.join("model-00002-of-00002.safetensors")).unwrap();
    let nan = tensors
        .iter_mut()
        .find(|t| t.name == "layers.0.attn.wq_a.weight")
        .unwrap();
    nan.bytes[20..22].copy_from_slice(&[0, 0x7e]);
    hf::write(&checkpoint, &source, &tensors, 2);
    let (code, error) = failed(&folder, &["convert", "hf", "nan.gguf", "-r", "q8"]);
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("`blk.0.attn_q_a.weight`: weight 10 is NaN"),
        "{error}"
    );
    said(
        &folder,
        &["convert", "hf", "nan.gguf", "-r", "q8", "--allow-nonfinite"],
    );

    let cut = checkpoint.join("model-00002-of-00002.safetensors");
    fs::write(&cut, &wide[..wide.len() / 2]).unwrap();
    let (code, error) = failed(&folder, &["convert", "hf", "cut.gguf", "-r", "q8"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("the file ends at"), "{error}");
}

#[test]
fn types_that_need_importance_say_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let (code, error) = failed(&folder, &["quantize", STRIX, "out.gguf", "-r", "native"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("ds4 imatrix"), "{error}");
}

#[test]
fn every_failure_has_its_code_and_leaves_nothing() {
    let folder = with_text();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("empty")).unwrap();
    fs::create_dir(path("cut")).unwrap();
    fs::write(path("cut/config.json"), "{\"model_type\": \"deepseek_v4\"}").unwrap();
    for (arguments, code, words) in [
        (
            &["convert", "empty", "out.gguf", "-r", "q8"] as &[&str],
            3,
            "config.json",
        ),
        (
            &["convert", "cut", "out.gguf", "-r", "q8"],
            3,
            "hc_mult is missing",
        ),
        (&["convert", "cut", "out.gguf", "-r", "q99"], 2, "q99"),
        (&["convert", "cut", "out.gguf"], 2, "--recipe"),
        (
            &["imatrix", "text.txt", "text.txt", "im.gguf"],
            3,
            "text.txt",
        ),
        (
            &["imatrix", NATIVE, "nowhere.txt", "im.gguf"],
            1,
            "nowhere.txt",
        ),
        (
            &["imatrix", NATIVE, "text.txt", "im.gguf", "--chunk", "1"],
            2,
            "at least 2",
        ),
        (
            &[
                "compare", NATIVE, NATIVE, "--text", "text.txt", "--chunk", "1",
            ],
            2,
            "at least 2",
        ),
        (&["compare", NATIVE, "nowhere.gguf"], 3, "nowhere.gguf"),
    ] {
        let (got, error) = failed(&folder, arguments);
        assert_eq!(got, code, "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}
