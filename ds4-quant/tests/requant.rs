//! Requantization in place, on a disk that fails everywhere.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

mod disk;
mod model;

use std::io::ErrorKind;
use std::ops::ControlFlow;

use ds4_gguf::{Gguf, Malformed, TensorType, Value};
use ds4_quant::quantize::{Importance, Progress, Quantize};
use ds4_quant::recipe::Recipe;
use ds4_quant::requant::{Requant, RequantError, Storage, resume};
use ds4_quant::{Imatrix, NonFinite, Pool, QuantizeError};

use disk::{Disk, Fault, Loss};
use model::{imatrix, packed, weight};

fn go(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Two layers of experts between other tensors; one tensor is not a whole number of alignments long.
fn original() -> Vec<u8> {
    use TensorType::*;
    packed(
        &[
            ("token_embd.weight", &[256, 3], Q8_0, &weight),
            ("blk.0.attn_norm.weight", &[9], F32, &weight),
            ("blk.0.ffn_gate_exps.weight", &[256, 2, 3], Mxfp4, &|i| {
                weight(i + 1)
            }),
            ("blk.0.ffn_down_exps.weight", &[256, 13, 3], Mxfp4, &|i| {
                weight(i + 2)
            }),
            ("blk.1.attn_kv.weight", &[256, 7], Q8_0, &|i| weight(i + 3)),
            ("blk.1.ffn_down_exps.weight", &[256, 13, 3], Iq3Xxs, &|i| {
                weight(i + 4)
            }),
            ("output.weight", &[256, 3], Q8_0, &|i| weight(i + 5)),
        ],
        &[("general.note", Value::from("kept"))],
    )
}

struct Case {
    original: Vec<u8>,
    finished: Vec<u8>,
    requant: Requant,
    pool: Pool,
}

impl Case {
    /// Steps so small that every kind of step occurs many times.
    fn new(matrix: Option<&Imatrix>) -> Self {
        let original = original();
        let source = Gguf::from_vec(original.clone()).unwrap();
        let recipe = Recipe::named("q2k-down").unwrap();
        let importance = matrix.map(|matrix| Importance {
            matrix,
            file: "text.dat",
        });
        let pool = Pool::new(1).unwrap();
        let requant = Requant::new(&source, &recipe, importance, NonFinite::Refuse).unwrap();
        let requant = requant.steps_of(500, 200);
        let mut disk = Disk::new(original.clone());
        let report = requant.run(&mut disk, &pool, go).unwrap();
        assert_eq!(report.tensors.len(), 2);
        assert!(!disk.has_journal());
        Self {
            finished: disk.model().to_vec(),
            original,
            requant,
            pool,
        }
    }

    fn run(&self, disk: &mut Disk) -> Result<(), RequantError> {
        self.requant.run(disk, &self.pool, go).map(drop)
    }

    /// What holds after any accident; then finish, with more accidents if there are any in `later`.
    fn recover(&self, mut disk: Disk, later: &[(usize, Fault, Loss)], what: &str) {
        let opened = Gguf::from_vec(disk.model().to_vec());
        match &opened {
            Ok(_) => assert!(
                disk.model() == self.original || disk.model() == self.finished,
                "{what}: a model opens that is neither the old nor the new one"
            ),
            Err(error) => assert!(
                matches!(error.fault(), Some(Malformed::Unfinished))
                    && error.to_string().contains("ds4 requant --resume"),
                "{what}: {error}"
            ),
        }
        if let Some(((at, fault, loss), later)) = later.split_first() {
            let mut failing = disk.failing(*at, *fault);
            let _ = resume(&mut failing, &self.pool, go);
            return self.recover(
                failing.restarted(*loss),
                later,
                &format!("{what}, then {fault:?} at {at} with {loss:?}"),
            );
        }
        match resume(&mut disk, &self.pool, go) {
            Ok(_) => {}
            Err(RequantError::NotUnfinished { .. }) if opened.is_ok() => {
                if disk.model() == self.original {
                    self.run(&mut disk).unwrap();
                }
            }
            Err(error) => panic!("{what}: {error}"),
        }
        assert!(disk.model() == self.finished, "{what}: other bytes");
        assert!(!disk.has_journal(), "{what}: the journal stays");
    }

    fn operations(&self) -> usize {
        let mut disk = Disk::new(self.original.clone());
        self.run(&mut disk).unwrap();
        disk.operations
    }
}

const LOSSES: [Loss; 5] = [
    Loss::Nothing,
    Loss::Everything,
    Loss::Some(1),
    Loss::Some(2),
    Loss::Some(3),
];

#[test]
fn the_result_is_the_file_that_quantize_writes() {
    for with in [false, true] {
        let source = Gguf::from_vec(original()).unwrap();
        let matrix = imatrix(&source);
        let case = Case::new(with.then_some(&matrix));
        let recipe = Recipe::named("q2k-down").unwrap();
        // The old header has no room for the names of the importance file.
        assert_eq!(case.requant.unrecorded().is_empty(), !with);
        let importance = with.then_some(Importance {
            matrix: &matrix,
            file: "text.dat",
        });
        let quantize = Quantize::new(&source, &recipe, importance).unwrap();
        let (bytes, _) = quantize
            .run(&case.pool, NonFinite::Refuse, Vec::new(), go)
            .unwrap();
        let new = Gguf::from_vec(case.finished.clone()).unwrap();
        if with {
            let whole = Gguf::from_vec(bytes).unwrap();
            for (index, info) in whole.tensors().iter().enumerate() {
                assert_eq!(new.tensors()[index].ty, info.ty);
                assert!(
                    new.tensor_at(index).bytes == whole.tensor_at(index).bytes,
                    "{}",
                    info.name
                );
            }
        } else {
            assert!(case.finished == bytes);
        }
        assert_eq!(case.requant.file_bytes().1, case.finished.len() as u64);
        assert_eq!(new.metadata().get::<&str>("general.note").unwrap(), "kept");
        assert_eq!(
            new.tensor("blk.0.ffn_down_exps.weight").unwrap().info.ty,
            TensorType::Q2K
        );
    }
}

#[test]
fn a_stop_at_any_operation_loses_nothing_whatever_the_disk_forgets() {
    let case = Case::new(None);
    let operations = case.operations();
    assert!(operations > 100, "{operations}");
    for at in 0..operations {
        for fault in [
            Fault::Stop,
            Fault::Torn(1),
            Fault::Torn(100),
            Fault::Torn(192),
            Fault::Torn(255),
        ] {
            for loss in LOSSES {
                let mut disk = Disk::new(case.original.clone()).failing(at, fault);
                assert!(case.run(&mut disk).is_err());
                case.recover(
                    disk.restarted(loss),
                    &[],
                    &format!("{fault:?} at {at} with {loss:?}"),
                );
            }
        }
    }
}

#[test]
fn a_disk_that_refuses_any_operation_is_an_error_and_loses_nothing() {
    let case = Case::new(None);
    for at in 0..case.operations() {
        for fault in [
            Fault::Refuse(ErrorKind::StorageFull, 0),
            Fault::Refuse(ErrorKind::StorageFull, 128),
            Fault::Refuse(ErrorKind::Other, 77),
        ] {
            for loss in LOSSES {
                let mut disk = Disk::new(case.original.clone()).failing(at, fault);
                let error = case.run(&mut disk).unwrap_err();
                assert!(matches!(error, RequantError::Disk { .. }), "{error}");
                case.recover(
                    disk.restarted(loss),
                    &[],
                    &format!("{fault:?} at {at} with {loss:?}"),
                );
            }
        }
    }
}

#[test]
fn accidents_while_resuming_lose_nothing_either() {
    let source = Gguf::from_vec(original()).unwrap();
    let matrix = imatrix(&source);
    let case = Case::new(Some(&matrix));
    let operations = case.operations();
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % n
    };
    for round in 0..600 {
        let mut accident = |within| {
            let share = random(256) as u8;
            let fault = match random(3) {
                0 => Fault::Stop,
                1 => Fault::Torn(share),
                _ => Fault::Refuse(ErrorKind::StorageFull, share),
            };
            let loss = match random(3) {
                0 => Loss::Nothing,
                1 => Loss::Everything,
                _ => Loss::Some(random(1 << 30) as u64),
            };
            (random(within), fault, loss)
        };
        let (at, fault, loss) = accident(operations);
        let later = [accident(40), accident(40), accident(operations)];
        let mut disk = Disk::new(case.original.clone()).failing(at, fault);
        let _ = case.run(&mut disk);
        case.recover(
            disk.restarted(loss),
            &later,
            &format!("round {round}: {fault:?} at {at} with {loss:?}"),
        );
    }
}

