//! Small models in memory, with the names of the real ones.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use ds4_gguf::{Gguf, Metadata, Plan, TensorType, Value, Writer};
use ds4_quant::{Imatrix, Pool, codec, encode_rows};

/// A tensor: name, shape, and its weights by index.
pub(crate) type Tensor<'a> = (&'a str, &'a [u64], &'a dyn Fn(usize) -> f32);

/// A tensor of a type.
pub(crate) type Packed<'a> = (&'a str, &'a [u64], TensorType, &'a dyn Fn(usize) -> f32);

/// Weights that look like a model's, always the same.
pub(crate) fn weight(i: usize) -> f32 {
    let noise = |salt: u64| {
        let x = (i as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(salt.wrapping_mul(0xd1b5_4a32_d192_ed03));
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((x >> 40) as f32) / (1u64 << 24) as f32 - 0.5
    };
    0.05 * (noise(1) + noise(2) + noise(3) + noise(4))
}

/// An F32 model of these tensors.
pub(crate) fn with(tensors: &[Tensor<'_>]) -> Gguf {
    Gguf::from_vec(packed(
        &tensors
            .iter()
            .map(|&(name, dims, x)| (name, dims, TensorType::F32, x))
            .collect::<Vec<_>>(),
        &[],
    ))
    .unwrap()
}

/// The bytes of a model of these tensors, each of its type, with more keys.
pub(crate) fn packed(tensors: &[Packed<'_>], keys: &[(&str, Value)]) -> Vec<u8> {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "deepseek4");
    metadata.set("general.file_type", 0u32);
    metadata.set("general.quantization_version", 2u32);
    metadata.set("deepseek4.block_count", 2u32);
    metadata.set("deepseek4.expert_count", 3u32);
    metadata.set("deepseek4.expert_used_count", 2u32);
    for (key, value) in keys {
        metadata.set(key, value.clone());
    }
    let mut plan = Plan::new(metadata).unwrap();
    for (name, dims, ty, _) in tensors {
        plan.add(name, dims, *ty).unwrap();
    }
    let mut writer = Writer::new(Vec::new(), plan).unwrap();
    let pool = Pool::new(1).unwrap();
    for (name, dims, ty, x) in tensors {
        let n = dims.iter().product::<u64>() as usize;
        let cols = dims[0] as usize;
        if *ty == TensorType::I32 {
            let bytes: Vec<u8> = (0..n).flat_map(|i| (x(i) as i32).to_le_bytes()).collect();
            writer.tensor(name, &bytes).unwrap();
            continue;
        }
        let x: Vec<f32> = (0..n).map(x).collect();
        let mut blocks = vec![0; n / ty.block_len() * ty.block_bytes()];
        let ones = vec![1.0; cols];
        if x.iter().all(|x| x.is_finite()) {
            encode_rows(&pool, *ty, cols, &x, Some(&ones), &mut blocks).unwrap();
        } else {
            blocks = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        }
        writer.tensor(name, &blocks).unwrap();
    }
    writer.finish().unwrap()
}

/// Two layers of everything that a recipe tells apart.
pub(crate) fn source() -> Gguf {
    with(&[
        ("token_embd.weight", &[256, 40], &weight),
        ("output_norm.weight", &[256], &|_| 1.0),
        ("output.weight", &[256, 40], &|i| weight(i + 7)),
        ("output_hc_fn.weight", &[512, 4], &|i| weight(i + 8)),
        ("blk.0.attn_kv.weight", &[256, 64], &|i| weight(i + 9)),
        ("blk.0.attn_q_a.weight", &[256, 32], &|i| weight(i + 10)),
        ("blk.0.attn_q_b.weight", &[32, 64], &|i| weight(i + 11)),
        ("blk.0.attn_sinks.weight", &[4], &weight),
        ("blk.0.ffn_gate_inp.weight", &[256, 3], &weight),
        ("blk.0.ffn_gate_exps.weight", &[256, 256, 3], &|i| {
            weight(i + 12)
        }),
        ("blk.0.ffn_up_exps.weight", &[256, 256, 3], &|i| {
            weight(i + 13)
        }),
        ("blk.0.ffn_down_exps.weight", &[256, 256, 3], &|i| {
            weight(i + 14)
        }),
        ("blk.1.attn_compressor_ape.weight", &[64, 4], &weight),
        ("blk.1.indexer.proj.weight", &[256, 2], &weight),
        ("blk.1.ffn_down_shexp.weight", &[64, 256], &weight),
    ])
}

/// Importance for every matrix of `model`, different for each expert and column, as an older file has it.
pub(crate) fn imatrix(model: &Gguf) -> Imatrix {
    let matrices: Vec<_> = model
        .tensors()
        .iter()
        .filter(|t| t.dims.rows() > 1)
        .collect();
    let mut file = (matrices.len() as i32).to_le_bytes().to_vec();
    for info in matrices {
        let n = info.dims.cols() * info.dims.get(2);
        file.extend((info.name.len() as i32).to_le_bytes());
        file.extend(info.name.as_bytes());
        file.extend(1i32.to_le_bytes());
        file.extend((n as i32).to_le_bytes());
        for i in 0..n {
            file.extend((0.1 + (weight(i as usize * 3) * 20.0).abs()).to_le_bytes());
        }
    }
    file.extend(7i32.to_le_bytes());
    file.extend(4i32.to_le_bytes());
    file.extend(b"text");
    Imatrix::parse(file).unwrap()
}

/// The weights of a tensor.
pub(crate) fn floats(model: &Gguf, name: &str) -> Vec<f32> {
    let tensor = model.tensor(name).unwrap();
    let mut x = vec![0.0; tensor.info.dims.elements() as usize];
    codec(tensor.info.ty)
        .unwrap()
        .decode(tensor.bytes, &mut x)
        .unwrap();
    x
}
