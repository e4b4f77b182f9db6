//! Tensor names: the one spelling both living dialects share, and the older one some community files carry.
//!
//! Source of the older names: ikawrakow/ik_llama.cpp:src/llama-load-tensors.cpp and antirez/ds4 pull request 662.

/// Suffixes of older files, newest spelling first. Applied after `blk.N.` or to the whole name.
const ALIASES: &[(&str, &[&str])] = &[
    ("attn_compressor_kv.weight", &["attn_compress_kv.weight"]),
    (
        "attn_compressor_gate.weight",
        &["attn_compress_gate.weight"],
    ),
    (
        "attn_compressor_ape.weight",
        &[
            "attn_compress_ape.weight",
            "attn_compressor_ape",
            "attn_compress_ape",
        ],
    ),
    (
        "attn_compressor_norm.weight",
        &["attn_compress_norm.weight"],
    ),
    (
        "indexer_compressor_kv.weight",
        &["indexer.compress_kv.weight"],
    ),
    (
        "indexer_compressor_gate.weight",
        &["indexer.compress_gate.weight"],
    ),
    (
        "indexer_compressor_ape.weight",
        &["indexer.compress_ape.weight"],
    ),
    (
        "indexer_compressor_norm.weight",
        &["indexer.compress_norm.weight"],
    ),
    (
        "attn_kv.weight",
        &["attn_kv_latent.weight", "attn_kv_a_mqa.weight"],
    ),
    ("output_hc_fn.weight", &["hc_head_fn.weight"]),
    ("output_hc_base.weight", &["hc_head_base.weight"]),
    ("output_hc_scale.weight", &["hc_head_scale.weight"]),
    ("exp_probs_b.bias", &["exp_probs_b.weight"]),
];

/// Every name a tensor may have, preferred first.
///
/// * `name`: a full name such as `blk.3.attn_kv.weight`
pub(crate) fn spellings(name: &str) -> impl Iterator<Item = String> {
    let (prefix, suffix) = match name
        .strip_prefix("blk.")
        .and_then(|rest| rest.split_once('.'))
    {
        Some((layer, suffix)) => (format!("blk.{layer}."), suffix),
        None => (String::new(), name),
    };
    let older = ALIASES
        .iter()
        .find(|(new, _)| *new == suffix)
        .map_or(&[][..], |(_, old)| old);
    let older: Vec<String> = older.iter().map(|old| format!("{prefix}{old}")).collect();
    std::iter::once(name.to_owned()).chain(older)
}

#[cfg(test)]
mod tests {
    use super::spellings;

    #[test]
    fn older_names_keep_their_layer() {
        let names: Vec<String> = spellings("blk.12.attn_kv.weight").collect();
        assert_eq!(
            names,
            [
                "blk.12.attn_kv.weight",
                "blk.12.attn_kv_latent.weight",
                "blk.12.attn_kv_a_mqa.weight"
            ]
        );
    }

    #[test]
    fn a_name_without_aliases_is_itself() {
        assert_eq!(
            spellings("output.weight").collect::<Vec<_>>(),
            ["output.weight"]
        );
    }
}