#[test]
fn stopping_at_any_step_can_be_resumed() {
    let case = Case::new(None);
    for stop in 0..200 {
        let mut disk = Disk::new(case.original.clone());
        let mut heard = 0;
        let result = case.requant.run(&mut disk, &case.pool, |_| {
            heard += 1;
            if heard > stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if result.is_ok() {
            assert!(stop > 20, "{stop}");
            return;
        }
        assert!(matches!(result, Err(RequantError::Cancelled)));
        assert!(matches!(case.run(&mut disk), Err(RequantError::Unfinished)));
        case.recover(disk, &[], &format!("stopped at {stop}"));
    }
    panic!("200 steps were not enough");
}

#[test]
fn what_cannot_be_done_in_place_is_refused_and_named() {
    let new = |bytes: Vec<u8>, recipe: &str, nonfinite| {
        let source = Gguf::from_vec(bytes).unwrap();
        let recipe = Recipe::from_toml(recipe).unwrap();
        let requant = Requant::new(&source, &recipe, None, nonfinite)?;
        requant.check_weights(&source, &Pool::new(1).unwrap(), go)?;
        Ok(requant)
    };
    let refuse = NonFinite::Refuse;
    let error = new(original(), "[[rule]]\ntype = \"keep\"", refuse).unwrap_err();
    assert!(matches!(error, RequantError::Nothing), "{error}");
    let error = new(original(), "base = \"f16\"", refuse).unwrap_err();
    assert!(
        matches!(&error, RequantError::Grows { tensor, .. } if &**tensor == "token_embd.weight"),
        "{error}"
    );
    let error = new(
        original(),
        "[[rule]]\nrole = \"routed experts\"\ntype = \"IQ2_XXS\"",
        refuse,
    )
    .unwrap_err();
    assert!(
        matches!(
            &error,
            RequantError::Quantize(QuantizeError::NoImportance { .. })
        ),
        "{error}"
    );
    // The name of the layout of id 107 needs room that the old header has not.
    let error = new(
        original(),
        "[[rule]]\nrole = \"routed experts\"\ntype = \"Q2_0_ROCMFP2\"",
        refuse,
    )
    .unwrap_err();
    assert!(matches!(error, RequantError::HeaderRoom { .. }), "{error}");

    let bad = |i: usize| match i {
        600 => f32::NAN,
        _ => 1.0,
    };
    let bytes = || packed(&[("a.weight", &[256, 4], TensorType::F32, &bad)], &[]);
    let recipe = "[[rule]]\ntype = \"Q8_0\"";
    let error = new(bytes(), recipe, refuse).unwrap_err();
    assert!(
        matches!(&error, RequantError::Quantize(QuantizeError::NonFinite { tensor, index: 600, .. }) if &**tensor == "a.weight"),
        "{error}"
    );
    // Larger than any scale of the type reaches, also when clamped: found before anything is written.
    let large = |i: usize| if i == 300 { 60_000.0 } else { 1.0 };
    let large = || packed(&[("a.weight", &[256, 4], TensorType::F32, &large)], &[]);
    for nonfinite in [refuse, NonFinite::Clamp] {
        let error = new(large(), "[[rule]]\ntype = \"Q4_0_ROCMFP4\"", nonfinite).unwrap_err();
        assert!(
            matches!(
                &error,
                RequantError::Quantize(QuantizeError::Codec {
                    source: ds4_quant::Error::OutOfRange { block: 9, .. },
                    ..
                })
            ),
            "{error}"
        );
    }
    new(large(), recipe, refuse).unwrap();
    let clamped = new(bytes(), recipe, NonFinite::Clamp).unwrap();
    let mut disk = Disk::new(bytes());
    clamped.run(&mut disk, &Pool::new(1).unwrap(), go).unwrap();
    let x = model::floats(&Gguf::from_vec(disk.model().to_vec()).unwrap(), "a.weight");
    assert_eq!(x[600], 0.0);
    assert!((x[599] - 1.0).abs() < 1e-3, "{}", x[599]);
}

#[test]
fn a_journal_of_another_model_a_missing_and_a_damaged_one_are_refused() {
    let case = Case::new(None);
    let fresh = || Disk::new(case.original.clone());
    // Nothing was begun.
    let error = resume(&mut fresh(), &case.pool, go).unwrap_err();
    assert!(
        matches!(error, RequantError::NotUnfinished { .. }),
        "{error}"
    );
    // Begun, and the journal is gone.
    let middle = case.operations() / 2;
    let mut disk = fresh().failing(middle, Fault::Stop);
    case.run(&mut disk).unwrap_err();
    let mut lost = disk.clone().restarted(Loss::Nothing);
    lost.remove_journal().unwrap();
    let error = resume(&mut lost, &case.pool, go).unwrap_err();
    assert!(matches!(error, RequantError::NoJournal), "{error}");
    // Begun, and the plan is damaged.
    let mut damaged = disk.clone().restarted(Loss::Nothing);
    damaged
        .write_at(ds4_quant::requant::Part::Journal, 60, b"oops")
        .unwrap();
    let error = resume(&mut damaged, &case.pool, go).unwrap_err();
    assert!(matches!(error, RequantError::NoJournal), "{error}");
    // Another file of the same name.
    let mut other = case.original.clone();
    let end = other.len() - 1;
    other.truncate(end);
    let error = case.run(&mut Disk::new(other)).unwrap_err();
    assert!(matches!(error, RequantError::Changed { .. }), "{error}");
    let mut other = case.original.clone();
    other[30] ^= 1;
    let error = case.run(&mut Disk::new(other)).unwrap_err();
    assert!(matches!(error, RequantError::Changed { .. }), "{error}");
    let error = case.run(&mut Disk::new(b"text".to_vec())).unwrap_err();
    assert!(matches!(error, RequantError::Magic { .. }), "{error}");
}

/// Decoded by the reference's formula, encoded as its own quantizer does: see the manifest of the golden data.
#[test]
fn mxfp4_to_q2_k_in_place_gives_the_golden_bytes() {
    let golden = |file: &str| {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        std::fs::read(std::path::Path::new(data).join(file)).unwrap()
    };
    const NAME: &str = "blk.0.ffn_down_exps.weight";
    let mut metadata = ds4_gguf::Metadata::new();
    metadata.set("general.file_type", 38u32);
    metadata.set("general.quantization_version", 2u32);
    let mut plan = ds4_gguf::Plan::new(metadata).unwrap();
    plan.add(NAME, &[1024, 12], TensorType::Mxfp4).unwrap();
    let mut writer = ds4_gguf::Writer::new(Vec::new(), plan).unwrap();
    writer
        .tensor(NAME, &golden("MXFP4/quant_noim.bin"))
        .unwrap();
    let model = writer.finish().unwrap();
    let source = Gguf::from_vec(model.clone()).unwrap();

    let mut entry = 1i32.to_le_bytes().to_vec();
    entry.extend((NAME.len() as i32).to_le_bytes());
    entry.extend(NAME.as_bytes());
    entry.extend([1i32.to_le_bytes(), 1024i32.to_le_bytes()].concat());
    entry.extend(golden("inputs/imatrix.f32"));
    let matrix = Imatrix::parse(entry).unwrap();
    for (matrix, want) in [
        (None, "requant/q2_k_noim.bin"),
        (Some(&matrix), "requant/q2_k_im.bin"),
    ] {
        let importance = matrix.map(|matrix| Importance {
            matrix,
            file: "imatrix.f32",
        });
        let recipe = Recipe::named("q2k-down").unwrap();
        let requant = Requant::new(&source, &recipe, importance, NonFinite::Refuse).unwrap();
        let mut disk = Disk::new(model.clone());
        let requant = requant.steps_of(3 * 544, 544);
        requant.run(&mut disk, &Pool::new(2).unwrap(), go).unwrap();
        let done = Gguf::from_vec(disk.model().to_vec()).unwrap();
        assert!(done.tensor(NAME).unwrap().bytes == golden(want), "{want}");
    }
}
