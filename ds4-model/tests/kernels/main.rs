//! The GPU kernels, run on the CPU by the look-alike of the HIP runtime, against the codecs and formulas in Rust.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests end where something fails, and say aloud what they leave out"
)]

mod linear;
mod place;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ds4_hip::Buffer;
use ds4_hip_compile::Target;
use ds4_model::hip::linear::{Variant, Weights, linear};
use ds4_model::hip::{Error, activations};
use place::{Place, Rng};

/// Every look-alike there is: the kernels' source on the CPU, and their gfx1151 machine code interpreted. One without its
/// compiler is left out, said aloud.
fn places() -> Vec<Place> {
    static CODE: OnceLock<Vec<(&str, PathBuf)>> = OnceLock::new();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let targets = [
        ("libds4_hip_cpu.so", Target::Host),
        ("libds4_hip_gfx1151.so", Target::Amd("gfx1151")),
    ];
    let code = CODE.get_or_init(|| {
        let compiled = |(library, target)| Some((library, place::compile(target, &folder)?));
        targets.into_iter().filter_map(compiled).collect()
    });
    let tests = std::env::current_exe().unwrap();
    code.iter()
        .map(|(library, code)| Place::open(&tests.with_file_name(library), code))
        .collect()
}

#[test]
fn activations_are_those_of_the_formula() {
    for place in places() {
        activations(&place);
    }
}

fn activations(place: &Place) {
    let mut rng = Rng(1);
    for (rows, cols) in [(1, 64), (3, 128), (2, 4096)] {
        let mut x = rng.floats(rows * cols);
        x[..32].fill(0.0);
        x[32] = -1e-30;
        let (codes, scales) = linear::quantized(&x);
        let dx = Buffer::from_slice(&place.stream, &x).unwrap();
        let mut y = Buffer::<u8>::new(&place.device, activations::bytes(rows, cols)).unwrap();
        activations::quantize(
            &place.kernels,
            &place.stream,
            &dx.view(),
            cols,
            &mut y.view_mut(),
        )
        .unwrap();
        let y = place.stream.read(y.view()).unwrap();
        for (r, row) in y.chunks(cols + cols / 4).enumerate() {
            let want: Vec<u8> = codes[r * cols..][..cols]
                .iter()
                .map(|c| c.cast_unsigned())
                .collect();
            assert_eq!(&row[..cols], want);
            let want: Vec<u8> = scales[r * cols / 32..][..cols / 32]
                .iter()
                .flat_map(|s| s.to_le_bytes())
                .collect();
            assert_eq!(&row[cols..cols + cols / 8], want);
            let want: Vec<u8> = codes[r * cols..][..cols]
                .chunks(16)
                .flat_map(|c| c.iter().map(|&c| i16::from(c)).sum::<i16>().to_le_bytes())
                .collect();
            assert_eq!(&row[cols + cols / 8..], want);
        }
    }
}

#[test]
fn products_with_packed_weights_are_those_of_the_codecs() {
    let shapes = [(1, 64), (9, 320), (17, 1088), (5, 2304)];
    let results: Vec<Vec<f32>> = places()
        .iter()
        .map(|place| linear::every_type(place, &shapes))
        .collect();
    for other in results.iter().skip(1) {
        // Not only near the same numbers: the same bits.
        assert!(
            results[0]
                .iter()
                .zip(other)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused_with_their_names() {
    let Some(place) = places().into_iter().next() else {
        return;
    };
    let Place {
        device,
        stream,
        kernels,
    } = &place;
    let w = Buffer::<u8>::new(device, 4 * 2 * 34 + 16).unwrap();
    let x = Buffer::<u8>::new(device, activations::bytes(5, 64)).unwrap();
    let mut y = Buffer::<f32>::new(device, 20).unwrap();
    let weights = |ty, rows, cols, from, len| Weights {
        ty,
        rows,
        cols,
        bytes: w.slice(from..from + len).unwrap(),
    };
    use ds4_gguf::TensorType as T;
    let cases = [
        (
            weights(T::Q8_0, 4, 64, 0, 271),
            1,
            4,
            "w is 271, expected 272",
        ),
        (weights(T::Q8_0, 4, 64, 2, 272), 1, 4, "modulo 16"),
        (weights(T::Q8_0, 4, 96, 0, 272), 1, 4, "cols is 96"),
        (weights(T::Q8_0, 0, 64, 0, 0), 1, 4, "rows is 0"),
        (weights(T::Q4K, 4, 64, 0, 272), 1, 4, "cols is 64"),
        (weights(T::Q6K, 4, 256, 0, 272), 1, 4, "Q6_K"),
        (weights(T::Q8_0, 4, 64, 0, 272), 5, 20, "the rows of x is 5"),
        (weights(T::Q8_0, 4, 64, 0, 272), 2, 7, "y is 7, expected 8"),
    ];
    for (w, n, out, what) in cases {
        let error = linear(
            kernels,
            stream,
            &w,
            &x.slice(..activations::bytes(n, 64)).unwrap(),
            &mut y.slice_mut(..out).unwrap(),
        )
        .unwrap_err();
        assert!(error.to_string().contains(what), "{error} / {what}");
    }
    let floats = Buffer::<f32>::new(device, 96).unwrap();
    let mut q = Buffer::<u8>::new(device, 120).unwrap();
    let error =
        activations::quantize(kernels, stream, &floats.view(), 96, &mut q.view_mut()).unwrap_err();
    assert!(matches!(error, Error::Shape { found: 96, .. }), "{error}");
    assert_eq!(Variant::of(4096), Variant::Split);
    assert_eq!(Variant::of(129_280), Variant::Whole);
}

#[test]
fn a_missing_code_object_is_named() {
    let Some(place) = places().into_iter().next() else {
        return;
    };
    let error = ds4_model::hip::Kernels::load(&place.device, |_, _| None).unwrap_err();
    assert!(
        matches!(&error, Error::NoCode { file: "activations", arch } if &**arch == "host"),
        "{error}"
    );
}
