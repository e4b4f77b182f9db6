//! FP8 and FP4 weights as the published checkpoints have them; expected values from the definitions of the formats.

use ds4_gguf::{Gguf, TensorType};
use ds4_model::convert::ConvertOptions;
use ds4_quant::NonFinite;
use ds4_quant::quantize::QuantizeError;
use ds4_quant::recipe::Recipe;

use crate::hf::{self, Names, Tensor};
use crate::{bytes, checkpoint, convert, keep, logits, tiny};

/// Numbers without a pattern.
pub(crate) struct Walk(pub(crate) u64);

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
pub(crate) fn pack(
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

fn find<'a>(tensors: &'a mut [Tensor], name: &str) -> &'a mut Tensor {
    tensors.iter_mut().find(|t| t.name == name).unwrap()
}

/// Types and names that checkpoints give to the same bytes.
#[test]
fn packed_weights_and_scales_have_several_spellings() {
    let source = tiny("tiny-f16");
    let (name, ours) = ("layers.0.attn.wq_b.weight", "blk.0.attn_q_b.weight");
    let scale = "layers.0.attn.wq_b.scale";
    for (codes, scales, scale_name, ty) in [
        ("I8", "F8_E8M0", scale, TensorType::Mxfp4),
        (
            "U8",
            "U8",
            "layers.0.attn.wq_b.weight_scale_inv",
            TensorType::Mxfp4,
        ),
        (
            "F4",
            "F32",
            "layers.0.attn.wq_b.weight_scale",
            TensorType::Mxfp4,
        ),
        (
            "F8_E4M3",
            "U8",
            "layers.0.attn.wq_b.weight_scale",
            TensorType::Bf16,
        ),
        (
            "F8_E4M3",
            "F32",
            "layers.0.attn.wq_b.weight_scale_inv",
            TensorType::F32,
        ),
    ] {
        let mut tensors = hf::tensors(&source, Names::Published);
        let four = codes != "F8_E4M3";
        let want = pack(&mut tensors, name, four, false, &mut Walk(3));
        let packed = find(&mut tensors, name);
        packed.dtype = codes;
        if codes == "F4" {
            // It counts weights, where others count bytes.
            packed.shape[1] *= 2;
        }
        let packed = find(&mut tensors, scale);
        (packed.name, packed.dtype) = (scale_name.to_owned(), scales);
        if scales == "F32" {
            let floats = packed.bytes.iter().map(|&e| 2f32.powi(i32::from(e) - 127));
            packed.bytes = floats.flat_map(f32::to_le_bytes).collect();
        }
        let folder = checkpoint(&source, &tensors, 1);
        let result = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap();
        assert_eq!(
            result.tensor(ours).unwrap().info.ty,
            ty,
            "{codes}, {scales}"
        );
        assert_eq!(hf::f32s(&result, ours), want, "{codes}, {scales}");
    }
}

/// One tensor for all experts, gate above up: each expert's rows have the scales of their place in it.
#[test]
fn stacked_experts_have_the_scales_of_their_place() {
    let source = tiny("tiny-q2");
    for four in [false, true] {
        let mut tensors = hf::tensors(&source, Names::Transformers);
        let mut walk = Walk(17);
        let mut want: Vec<(&str, Vec<f32>)> = Vec::new();
        for (name, ours) in [
            ("gate_up_proj", &["gate", "up"][..]),
            ("down_proj", &["down"]),
        ] {
            let name = format!("model.layers.1.mlp.experts.{name}");
            let stack = find(&mut tensors, &name);
            let [experts, rows, cols] = stack.shape[..] else {
                panic!()
            };
            assert!(experts == 4 && cols == 256 && rows == 256 * ours.len());
            // Experts one below the other are one matrix: 128 divides their rows.
            stack.shape = vec![experts * rows, cols];
            let weights = pack(&mut tensors, &name, four, false, &mut walk);
            for (i, ours) in ours.iter().enumerate() {
                let of_expert = weights.chunks_exact(rows * cols);
                let of_ours = of_expert.flat_map(|w| &w[i * 256 * cols..][..256 * cols]);
                want.push((ours, of_ours.copied().collect()));
            }
            let scales = tensors.last_mut().unwrap();
            scales.name = format!("{name}_scale{}", if four { "" } else { "_inv" });
            for stack in [
                &name,
                &format!("{name}_scale"),
                &format!("{name}_scale_inv"),
            ] {
                for t in tensors.iter_mut().filter(|t| t.name == *stack) {
                    t.shape = vec![experts, t.shape[0] / experts, t.shape[1]];
                }
            }
        }
        let folder = checkpoint(&source, &tensors, 1);
        let result = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap();
        for (ours, want) in want {
            let got = hf::f32s(&result, &format!("blk.1.ffn_{ours}_exps.weight"));
            assert!(got == want, "{ours}, FP4 {four}");
        }
    }
}

