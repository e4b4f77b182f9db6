//! Type id 107: three layouts, told apart by the caller, the key, or the look of the weights.

use ds4_gguf::{
    DecidedBy, Error, Gguf, Metadata, OpenOptions, Plan, Reason, RocmFp2Layout, TensorType, Writer,
};

use crate::mutate::Rng;
use crate::raw::Raw;

const LAYOUTS: [RocmFp2Layout; 3] = [
    RocmFp2Layout::S40,
    RocmFp2Layout::TwoScale,
    RocmFp2Layout::Affine,
];

/// A sample of the standard normal distribution (Box and Muller).
fn normal(rng: &mut Rng) -> f32 {
    let mut unit = || (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
    let (u, v) = (unit().max(1e-300), unit());
    ((-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()) as f32
}

/// The value of an unsigned E4M3 byte at half scale.
fn scale(byte: u8) -> f32 {
    let (e, m) = (byte >> 3, f32::from(byte & 7));
    if e == 0 {
        m / 1024.0
    } else {
        (8.0 + m) * f32::from(e).exp2() / 2048.0
    }
}

/// Nearest codes of `x` for the weights `levels`, and the squared error.
fn nearest(x: &[f32], levels: [f32; 4]) -> (Vec<u8>, f32) {
    let mut error = 0.0;
    let codes = x.iter().map(|&x| {
        let distance = |c: u8| (levels[usize::from(c)] - x).powi(2);
        let best = (0..4)
            .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
            .expect("four codes");
        error += distance(best);
        best
    });
    (codes.collect(), error)
}

/// The best block of 32 weights in `layout`, by trying every scale in a wide range around the largest weight's.
fn encode(x: &[f32], layout: RocmFp2Layout) -> [u8; 10] {
    let candidates = |x: &[f32], top: f32| {
        let largest = x.iter().fold(0.0f32, |a, x| a.max(x.abs())) / top;
        (1..0x7f).filter(move |&b| scale(b) > 0.45 * largest && scale(b) < 1.1 * largest)
    };
    let pick = |found: &mut Option<(Vec<u8>, [u8; 2], f32)>, codes: Vec<u8>, e, error| {
        if found.as_ref().is_none_or(|(_, _, best)| error < *best) {
            *found = Some((codes, e, error));
        }
    };
    let mut found = None;
    let (codes, e) = if layout == RocmFp2Layout::Affine {
        for s in candidates(x, 1.6) {
            for o in candidates(x, 1.0) {
                let (codes, error) =
                    nearest(x, [0.0, 1.0, 2.0, 3.0].map(|c| c * scale(s) - scale(o)));
                pick(&mut found, codes, [s, o], error);
            }
        }
        let (codes, e, _) = found.expect("a scale was tried");
        (codes, e)
    } else {
        let (levels, top) = if layout == RocmFp2Layout::S40 {
            ([-4.0, -1.0, 1.0, 4.0], 4.0)
        } else {
            ([-1.0, 0.0, 1.0, 2.0], 1.6)
        };
        let halves = [&x[..16], &x[16..]].map(|half| {
            let mut found = None;
            for s in candidates(half, top) {
                let (codes, error) = nearest(half, levels.map(|level: f32| level * scale(s)));
                pick(&mut found, codes, [s, 0], error);
            }
            found.expect("a scale was tried")
        });
        (
            [&halves[0].0[..], &halves[1].0[..]].concat(),
            [halves[0].1[0], halves[1].1[0]],
        )
    };
    let mut block = [0; 10];
    for (i, code) in codes.iter().enumerate() {
        block[i / 4] |= code << (2 * (i % 4));
    }
    block[8..].copy_from_slice(&e);
    block
}

/// `blocks` blocks of normal weights with the spread of a model's experts.
fn weights(layout: RocmFp2Layout, blocks: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed);
    (0..blocks)
        .flat_map(|_| encode(&[(); 32].map(|()| 0.02 * normal(&mut rng)), layout))
        .collect()
}

/// A file with these tensors of id 107 and no key that names their layout.
fn without_key(tensors: &[Vec<u8>]) -> Vec<u8> {
    let mut offset = 0;
    let mut raw = Raw::new(tensors.len() as u64, 0);
    for (i, bytes) in tensors.iter().enumerate() {
        raw = raw.tensor(
            format!("blk.{i}.ffn_up_exps.weight"),
            &[32, bytes.len() as u64 / 10],
            107,
            offset,
        );
        offset = (offset + bytes.len() as u64).next_multiple_of(32);
    }
    raw = raw.data(0);
    for bytes in tensors {
        raw = raw.data(0).bytes(bytes);
    }
    raw.0
}

#[test]
fn each_layout_is_told_by_the_look_of_its_weights() {
    for layout in LAYOUTS {
        let tensors: Vec<Vec<u8>> = (0..3).map(|seed| weights(layout, 1500, seed)).collect();
        let file = Gguf::from_vec(without_key(&tensors)).unwrap();
        let decision = file.rocmfp2_layout().unwrap();
        assert_eq!(decision.layout, layout, "{decision:?}");
        let DecidedBy::Statistics(numbers) = decision.by else {
            panic!("{decision:?}")
        };
        assert_eq!(numbers.tensors, 3);
        assert!(numbers.blocks > 4096 && numbers.blocks <= 4500);
        assert!((numbers.codes.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        // The bands of the module's table for normal weights.
        let band = if layout == RocmFp2Layout::Affine {
            0.8..1.0
        } else {
            0.2..0.5
        };
        assert!(band.contains(&numbers.up), "{numbers:?}");
        for info in file.tensors() {
            assert_eq!(
                (info.ty, info.ty.id(), info.extent.bytes),
                (layout.ty(), 107, 15_000)
            );
        }
        assert!(file.unsupported_tensors().is_empty());
    }
}

#[test]
fn tensors_that_look_different_are_refused_until_someone_names_the_layout() {
    let mut tensors = vec![weights(RocmFp2Layout::TwoScale, 2000, 1); 3];
    tensors.push(weights(RocmFp2Layout::Affine, 1500, 2));
    let bytes = without_key(&tensors);
    let error = Gguf::from_vec(bytes.clone()).unwrap_err();
    assert!(matches!(
        &error,
        Error::RocmFp2Disagree { tensor, single: RocmFp2Layout::Affine, pooled: RocmFp2Layout::TwoScale, .. }
            if **tensor == *"blk.3.ffn_up_exps.weight"
    ));
    assert_eq!(
        error.to_string(),
        "GGUF in memory: type id 107 reads as two-scale over the whole file but tensor `blk.3.ffn_up_exps.weight` reads as affine; \
         name the layout with OpenOptions::rocmfp2_layout or the key general.quantization.rocmfp2_layout"
    );
    let forced = OpenOptions {
        rocmfp2_layout: Some(RocmFp2Layout::TwoScale),
        ..Default::default()
    };
    let file = Gguf::from_vec_with(bytes, &forced).unwrap();
    assert!(
        file.tensors()
            .iter()
            .all(|info| info.ty == TensorType::RocmFp2TwoScale)
    );
}

#[test]
fn too_few_blocks_leave_the_type_unknown_and_say_what_to_do() {
    let file = Gguf::from_vec(without_key(&[weights(RocmFp2Layout::S40, 100, 1)])).unwrap();
    assert!(file.rocmfp2_layout().is_none());
    assert_eq!(
        (file.tensors()[0].ty, file.tensors()[0].extent.bytes),
        (TensorType::Unknown(107), 0)
    );
    let unsupported = file.unsupported_tensors();
    assert_eq!(
        (unsupported[0].name, unsupported[0].id),
        ("blk.0.ffn_up_exps.weight", 107)
    );
    assert!(matches!(
        unsupported[0].reason,
        Reason::LayoutUndecided { blocks: 1..=100 }
    ));
    assert!(
        unsupported[0]
            .reason
            .to_string()
            .contains("are too few to tell which (4096 are needed)")
    );
    // Blocks without scales are weights of zero: however many, they say nothing.
    let file = Gguf::from_vec(without_key(&[vec![0; 100_000]])).unwrap();
    assert_eq!(
        file.unsupported_tensors()[0].reason,
        Reason::LayoutUndecided { blocks: 0 }
    );
}

#[test]
fn what_the_writer_writes_names_its_layout_and_the_caller_can_overrule_it() {
    for layout in LAYOUTS {
        let mut plan = Plan::new(Metadata::new()).unwrap();
        plan.add("w", &[64], layout.ty()).unwrap();
        let mut writer = Writer::new(Vec::new(), plan).unwrap();
        writer.write(&[7; 20]).unwrap();
        let bytes = writer.finish().unwrap();
        let file = Gguf::from_vec(bytes.clone()).unwrap();
        assert_eq!(
            file.metadata().get::<&str>(RocmFp2Layout::KEY).unwrap(),
            layout.name()
        );
        let decision = file.rocmfp2_layout().unwrap();
        assert_eq!((decision.layout, decision.by), (layout, DecidedBy::Key));
        assert_eq!(file.tensors()[0].ty, layout.ty());

        for forced in LAYOUTS {
            let options = OpenOptions {
                rocmfp2_layout: Some(forced),
                ..Default::default()
            };
            let file = Gguf::from_vec_with(bytes.clone(), &options).unwrap();
            let decision = file.rocmfp2_layout().unwrap();
            assert_eq!((decision.layout, decision.by), (forced, DecidedBy::User));
        }
    }
}
