//! The keys that say how a file was quantized, as llama.cpp writes them.
//!
//! ```text
//! general.quantization_version       u32     2
//! general.file_type                  u32     the recipe, as a number of `llama_ftype`
//! quantize.imatrix.file              string  the importance file
//! quantize.imatrix.dataset           string  the text that it was measured on
//! quantize.imatrix.entries_count     u32     matrices in it
//! quantize.imatrix.chunks_count      u32     pieces of text
//! ```
//! Sources: ggml-org/llama.cpp:include/llama.h (`llama_ftype`), tools/quantize, src/llama-quant.cpp; the ROCmFPX forks
//! for numbers from 100 up, two of which mean two things each: no reader may derive a layout from them.

use std::collections::HashMap;

use ds4_gguf::{Metadata, RocmFp2Layout, TensorType};

use super::Importance;

/// `GGML_QNT_VERSION`.
const VERSION: u32 = 2;

/// `general.file_type` of a file whose largest part is of this type; `None` where no number is agreed on.
pub(crate) fn file_type(ty: TensorType) -> Option<u32> {
    Some(match ty {
        TensorType::F32 => 0,
        TensorType::F16 => 1,
        TensorType::Q4_0 => 2,
        TensorType::Q8_0 => 7,
        TensorType::Q2K => 10,
        TensorType::Q3K => 12,
        TensorType::Q4K => 15,
        TensorType::Q5K => 17,
        TensorType::Q6K => 18,
        TensorType::Iq2Xxs => 19,
        TensorType::Iq2Xs => 20,
        TensorType::Iq3Xxs => 23,
        TensorType::Iq4Nl => 25,
        TensorType::Iq3S => 26,
        TensorType::Iq2S => 28,
        TensorType::Iq4Xs => 30,
        TensorType::Bf16 => 32,
        TensorType::Mxfp4 => 38,
        TensorType::RocmFp4 => 100,
        TensorType::RocmFp4Fast => 103,
        TensorType::RocmFp6 => 110,
        TensorType::RocmFp8 => 111,
        TensorType::RocmFp3 => 112,
        TensorType::RocmFp2TwoScale | TensorType::RocmI4 => 118,
        TensorType::RocmFp2S40 => 119,
        _ => return None,
    })
}

/// The type that most weights have. `tensors`: type and number of weights.
pub(crate) fn largest(tensors: impl Iterator<Item = (TensorType, u64)>) -> Option<TensorType> {
    let mut weights: HashMap<TensorType, u64> = HashMap::new();
    for (ty, count) in tensors {
        let sum = weights.entry(ty).or_default();
        *sum = sum.saturating_add(count);
    }
    weights
        .into_iter()
        .max_by_key(|&(ty, count)| (count, ty.id()))
        .map(|(ty, _)| ty)
}

/// Set the keys of a file that is about to have these tensors. `general.file_type` is taken out where no number says
/// what it is.
pub(crate) fn update(
    metadata: &mut Metadata,
    tensors: impl Iterator<Item = (TensorType, u64)> + Clone,
    importance: Option<&Importance<'_>>,
) {
    name_layout(metadata, tensors.clone().map(|(ty, _)| ty));
    for (key, value) in changes(tensors, importance) {
        match value {
            Some(value) => drop(metadata.set(key, value)),
            None => drop(metadata.remove(key)),
        }
    }
}

/// Take out the name of a layout of id 107 that no tensor has any more; the planner names the one that is left.
pub(crate) fn name_layout(metadata: &mut Metadata, mut types: impl Iterator<Item = TensorType>) {
    let named = metadata
        .find::<&str>(RocmFp2Layout::KEY)
        .and_then(RocmFp2Layout::from_name);
    if !types.any(|ty| ty.rocmfp2_layout().is_some() && ty.rocmfp2_layout() == named) {
        metadata.remove(RocmFp2Layout::KEY);
    }
}

/// The keys to set, or to take out, most useful first.
pub(crate) fn changes(
    tensors: impl Iterator<Item = (TensorType, u64)>,
    importance: Option<&Importance<'_>>,
) -> Vec<(&'static str, Option<ds4_gguf::Value>)> {
    let file_type = largest(tensors).and_then(file_type);
    let mut changes = vec![
        ("general.file_type", file_type.map(Into::into)),
        ("general.quantization_version", Some(VERSION.into())),
    ];
    if let Some(importance) = importance {
        let matrix = importance.matrix;
        let entries = u32::try_from(matrix.len()).unwrap_or(u32::MAX);
        changes.extend([
            ("quantize.imatrix.file", Some(importance.file.into())),
            ("quantize.imatrix.entries_count", Some(entries.into())),
        ]);
        changes.extend(
            matrix
                .chunks()
                .map(|n| ("quantize.imatrix.chunks_count", Some(n.into()))),
        );
        changes.extend(
            matrix
                .datasets()
                .first()
                .map(|text| ("quantize.imatrix.dataset", Some(text.as_str().into()))),
        );
    }
    changes
}