/// A scale can make infinities of FP4 weights, or no numbers: whether they are kept or encoded, the first one is named.
#[test]
fn fp4_weights_that_are_no_numbers_are_named_or_replaced() {
    let source = tiny("tiny-f16");
    let ours = "blk.1.ffn_down_exps.weight";
    let block = (5 * 64 + 3) * 32;
    let scale = |e: u8| (e, "F8_E8M0", 2f32.powi(i32::from(e) - 127));
    for ((e, dtype, float), code, wrong, clamped) in [
        (scale(252), 7, None, 0.0),
        (scale(253), 5, None, 0.0),
        (scale(253), 6, Some((block + 9, f32::INFINITY)), 65_536.0),
        (
            scale(254),
            12,
            Some((block + 9, f32::NEG_INFINITY)),
            -65_536.0,
        ),
        ((255, "F8_E8M0", 0.0), 1, Some((block, f32::NAN)), 0.0),
        ((255, "F32", f32::NAN), 1, Some((block, f32::NAN)), 0.0),
        ((255, "F32", f32::INFINITY), 1, Some((block, f32::NAN)), 0.0),
    ] {
        let mut tensors = hf::tensors(&source, Names::Published);
        let mut walk = Walk(23);
        for expert in 0..8 {
            let name = format!("layers.1.ffn.experts.{expert}.w2.weight");
            pack(&mut tensors, &name, true, false, &mut walk);
        }
        // Of expert 5, row 3: one block, all 0 but weight 9.
        let codes = find(&mut tensors, "layers.1.ffn.experts.5.w2.weight");
        codes.bytes[3 * 16..][..16].fill(0);
        codes.bytes[3 * 16 + 4] = code << 4;
        let scales = find(&mut tensors, "layers.1.ffn.experts.5.w2.scale");
        scales.bytes[3] = e;
        if dtype == "F32" {
            let power = |&e: &u8| 2f32.powi(i32::from(e) - 127).to_le_bytes();
            scales.dtype = dtype;
            scales.bytes = scales.bytes.iter().flat_map(power).collect();
            scales.bytes[12..16].copy_from_slice(&float.to_le_bytes());
        }
        let folder = checkpoint(&source, &tensors, 1);
        let options = ConvertOptions::default();
        for recipe in [keep(), Recipe::named("f16").unwrap()] {
            let made = |policy| bytes(folder.path(), &options, &recipe, policy, 2);
            let what = format!("{float:e} {dtype} {code} {}", recipe.name());
            let Some((at, value)) = wrong else {
                // What is finite is kept to the bit; half floats have no room for it.
                assert_eq!(
                    made(NonFinite::Refuse).is_ok(),
                    recipe.name() == "custom",
                    "{what}"
                );
                continue;
            };
            let error = made(NonFinite::Refuse).unwrap_err();
            assert!(
                matches!(&error, QuantizeError::NonFinite { tensor, index, value: v }
                    if &**tensor == ours && *index == at && v.to_bits() == value.to_bits()),
                "{what}: {error}"
            );
            assert!(error.to_string().contains("--allow-nonfinite"), "{error}");
            let result = Gguf::from_vec(made(NonFinite::Clamp).unwrap()).unwrap();
            let weights = hf::f32s(&result, ours);
            assert!(weights.iter().all(|w| w.is_finite()), "{what}");
            // The nearest that FP4 has, or a half float has.
            let near = if recipe.name() == "custom" {
                65_536.0
            } else {
                65_504.0
            };
            let clamped = if clamped == 0.0 {
                0.0
            } else {
                near * clamped / 65_536.0
            };
            assert_eq!(weights[block + 9], clamped, "{what}");
        }
    }
}

#[test]
fn an_fp8_scale_that_is_no_number_is_named_by_its_weights() {
    let source = tiny("tiny-f16");
    let mut tensors = hf::tensors(&source, Names::Published);
    let name = "layers.0.attn.wq_b.weight";
    pack(&mut tensors, name, false, false, &mut Walk(29));
    find(&mut tensors, "layers.0.attn.wq_b.scale").bytes[2] = 255;
    let folder = checkpoint(&source, &tensors, 1);
    let error = convert(folder.path(), &ConvertOptions::default(), &keep()).unwrap_err();
    assert!(
        matches!(&error, QuantizeError::NonFinite { index, value, .. } if *index == 2 * 128 * 32 && value.is_nan()),
        "{error}"
    );
}

/// Scales of E2M1 weights become bytes: what is no power of two has none.
#[test]
fn an_fp4_scale_that_is_no_power_of_two_is_named() {
    let source = tiny("tiny-f16");
    let (name, scale) = ("layers.0.attn.wq_b.weight", "layers.0.attn.wq_b.scale");
    for (bits, good) in [
        (0x0040_0000, true),
        (0x0080_0000, true),
        (0x7f00_0000, true),
        (0x0020_0000, false),
        (0x3fc0_0000, false),
        (0xbf80_0000, false),
    ] {
        let mut tensors = hf::tensors(&source, Names::Published);
        pack(&mut tensors, name, true, false, &mut Walk(31));
        let scales = find(&mut tensors, scale);
        scales.dtype = "F32";
        scales.bytes = 1f32.to_le_bytes().repeat(scales.bytes.len());
        scales.bytes[40..44].copy_from_slice(&f32::from_bits(bits).to_le_bytes());
        find(&mut tensors, name).bytes[160..176].fill(0x11);
        let folder = checkpoint(&source, &tensors, 1);
        match convert(folder.path(), &ConvertOptions::default(), &keep()) {
            Ok(result) => {
                assert!(good, "{bits:#x}");
                let weight = hf::f32s(&result, "blk.0.attn_q_b.weight")[10 * 32];
                assert_eq!(weight, f32::from_bits(bits) / 2.0);
            }
            Err(QuantizeError::Source { source, .. }) => {
                assert!(!good, "{bits:#x}");
                assert!(
                    source.to_string().contains("`layers.0.attn.wq_b.scale`"),
                    "{source}"
                );
                assert!(source.to_string().contains("value 10"), "{source}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
