//! Whole files through recipes: sizes, bytes, importance, and everything that must not happen.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod model;

use std::ops::ControlFlow;
use std::path::Path;

use ds4_gguf::{Gguf, TensorType};
use ds4_quant::quantize::{Importance, Quantize, QuantizeError};
use ds4_quant::recipe::{Because, Recipe};
use ds4_quant::{Imatrix, NonFinite, Pool, encode_rows};
use tempfile::TempDir;

use model::{floats, imatrix, source, with};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/ds4-demo.gguf");

fn go(_: ds4_quant::quantize::Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn write(work: &Quantize<'_>, path: &Path) -> Result<(), QuantizeError> {
    work.write(&Pool::new(2).unwrap(), NonFinite::Refuse, path, false, go)
        .map(drop)
}

fn names(folder: &TempDir) -> Vec<String> {
    std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_recipe_gives_the_size_and_the_types_it_announced() {
    let folder = TempDir::new().unwrap();
    let source = source();
    let matrix = imatrix(&source);
    let importance = Importance {
        matrix: &matrix,
        file: "text.dat",
    };
    for name in Recipe::NAMES {
        let recipe = Recipe::named(name).unwrap();
        let work = Quantize::new(&source, &recipe, Some(importance)).unwrap();
        let path = folder.path().join(name);
        write(&work, &path).unwrap();
        assert_eq!(path.metadata().unwrap().len(), work.file_bytes(), "{name}");
        let file = Gguf::open(&path).unwrap();
        for (planned, found) in work.tensors().iter().zip(file.tensors()) {
            assert_eq!(planned.info.ty, found.ty, "{name}: {}", found.name);
            assert_eq!(planned.info.dims, found.dims, "{name}: {}", found.name);
            if planned.is_copied() {
                assert_eq!(
                    source.tensor(&found.name).unwrap().bytes,
                    file.tensor(&found.name).unwrap().bytes
                );
            }
        }
        let bits = 8.0 * file.tensors().iter().map(|t| t.extent.bytes).sum::<u64>() as f64
            / file
                .tensors()
                .iter()
                .map(|t| t.dims.elements())
                .sum::<u64>() as f64;
        assert!((bits - work.bits_per_weight()).abs() < 1e-9);
    }
    // Nothing but the files themselves.
    assert_eq!(names(&folder).len(), Recipe::NAMES.len());
}

#[test]
fn the_demo_model_in_native_is_the_demo_model() {
    let source = Gguf::open(DEMO).unwrap();
    let work = Quantize::new(&source, &Recipe::named("native").unwrap(), None).unwrap();
    assert!(work.tensors().iter().all(|t| t.is_copied()));
    let (bytes, report) = work
        .run(&Pool::new(1).unwrap(), NonFinite::Refuse, Vec::new(), go)
        .unwrap();
    assert_eq!(report.copied, source.tensors().len());
    let copy = Gguf::from_vec(bytes).unwrap();
    for (index, info) in source.tensors().iter().enumerate() {
        assert_eq!(&copy.tensors()[index].name, &info.name);
        assert_eq!(copy.tensor_at(index).bytes, source.tensor_at(index).bytes);
    }
    assert_eq!(copy.metadata().get::<u32>("general.file_type").unwrap(), 19);
}

#[test]
fn threads_change_no_byte_and_metadata_say_what_was_done() {
    let source = source();
    let matrix = imatrix(&source);
    let importance = Importance {
        matrix: &matrix,
        file: "text.dat",
    };
    let recipe = Recipe::named("strix").unwrap();
    let work = Quantize::new(&source, &recipe, Some(importance)).unwrap();
    let run = |threads| {
        let pool = Pool::new(threads).unwrap();
        work.run(&pool, NonFinite::Refuse, Vec::new(), go).unwrap()
    };
    let ((one, report), (three, other)) = (run(1), run(3));
    assert!(one == three);
    for (a, b) in report.tensors.iter().zip(&other.tensors) {
        assert_eq!(a.error, b.error);
        assert!(a.error.count() > 0 && a.error.relative_rmse() < 0.6, "{a}");
    }
    let file = Gguf::from_vec(one).unwrap();
    let meta = file.metadata();
    assert_eq!(meta.get::<u32>("general.file_type").unwrap(), 118);
    assert_eq!(meta.get::<u32>("general.quantization_version").unwrap(), 2);
    assert_eq!(
        meta.get::<&str>("quantize.imatrix.file").unwrap(),
        "text.dat"
    );
    assert_eq!(
        meta.get::<&str>("quantize.imatrix.dataset").unwrap(),
        "text"
    );
    assert_eq!(
        meta.get::<usize>("quantize.imatrix.entries_count").unwrap(),
        matrix.len()
    );
    assert_eq!(meta.get::<u32>("quantize.imatrix.chunks_count").unwrap(), 7);
    assert_eq!(
        meta.get::<&str>("general.architecture").unwrap(),
        "deepseek4"
    );
}

#[test]
fn each_expert_is_encoded_with_its_own_importance() {
    let source = source();
    let matrix = imatrix(&source);
    let importance = Importance {
        matrix: &matrix,
        file: "text.dat",
    };
    let recipe = Recipe::named("native").unwrap();
    let work = Quantize::new(&source, &recipe, Some(importance)).unwrap();
    let pool = Pool::new(2).unwrap();
    let (bytes, _) = work.run(&pool, NonFinite::Refuse, Vec::new(), go).unwrap();
    let file = Gguf::from_vec(bytes).unwrap();
    for name in ["blk.0.ffn_gate_exps.weight", "blk.0.ffn_down_exps.weight"] {
        let (x, got) = (floats(&source, name), file.tensor(name).unwrap());
        let (cols, rows) = (got.info.dims.get(0) as usize, got.info.dims.get(1) as usize);
        let expert_bytes = got.bytes.len() / 3;
        for expert in 0..3 {
            let a = matrix.get(name, expert, 3, cols).unwrap();
            let mut want = vec![0; expert_bytes];
            let x = &x[expert * rows * cols..][..rows * cols];
            encode_rows(&pool, got.info.ty, cols, x, a, &mut want).unwrap();
            assert!(
                got.bytes[expert * expert_bytes..][..expert_bytes] == want,
                "{name} {expert}"
            );
        }
    }
}

#[test]
fn what_falls_back_is_said() {
    let source = with(&[("blk.0.attn_q_a.weight", &[96, 4], &|i| i as f32)]);
    let recipe = Recipe::from_toml("[[rule]]\ntype = \"Q2_K\"").unwrap();
    let work = Quantize::new(&source, &recipe, None).unwrap();
    let wanted = TensorType::Q2K;
    assert_eq!(work.tensors()[0].because, Because::Row { wanted });
    assert_eq!(work.tensors()[0].info.ty, TensorType::Iq4Nl);
}

#[test]
fn a_type_that_demands_importance_is_refused_before_anything_is_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out.gguf");
    let source = source();
    let recipe = Recipe::named("native").unwrap();
    let work = Quantize::new(&source, &recipe, None).unwrap();
    let error = write(&work, &path).unwrap_err().to_string();
    assert!(
        error.contains("blk.0.ffn_gate_exps.weight") && error.contains("ds4 imatrix"),
        "{error}"
    );
    let empty = Imatrix::default();
    let importance = Importance {
        matrix: &empty,
        file: "empty.dat",
    };
    let work = Quantize::new(&source, &recipe, Some(importance)).unwrap();
    let error = write(&work, &path).unwrap_err().to_string();
    assert!(error.contains("empty.dat has none"), "{error}");
    assert!(names(&folder).is_empty());
}

#[test]
fn importance_of_another_model_is_refused() {
    let source = source();
    let other = with(&[("blk.0.ffn_gate_exps.weight", &[512, 4, 3], &|_| 1.0)]);
    let matrix = imatrix(&other);
    let importance = Importance {
        matrix: &matrix,
        file: "other.dat",
    };
    let recipe = Recipe::named("native").unwrap();
    let error = Quantize::new(&source, &recipe, Some(importance)).unwrap_err();
    assert!(
        matches!(&error, QuantizeError::Importance { tensor, .. } if &**tensor == "blk.0.ffn_gate_exps.weight"),
        "{error}"
    );
}

#[test]
fn weights_that_are_no_numbers_are_named_or_clamped() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out.gguf");
    let source = with(&[
        ("a.weight", &[64, 8], &|i| i as f32),
        ("b.weight", &[64, 8], &|i| match i {
            300 => f32::NAN,
            301 => f32::INFINITY,
            _ => 1.0,
        }),
    ]);
    let recipe = Recipe::from_toml("[[rule]]\ntype = \"BF16\"").unwrap();
    let work = Quantize::new(&source, &recipe, None).unwrap();
    let error = write(&work, &path).unwrap_err();
    assert!(
        matches!(&error, QuantizeError::NonFinite { tensor, index: 300, value } if &**tensor == "b.weight" && value.is_nan()),
        "{error}"
    );
    assert!(error.to_string().contains("--allow-nonfinite"), "{error}");
    assert!(names(&folder).is_empty());
    let pool = Pool::new(1).unwrap();
    work.write(&pool, NonFinite::Clamp, &path, false, go)
        .unwrap();
    let x = floats(&Gguf::open(&path).unwrap(), "b.weight");
    assert_eq!((x[299], x[300]), (1.0, 0.0));
    assert!((x[301] - 65504.0).abs() < 256.0, "{}", x[301]);
}

