//! Against the outside world: `tests/data/manifest.json` says which program, version and command made the files.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use std::fs;
use std::path::{Path, PathBuf};

use ds4_gguf::TensorType;
use ds4_quant::{Activations, Codec, Error, Precision, codec};
use serde_json::Value;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn manifest() -> Value {
    serde_json::from_slice(&fs::read(data().join("manifest.json")).unwrap()).unwrap()
}

fn bytes(entry: &Value) -> Vec<u8> {
    let file = entry["file"].as_str().unwrap();
    let bytes = fs::read(data().join(file)).unwrap();
    assert_eq!(
        bytes.len() as u64,
        entry["bytes"].as_u64().unwrap(),
        "{file}"
    );
    bytes
}

fn f32s(entry: &Value) -> Vec<f32> {
    bytes(entry)
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

fn f64s(entry: &Value) -> Vec<f64> {
    bytes(entry)
        .as_chunks()
        .0
        .iter()
        .map(|b| f64::from_le_bytes(*b))
        .collect()
}

/// The golden types with a codec of their own: all but the two whose codebooks lie beside the tensors.
fn types(manifest: &Value) -> Vec<(String, &'static dyn Codec, Value)> {
    let all = manifest["types"].as_object().unwrap();
    let known: Vec<_> = all
        .iter()
        .filter(|(_, e)| e["books"].is_null())
        .map(|(name, e)| {
            let ty = match name.as_str() {
                "Q2_0_ROCMFPX__s40" => TensorType::RocmFp2S40,
                "Q2_0_ROCMFP2__two_scale" => TensorType::RocmFp2TwoScale,
                "Q2_0_ROCMFP2__affine" => TensorType::RocmFp2Affine,
                _ => TensorType::from_id(e["id"].as_u64().unwrap() as u32).unwrap(),
            };
            (
                name.clone(),
                codec(ty).unwrap_or_else(|| panic!("no codec for {name}")),
                e.clone(),
            )
        })
        .collect();
    assert_eq!(
        known.len(),
        27,
        "the manifest lists 16 block types of ggml, F16, BF16, and nine layouts of ROCmFPX"
    );
    known
}

/// Random and edge blocks, expanded by the reference C code: equality is exact, up to the sign of zero.
#[test]
fn blocks_decode_like_the_reference() {
    for (name, codec, entry) in types(&manifest()) {
        // Code 32 of ROCmFP6 is −0 to this reference; here it is −32, as to the other.
        if entry["blocks"].is_null() || name == "Q6_0_ROCMFPX__sym" {
            continue;
        }
        let want = f32s(&entry["dequant"]);
        let mut got = vec![f32::NAN; want.len()];
        codec.decode(&bytes(&entry["blocks"]), &mut got).unwrap();
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let same = got.to_bits() == want.to_bits() || (*got == 0.0 && *want == 0.0);
            assert!(same, "{name} weight {i}: got {got}, want {want}");
        }
    }
}

/// Blocks 8 to 11 of the ROCmFPX types carry the scale bytes 0x7f, 0x80, 0xff and 0xb8: decoding takes them for 0,
/// as above; validation names the first.
#[test]
fn scale_bytes_without_a_value_are_found() {
    for (name, codec, entry) in types(&manifest()) {
        if entry["blocks_note"].is_null() {
            continue;
        }
        let (ty, blocks) = (codec.ty(), bytes(&entry["blocks"]));
        let block = ty.block_bytes();
        codec.validate(&blocks[..8 * block]).unwrap();
        for (i, byte) in [0x7f, 0x80, 0xff, 0xb8].into_iter().enumerate() {
            let from = (8 + i) * block;
            assert_eq!(
                codec.validate(&blocks[from..from + block]),
                Err(Error::InvalidScale { ty, block: 0, byte }),
                "{name}"
            );
        }
        assert_eq!(
            codec.validate(&blocks),
            Err(Error::InvalidScale {
                ty,
                block: 8,
                byte: 0x7f
            }),
            "{name}"
        );
        codec.validate(&blocks[12 * block..]).unwrap();
    }
}

/// Half floats of the golden rows come back as the nearest values.
#[test]
fn float_types_round_to_nearest_even_and_back() {
    let manifest = manifest();
    let rows = f32s(&manifest["inputs"]["rows"]);
    for name in ["F16", "BF16"] {
        let entry = &manifest["types"][name];
        let codec =
            codec(TensorType::from_id(entry["id"].as_u64().unwrap() as u32).unwrap()).unwrap();
        let want = bytes(&entry["quant"]);
        let mut got = vec![0; want.len()];
        codec.encode(&rows, None, &mut got).unwrap();
        assert_eq!(got, want, "{name}");
        let mut back = vec![0.0; rows.len()];
        codec.decode(&got, &mut back).unwrap();
        let step = if name == "F16" {
            2f32.powi(-11)
        } else {
            2f32.powi(-8)
        };
        for (x, y) in rows.iter().zip(&back) {
            assert!(
                (x - y).abs() <= step * x.abs() + 2f32.powi(-25),
                "{name}: {x} became {y}"
            );
        }
    }
}

/// The bound of the manifest for any summation order: 1e-6 of Σ|w·a| around the exact dot of the dequantized
/// numbers; the 1e-30 lets an exact zero be the smallest subnormal.
#[test]
fn integer_dots_are_within_the_golden_bound() {
    let manifest = manifest();
    let acts = f32s(&manifest["inputs"]["act"]);
    let x = Activations::new(&acts, 3, 1024, Precision::Fast).unwrap();
    let q8_0: Vec<f64> = bytes(&manifest["inputs"]["act_q8_0"])
        .as_chunks::<34>()
        .0
        .iter()
        .flat_map(|b| {
            let mut w = [0.0f32; 32];
            codec(TensorType::Q8_0).unwrap().decode(b, &mut w).unwrap();
            w.map(f64::from)
        })
        .collect();
    let q8_k: Vec<f64> = bytes(&manifest["inputs"]["act_q8_K"])
        .as_chunks::<292>()
        .0
        .iter()
        .flat_map(|b| {
            let d = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            b[4..260]
                .iter()
                .map(move |&q| f64::from(d * f32::from(q as i8)))
        })
        .collect();
    for (name, codec, entry) in types(&manifest) {
        if entry["dot_im"].is_null() {
            continue;
        }
        let a = if entry["act"] == "q8_0" { &q8_0 } else { &q8_k };
        let packed = bytes(&entry["quant_im"]);
        let exact = f64s(&entry["dot_im"]["exact_q"]);
        let reference = f32s(&entry["dot_im"]["int_path"]);
        let row_bytes = packed.len() / 12;
        let mut worst = 0f64;
        for (r, row) in packed.chunks_exact(row_bytes).enumerate() {
            let mut w = vec![0.0f32; 1024];
            codec.decode(row, &mut w).unwrap();
            for t in 0..3 {
                let size: f64 = w
                    .iter()
                    .zip(&a[1024 * t..])
                    .map(|(&w, a)| (f64::from(w) * a).abs())
                    .sum();
                let want = exact[3 * r + t];
                for got in [codec.dot(row, &x, t), reference[3 * r + t]] {
                    let off = (f64::from(got) - want).abs();
                    assert!(
                        off <= 1e-6 * size + 1e-30,
                        "{name} row {r} activation {t}: got {got}, want {want}"
                    );
                    worst = worst.max(off / (size + 1e-30));
                }
            }
        }
        println!("{name}: {worst:.1e} of Σ|w·a|");
    }
}
