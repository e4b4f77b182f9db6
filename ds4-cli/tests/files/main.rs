//! `ds4 quantize`, `requant`, `split`, `merge` and `edit`, from outside.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

#[cfg(unix)]
mod signals;

use std::path::Path;
use std::process::{Command, Output};

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Writer};
use tempfile::TempDir;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

fn command(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ds4"));
    command.args(arguments).current_dir(folder.path());
    command
}

fn ds4(folder: &TempDir, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Standard output of a success.
fn said(folder: &TempDir, arguments: &[&str]) -> String {
    let output = ds4(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and standard error of a failure, which leaves the folder as it was.
fn failed(folder: &TempDir, arguments: &[&str]) -> (i32, String) {
    let before = names(folder);
    let output = ds4(folder, arguments);
    assert_eq!(names(folder), before, "{arguments:?}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn open(folder: &TempDir, name: &str) -> Gguf {
    Gguf::open(folder.path().join(name)).unwrap()
}

/// A model with MXFP4 down experts: every block the same, `fill` times a power of two.
fn mxfp4(path: &Path, rows: u64) {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "deepseek4");
    metadata.set("general.file_type", 38u32);
    metadata.set("general.quantization_version", 2u32);
    metadata.set("deepseek4.block_count", 1u32);
    let mut plan = Plan::new(metadata).unwrap();
    plan.add("output_norm.weight", &[256], TensorType::F32)
        .unwrap();
    plan.add(
        "blk.0.ffn_down_exps.weight",
        &[256, rows, 2],
        TensorType::Mxfp4,
    )
    .unwrap();
    plan.add("blk.0.attn_kv.weight", &[256, 8], TensorType::Q8_0)
        .unwrap();
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    let mut i = 0u32;
    while let Some(info) = writer.current() {
        let (ty, bytes) = (info.ty, info.extent.bytes);
        let data: Vec<u8> = (0..bytes)
            .map(|at| {
                i = i.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match ty {
                    // Scales near 1; zeros for everything that is no MXFP4.
                    TensorType::Mxfp4 if at % 17 == 0 => 120 + (i >> 30) as u8,
                    TensorType::Mxfp4 => (i >> 24) as u8,
                    _ => 0,
                }
            })
            .collect();
        writer.write(&data).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn a_dry_run_tells_the_size_that_the_file_then_has() {
    let folder = TempDir::new().unwrap();
    let dry = ["quantize", DEMO, "--recipe", "q8", "--dry-run"];
    let shown = said(&folder, &dry);
    assert!(
        shown.contains("routed experts") && shown.contains("at 240.5 GB/s at most"),
        "{shown}"
    );
    let json = said(
        &folder,
        &[&dry[..], &["--json", "--bandwidth", "100"]].concat(),
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(names(&folder).is_empty());
    said(&folder, &["quantize", DEMO, "out.gguf", "-r", "q8"]);
    let file = folder.path().join("out.gguf");
    assert_eq!(json["file_bytes"], file.metadata().unwrap().len());
    let report = ds4_model::inspect::Report::of(&open(&folder, "out.gguf"));
    assert_eq!(json["bytes_per_token"], report.bytes_per_token().unwrap());
    let ceiling = 100e9 / report.bytes_per_token().unwrap() as f64;
    let told = json["ceiling_tokens_per_second"].as_f64().unwrap();
    assert!((told / ceiling - 1.0).abs() < 1e-9);
    assert_eq!(names(&folder), ["out.gguf"]);
}

#[test]
fn a_recipe_of_ones_own_and_every_failure_of_quantize() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("mine.toml"),
        "[[rule]]\ntensor = \"output.weight\"\ntype = \"Q6_K\"\n",
    )
    .unwrap();
    std::fs::write(
        folder.path().join("bad.toml"),
        "\n[[rule]]\ntipe = \"Q6_K\"\n",
    )
    .unwrap();
    std::fs::write(folder.path().join("bad.dat"), "no importance").unwrap();
    let shown = said(&folder, &["quantize", DEMO, "out.gguf", "-r", "mine.toml"]);
    assert!(
        shown.contains("output.weight") && shown.contains("1 tensors changed"),
        "{shown}"
    );
    assert_eq!(
        open(&folder, "out.gguf")
            .tensor("output.weight")
            .unwrap()
            .info
            .ty,
        TensorType::Q6K
    );
    mxfp4(&folder.path().join("m.gguf"), 4);
    // Of three parts, which appear together or not at all.
    std::fs::create_dir(folder.path().join("blocked-00002-of-00003.gguf")).unwrap();
    let mut broken = std::fs::read(folder.path().join("m.gguf")).unwrap();
    broken.truncate(broken.len() - 100);
    std::fs::write(folder.path().join("cut.gguf"), broken).unwrap();
    for (arguments, code, words) in [
        (
            &["quantize", "m.gguf", "o", "-r", "nothing"] as &[&str],
            2,
            "native, strix",
        ),
        (&["quantize", "m.gguf", "o", "-r", "bad.toml"], 2, "line 3"),
        (&["quantize", "m.gguf", "-r", "q8"], 2, "OUTPUT"),
        (&["quantize", "m.gguf", "out.gguf", "-r", "q8"], 2, "exists"),
        (
            &["quantize", "m.gguf", ".", "-r", "q8", "--force"],
            2,
            ". is a directory",
        ),
        (
            &["quantize", "m.gguf", "o", "-r", "q8", "-t", "1025"],
            2,
            "from 0 to 1024",
        ),
        (
            &[
                "split",
                "m.gguf",
                "blocked",
                "--max-tensors",
                "1",
                "--force",
            ],
            2,
            "blocked-00002-of-00003.gguf is a directory",
        ),
        (
            &["edit", "m.gguf", "o", "--rename", "general.file_type="],
            2,
            "OLD=NEW",
        ),
        (&["quantize", "none.gguf", "o", "-r", "q8"], 3, "none.gguf"),
        (&["quantize", "cut.gguf", "o", "-r", "q8"], 3, "cut.gguf"),
        (
            &[
                "quantize",
                "m.gguf",
                "o",
                "-r",
                "native",
                "--imatrix",
                "none.dat",
            ],
            3,
            "none.dat",
        ),
        (
            &[
                "quantize",
                "m.gguf",
                "o",
                "-r",
                "native",
                "--imatrix",
                "bad.dat",
            ],
            3,
            "bad.dat",
        ),
        (
            &["requant", "m.gguf", "--in-place", "-r", "f16"],
            3,
            "grows",
        ),
        (&["requant", "m.gguf", "--resume"], 3, "nothing to resume"),
        (&["requant", "m.gguf", "o", "--in-place"], 2, "--in-place"),
        (&["requant", "cut.gguf", "--in-place"], 3, "cut.gguf"),
        (&["split", "m.gguf", "p"], 2, "--max"),
        (&["split", "m.gguf", "p", "--max-size", "0"], 2, "500M"),
        (&["merge", "cut.gguf", "o"], 3, "cut.gguf"),
        (&["edit", "m.gguf", "--remove", "nobody"], 2, "nobody"),
        (
            &["edit", "m.gguf", "o", "--set", "general.file_type=x"],
            2,
            "no u32",
        ),
        (
            &["edit", "m.gguf", "o", "--set", "general.alignment=u32:0"],
            2,
            "general.alignment",
        ),
        (
            &["edit", "m.gguf", "--set", "general.alignment=string:x"],
            2,
            "general.alignment",
        ),
        (
            &[
                "edit",
                "m.gguf",
                "o",
                "--set",
                &format!("{}=u8:1", "k".repeat(70_000)),
            ],
            2,
            "names have 1 to 65535",
        ),
    ] {
        let (found, errors) = failed(&folder, arguments);
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    std::fs::write(
        folder.path().join("iq.toml"),
        "[[rule]]\nrole = \"routed experts\"\ntype = \"IQ2_XXS\"\n",
    )
    .unwrap();
    let (code, errors) = failed(&folder, &["quantize", "m.gguf", "o", "-r", "iq.toml"]);
    assert_eq!(code, 3);
    assert!(errors.contains("ds4 imatrix"), "{errors}");
}

#[test]
fn weights_that_are_no_numbers_stop_quantize_unless_allowed() {
    let folder = TempDir::new().unwrap();
    let mut plan = Plan::new(Metadata::new()).unwrap();
    plan.add("a.weight", &[32, 2], TensorType::F32).unwrap();
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    let x = (0..64).flat_map(|i| if i == 40 { f32::NAN } else { 1.0 }.to_le_bytes());
    writer.write(&x.collect::<Vec<u8>>()).unwrap();
    let bytes = writer.finish().unwrap();
    std::fs::write(folder.path().join("m.gguf"), bytes).unwrap();
    std::fs::write(folder.path().join("r.toml"), "[[rule]]\ntype = \"Q8_0\"\n").unwrap();
    for arguments in [
        &["quantize", "m.gguf", "o", "-r", "r.toml"][..],
        &["requant", "m.gguf", "--in-place", "-r", "r.toml"],
    ] {
        let (code, errors) = failed(&folder, arguments);
        assert_eq!(code, 3, "{errors}");
        assert!(
            errors.contains("`a.weight`: weight 40 is NaN") && errors.contains("--allow-nonfinite"),
            "{errors}"
        );
    }
    said(
        &folder,
        &[
            "quantize",
            "m.gguf",
            "o",
            "-r",
            "r.toml",
            "--allow-nonfinite",
        ],
    );
    said(
        &folder,
        &[
            "requant",
            "m.gguf",
            "--in-place",
            "-r",
            "r.toml",
            "--allow-nonfinite",
        ],
    );
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    let (new, in_place) = (open(&folder, "o"), open(&folder, "m.gguf"));
    assert_eq!(
        new.tensor("a.weight").unwrap().bytes,
        in_place.tensor("a.weight").unwrap().bytes
    );
    assert!(!read("o").is_empty());
}

#[test]
fn requant_in_place_gives_the_bytes_of_a_new_file() {
    let folder = TempDir::new().unwrap();
    mxfp4(&folder.path().join("m.gguf"), 500);
    let dry = said(&folder, &["requant", "m.gguf", "--in-place", "--dry-run"]);
    assert!(dry.contains("in place: "), "{dry}");
    said(&folder, &["requant", "m.gguf", "new.gguf"]);
    let shown = said(&folder, &["requant", "m.gguf", "--in-place"]);
    assert!(shown.contains("MXFP4 → Q2_K"), "{shown}");
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("new.gguf") == read("m.gguf"));
    let (code, errors) = failed(&folder, &["requant", "m.gguf", "--in-place"]);
    assert_eq!(code, 1);
    assert!(errors.contains("changes no tensor"), "{errors}");
}

#[test]
fn a_model_is_split_quantized_in_parts_merged_and_edited() {
    let folder = TempDir::new().unwrap();
    let dry = said(
        &folder,
        &["split", DEMO, "part", "--max-size", "4M", "--dry-run"],
    );
    assert!(names(&folder).is_empty());
    let shown = said(&folder, &["split", DEMO, "part", "--max-size", "4M"]);
    assert_eq!(dry, shown);
    let parts = names(&folder);
    assert!(
        parts.len() > 2 && parts[0].starts_with("part-00001-of-0000"),
        "{parts:?}"
    );
    said(&folder, &["merge", &parts[1], "whole.gguf"]);
    let demo = Gguf::open(DEMO).unwrap();
    let whole = open(&folder, "whole.gguf");
    assert_eq!(whole.metadata(), demo.metadata());
    assert!(
        demo.tensors().iter().all(|t| {
            demo.tensor(&t.name).unwrap().bytes == whole.tensor(&t.name).unwrap().bytes
        })
    );
    let (code, errors) = failed(&folder, &["edit", &parts[0], "--set", "general.name=a"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("name an output"), "{errors}");
    // A split model is as good a source as a whole one.
    said(&folder, &["quantize", &parts[0], "a.gguf", "-r", "q8"]);
    said(&folder, &["quantize", DEMO, "b.gguf", "-r", "q8"]);
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.gguf") == read("b.gguf"));
    let (code, errors) = failed(&folder, &["requant", &parts[0], "--in-place", "-r", "q8"]);
    assert_eq!(code, 3);
    assert!(errors.contains("ds4 merge"), "{errors}");

    let edit = [
        "edit",
        "whole.gguf",
        "--set",
        "general.name=renamed",
        "--rename",
        "general.type=x.type",
    ];
    let dry = said(&folder, &[&edit[..], &["--dry-run"]].concat());
    assert!(dry.contains("general.name = \"renamed\""), "{dry}");
    assert_eq!(open(&folder, "whole.gguf").metadata(), demo.metadata());
    said(&folder, &edit);
    let edited = open(&folder, "whole.gguf");
    assert_eq!(
        edited.metadata().get::<&str>("general.name").unwrap(),
        "renamed"
    );
    assert_eq!(edited.metadata().get::<&str>("x.type").unwrap(), "model");
}

/// With a descriptor or a buffer for each part it would need 5000 of the one and 5 GB of the other.
#[cfg(unix)]
#[test]
fn very_many_parts_need_few_descriptors_and_little_memory() {
    const PARTS: u64 = 5000;
    let folder = TempDir::new().unwrap();
    let mut plan = Plan::new(Metadata::new()).unwrap();
    for i in 0..PARTS {
        plan.add(&format!("t{i}"), &[1], TensorType::F32).unwrap();
    }
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    for i in 0..PARTS as u32 {
        writer.write(&i.to_le_bytes()).unwrap();
    }
    std::fs::write(folder.path().join("m.gguf"), writer.finish().unwrap()).unwrap();
    let limited = |arguments: &[&str]| {
        let output = Command::new("sh")
            .args([
                "-c",
                "ulimit -n 256 && ulimit -v 1000000 && exec \"$@\"",
                "sh",
            ])
            .arg(env!("CARGO_BIN_EXE_ds4"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    };
    limited(&["split", "m.gguf", "p", "--max-tensors", "1"]);
    assert_eq!(names(&folder).len() as u64, PARTS + 1);
    limited(&["merge", "p-00001-of-05000.gguf", "whole.gguf"]);
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("whole.gguf") == read("m.gguf"));
}