#[test]
fn stopping_leaves_nothing_and_an_existing_file_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("out.gguf");
    let source = source();
    let recipe = Recipe::named("q8").unwrap();
    let work = Quantize::new(&source, &recipe, None).unwrap();
    let pool = Pool::new(1).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let mut heard = 0;
    let stopped = work.write(&pool, NonFinite::Refuse, &path, true, |progress| {
        heard += 1;
        assert!(progress.done <= progress.total);
        if heard == 9 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(matches!(stopped, Err(QuantizeError::Cancelled)));
    assert_eq!(heard, 9);
    assert_eq!(names(&folder), ["out.gguf"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let error = write(&work, &path).unwrap_err().to_string();
    assert!(error.contains("out.gguf exists"), "{error}");
}

/// A disk that is full after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.min(bytes.len()) {
            0 => Err(std::io::ErrorKind::StorageFull.into()),
            n => {
                self.0 -= n;
                Ok(n)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_fills() {
    let source = source();
    let recipe = Recipe::named("q8").unwrap();
    let work = Quantize::new(&source, &recipe, None).unwrap();
    let pool = Pool::new(1).unwrap();
    let size = work.file_bytes() as usize;
    for room in [0, 3, 100, size / 2, size - 1] {
        let Err(error) = work.run(&pool, NonFinite::Refuse, Full(room), go) else {
            panic!("{room} bytes were enough for {size}")
        };
        assert!(
            matches!(&error, QuantizeError::Gguf(ds4_gguf::Error::Write(e)) if e.kind() == std::io::ErrorKind::StorageFull),
            "{error}"
        );
    }
    work.run(&pool, NonFinite::Refuse, Full(size), go).unwrap();
}
