//! FP8 and FP4 weights as the published checkpoints have them; expected values from the definitions of the formats.

use ds4_gguf::TensorType;
use ds4_model::convert::ConvertOptions;
use ds4_quant::quantize::QuantizeError;

use crate::hf::{self, Names, Tensor};
use crate::{checkpoint, convert, keep, logits, tiny};

/// Numbers without a pattern.
struct Walk(u64);

impl Walk {
    fn next(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }
}

fn e2m1(code: u8) -> f32 {
    let size = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
    if code & 8 == 0 { size } else { -size }
}

fn e4m3(code: u8) -> f32 {
    let (sign, e, m) = (code >> 7, i32::from(code >> 3 & 15), f32::from(code & 7));
    let size = if e == 0 {
        m / 8.0 * 2f32.powi(-6)
    } else {
        (1.0 + m / 8.0) * 2f32.powi(e - 7)
    };
    if sign == 0 { size } else { -size }
}

/// Give a tensor packed codes and scales; what its weights are then.
fn pack(
    tensors: &mut Vec<Tensor>,
    name: &str,
    four: bool,
    float_scales: bool,
    walk: &mut Walk,
) -> Vec<f32> {
    let t = tensors.iter_mut().find(|t| t.name == name).unwrap();
    let [rows, cols] = t.shape[..] else { panic!() };
    let (high, wide) = if four {
        (rows, cols / 32)
    } else {
        (rows.div_ceil(128), cols.div_ceil(128))
    };
    let exponents: Vec<u8> = (0..high * wide).map(|_| 118 + walk.next() % 5).collect();
    let scale = |r: usize, c: usize| {
        let at = if four {
            r * wide + c / 32
        } else {
            r / 128 * wide + c / 128
        };
        let factor = if float_scales { 1.3 } else { 1.0 };
        2f32.powi(i32::from(exponents[at]) - 127) * factor
    };
    let weights = if four {
        t.dtype = "I8";
        t.shape = vec![rows, cols / 2];
        t.bytes = (0..rows * cols / 2).map(|_| walk.next()).collect();
        let code = |r: usize, c: usize| t.bytes[(r * cols + c) / 2] >> (4 * (c % 2)) & 15;
        (0..rows * cols)
            .map(|i| e2m1(code(i / cols, i % cols)) * scale(i / cols, i % cols))
            .collect()
    } else {
        t.dtype = "F8_E4M3";
        t.bytes = (0..rows * cols).map(|_| walk.next() & 0xbf).collect();
        (0..rows * cols)
            .map(|i| e4m3(t.bytes[i]) * scale(i / cols, i % cols))
            .collect()
    };
    let floats = (0..high * wide).map(|i| 2f32.powi(i32::from(exponents[i]) - 127) * 1.3);
    tensors.push(Tensor {
        name: name.replace(".weight", ".scale"),
        dtype: if float_scales { "F32" } else { "F8_E8M0" },
        shape: vec![high, wide],
        bytes: if float_scales {
            floats.flat_map(f32::to_le_bytes).collect()
        } else {
            exponents
        },
    });
    weights
}

