//! The header that the finished model gets, in the room that the old one leaves.

use ds4_gguf::{Gguf, Metadata, Plan, TensorType};

use super::RequantError;
use crate::quantize::{Importance, Quantize, QuantizeError, metadata};

/// The new header, at most `room` bytes, and the keys that there was no room for.
pub(super) fn build(
    source: &Gguf,
    decided: &Quantize<'_>,
    importance: Option<Importance<'_>>,
    room: u64,
) -> Result<(Vec<u8>, Vec<&'static str>), RequantError> {
    let whole = |metadata: Metadata| -> Result<Vec<u8>, QuantizeError> {
        let mut plan = Plan::new(metadata)?;
        for t in decided.tensors() {
            plan.add(&t.info.name, t.info.dims.as_slice(), t.info.ty)?;
        }
        Ok(plan.header()?)
    };
    let complete = whole(decided.metadata().clone())?;
    if complete.len() as u64 <= room {
        return Ok((complete, Vec::new()));
    }
    // Key by key, the most useful first; one that the old header has already needs no room, or little.
    let types: Vec<(TensorType, u64)> = decided
        .tensors()
        .iter()
        .map(|t| (t.info.ty, t.info.dims.elements()))
        .collect();
    let mut metadata = source.metadata().clone();
    metadata::name_layout(&mut metadata, types.iter().map(|(ty, _)| *ty));
    let mut header = whole(metadata.clone())?;
    let mut unrecorded = Vec::new();
    for (key, value) in metadata::changes(types.iter().copied(), importance.as_ref()) {
        let mut with = metadata.clone();
        match value {
            Some(value) => drop(with.set(key, value)),
            None => drop(with.remove(key)),
        }
        let longer = whole(with.clone())?;
        if longer.len() as u64 <= room {
            (metadata, header) = (with, longer);
        } else {
            unrecorded.push(key);
        }
    }
    if header.len() as u64 > room {
        return Err(RequantError::HeaderRoom {
            need: header.len() as u64,
            room,
        });
    }
    Ok((header, unrecorded))
}
