//! The demo model's checkpoint from its two parts.
//!
//! `dense.safetensors` has everything but the routed experts, in half precision and under the names of transformers.
//! `experts_blocks.safetensors` has the experts as the blocks that they were trained on, `[experts, rows, bytes]`, each under
//! the name of its tensor and `.iq2_xxs` or `.q2_k`. The checkpoint has the weights that the blocks stand for, rounded
//! to half precision.
//!
//! Safetensors are read and written here once more, because `ds4_model::convert` has a reader alone, and to itself: it hands
//! out a GGUF's tensors in rows, of files that fit no memory and that nobody vouches for. These parts are small, our
//! own, and read whole.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use ds4_gguf::TensorType;
use half::f16;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A tensor: its line of the header, and its bytes.
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Line {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// Write the checkpoint of the parts in `source` into `folder`.
pub(super) fn assemble(source: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut tensors = read(&source.join("dense.safetensors"))?;
    for (name, blocks) in read(&source.join("experts_blocks.safetensors"))? {
        let (name, ty) = name
            .rsplit_once('.')
            .with_context(|| format!("{name} has no type"))?;
        let ty = match ty {
            "iq2_xxs" => TensorType::Iq2Xxs,
            "q2_k" => TensorType::Q2K,
            other => bail!("{name}: blocks of type {other}"),
        };
        let tensor = decode(ty, &blocks).with_context(|| name.to_owned())?;
        match tensors.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = tensor,
            None => tensors.push((name.to_owned(), tensor)),
        }
    }
    write(&folder.join("model.safetensors"), &tensors)?;
    for file in ["config.json", "tokenizer.json"] {
        fs::copy(source.join(file), folder.join(file))
            .with_context(|| source.join(file).display().to_string())?;
    }
    Ok(())
}

/// The weights of blocks in half precision.
fn decode(ty: TensorType, blocks: &Tensor) -> Result<Tensor> {
    let codec = ds4_quant::codec(ty).context("no codec")?;
    let mut weights = vec![0.0; blocks.bytes.len() / ty.block_bytes() * ty.block_len()];
    codec.decode(&blocks.bytes, &mut weights)?;
    let mut shape = blocks.shape.clone();
    let cols = shape.last_mut().context("no rows")?;
    *cols = *cols / ty.block_bytes() * ty.block_len();
    let halves = weights.into_iter().map(f16::from_f32);
    Ok(Tensor {
        dtype: "F16".to_owned(),
        shape,
        bytes: halves.flat_map(f16::to_le_bytes).collect(),
    })
}

fn read(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let file = fs::read(path).with_context(|| path.display().to_string())?;
    let (size, rest) = file
        .split_first_chunk()
        .with_context(|| format!("{} is too short", path.display()))?;
    let size = usize::try_from(u64::from_le_bytes(*size))?;
    ensure!(size <= rest.len(), "{} is cut short", path.display());
    let (header, data) = rest.split_at(size);
    let header: Map<String, Value> =
        serde_json::from_slice(header).with_context(|| path.display().to_string())?;
    let mut tensors = Vec::new();
    for (name, line) in header {
        if name == "__metadata__" {
            continue;
        }
        let line: Line = serde_json::from_value(line).with_context(|| name.clone())?;
        let [start, end] = line.data_offsets;
        let bytes = data
            .get(start..end)
            .with_context(|| format!("{name} is not within {}", path.display()))?;
        tensors.push((
            name,
            Tensor {
                dtype: line.dtype,
                shape: line.shape,
                bytes: bytes.to_vec(),
            },
        ));
    }
    Ok(tensors)
}

fn write(path: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), json!({ "format": "pt" }));
    let mut at = 0;
    for (name, tensor) in tensors {
        let end = at + tensor.bytes.len();
        let line =
            json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, end] });
        header.insert(name.clone(), line);
        at = end;
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    for (_, tensor) in tensors {
        file.extend_from_slice(&tensor.bytes);
    }
    fs::write(path, file).with_context(|| path.display().to_string())
}