#[test]
fn packed_weights_keep_every_bit() {
    let source = tiny("tiny-f16");
    let mut tensors = hf::tensors(&source, Names::Published);
    let mut walk = Walk(7);
    let mut want: Vec<(String, TensorType, Vec<f32>)> = Vec::new();
    for (from, to, float_scales, ty) in [
        (
            "layers.0.attn.wq_b.weight",
            "blk.0.attn_q_b.weight",
            false,
            TensorType::Bf16,
        ),
        (
            "layers.1.attn.wo_b.weight",
            "blk.1.attn_output_b.weight",
            false,
            TensorType::Bf16,
        ),
        (
            "layers.2.attn.wkv.weight",
            "blk.2.attn_kv.weight",
            true,
            TensorType::F32,
        ),
    ] {
        want.push((
            to.to_owned(),
            ty,
            pack(&mut tensors, from, false, float_scales, &mut walk),
        ));
    }
    for layer in 0..3 {
        for (theirs, ours) in [("w1", "gate"), ("w2", "down"), ("w3", "up")] {
            let experts = (0..8).flat_map(|e| {
                let name = format!("layers.{layer}.ffn.experts.{e}.{theirs}.weight");
                pack(&mut tensors, &name, true, false, &mut walk)
            });
            let weights: Vec<f32> = experts.collect();
            want.push((
                format!("blk.{layer}.ffn_{ours}_exps.weight"),
                TensorType::Mxfp4,
                weights,
            ));
        }
    }
    tensors.push(Tensor {
        name: "mtp.0.enorm.weight".to_owned(),
        dtype: "BF16",
        shape: vec![1],
        bytes: vec![0; 2],
    });
    let folder = checkpoint(&source, &tensors, 2);
    let result = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap();
    for (name, ty, weights) in want {
        assert_eq!(result.tensor(&name).unwrap().info.ty, ty, "{name}");
        let got = hf::f32s(&result, &name);
        assert_eq!(got.len(), weights.len(), "{name}");
        // −0 has a bit of its own, in the codes as in the floats.
        let differ = got
            .iter()
            .zip(&weights)
            .position(|(a, b)| a.to_bits() != b.to_bits() && !(*a == 0.0 && *b == 0.0));
        assert_eq!(differ, None, "{name}");
    }
    assert!(
        logits(result)
            .iter()
            .all(|x| f32::from_bits(*x).is_finite())
    );
}

/// The codes, not only the values: a block is the scale and the codes of the checkpoint in another order.
#[test]
fn fp4_blocks_hold_the_codes_of_the_checkpoint() {
    let source = tiny("tiny-f16");
    let mut tensors = hf::tensors(&source, Names::Published);
    let mut walk = Walk(11);
    for e in 0..8 {
        pack(
            &mut tensors,
            &format!("layers.1.ffn.experts.{e}.w2.weight"),
            true,
            false,
            &mut walk,
        );
    }
    let folder = checkpoint(&source, &tensors, 1);
    let result = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap();
    let blocks = result.tensor("blk.1.ffn_down_exps.weight").unwrap().bytes;
    let find = |name: &str| &tensors.iter().find(|t| t.name == name).unwrap().bytes;
    for e in 0..8 {
        let codes = find(&format!("layers.1.ffn.experts.{e}.w2.weight"));
        let scales = find(&format!("layers.1.ffn.experts.{e}.w2.scale"));
        for (b, &scale) in scales.iter().enumerate() {
            let block = &blocks[(e * scales.len() + b) * 17..][..17];
            assert_eq!(block[0], scale);
            for i in 0..32 {
                let theirs = codes[b * 16 + i / 2] >> (4 * (i % 2)) & 15;
                let ours = block[1 + i % 16] >> (4 * (i / 16)) & 15;
                assert_eq!(ours, theirs, "expert {e}, block {b}, weight {i}");
            }
        }
    }
}

#[test]
fn weights_that_are_no_numbers_are_named() {
    let source = tiny("tiny-f16");
    for (name, dtype, index) in [
        ("layers.1.attn.wq_a.weight", "F16", 70),
        ("layers.1.attn_norm.weight", "F32", 3),
    ] {
        let mut tensors = hf::tensors(&source, Names::Published);
        let t = tensors.iter_mut().find(|t| t.name == name).unwrap();
        assert_eq!(t.dtype, dtype);
        let size = if dtype == "F16" { 2 } else { 4 };
        t.bytes[(index + 1) * size - 2..][..2].copy_from_slice(&[0xff, 0x7f]);
        let folder = checkpoint(&source, &tensors, 1);
        let error = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap_err();
        assert!(
            matches!(&error, QuantizeError::NonFinite { index: i, .. } if *i == index),
            "{error}"
        );
    }
}
