//! What `config.json` says of each layer: how it compresses its past, and whether a table routes its tokens.
//!
//! The published checkpoints have numbers (`compress_ratios`, `num_hash_layers`), newer huggingface/transformers names of
//! kinds (`layer_types`, `mlp_layer_types`).

use serde_json::Value as Json;

use super::settings::Settings;

/// Layers from the first on whose tokens are routed by a table.
pub(super) fn hashed(settings: &mut Settings<'_>) -> u32 {
    const FIELD: &str = "mlp_layer_types";
    let found = settings.at(FIELD);
    let listed = found.map(|found| {
        let kinds = found.as_array().map_or(&[][..], Vec::as_slice);
        let count = kinds.iter().take_while(|kind| *kind == "hash_moe").count();
        let rest = kinds[count..].iter().all(|kind| kind == "moe");
        if !found.is_array() || !rest {
            let expected = "a list of hash_moe, then of moe";
            settings.problem(FIELD, Some(found), expected);
        }
        count as u32
    });
    let number = settings.at("num_hash_layers");
    match listed {
        Some(listed) if number.is_none() => listed,
        _ => {
            let layers = settings.size("num_hash_layers");
            if let Some(listed) = listed.filter(|&listed| listed != layers) {
                settings.wrong(format!(
                    "{FIELD} has {listed} layers of hash_moe; num_hash_layers is {layers}"
                ));
            }
            layers
        }
    }
}

/// Tokens an entry of each layer, 0 for layers without compression; lists may be longer than the trunk.
pub(super) fn ratios(settings: &mut Settings<'_>) -> Vec<i32> {
    let listed = settings
        .at("layer_types")
        .map(|found| by_kind(settings, found));
    let given = settings.at("compress_ratios");
    match listed {
        Some(listed) if given.is_none() => listed,
        _ => {
            let ratios = given.and_then(numbers).unwrap_or_else(|| {
                settings.problem("compress_ratios", given, "a list of whole numbers");
                Vec::new()
            });
            let differ = |(listed, ratio): (&i32, &i32)| listed != ratio;
            let layer = listed.iter().flatten().zip(&ratios).position(differ);
            if let Some(layer) = layer {
                let ratio = ratios[layer];
                settings.wrong(format!(
                    "layer_types and compress_ratios differ at layer {layer}, of ratio {ratio}"
                ));
            }
            ratios
        }
    }
}

fn numbers(list: &Json) -> Option<Vec<i32>> {
    list.as_array()?
        .iter()
        .map(|n| i32::try_from(n.as_i64()?).ok())
        .collect()
}

fn by_kind(settings: &mut Settings<'_>, list: &Json) -> Vec<i32> {
    let Some(kinds) = list.as_array() else {
        settings.problem("layer_types", Some(list), "a list of kinds of attention");
        return Vec::new();
    };
    let mut ratio = |kind: &Json| match kind.as_str() {
        Some("sliding_attention") => 0,
        Some("compressed_sparse_attention") => 4,
        Some("heavily_compressed_attention") => 128,
        _ => {
            settings.problem("layer_types", Some(kind), "a known kind of attention");
            0
        }
    };
    kinds.iter().map(&mut ratio).collect()
}
