//! `Role`: what a tensor of a model is for, by its name.

use std::fmt;

/// What a tensor is for, by its name. Both dialects of DeepSeek-V4 files and their older spellings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The table of token vectors: one row a token.
    Embedding,
    /// Attention projections, their norms and sinks.
    Attention,
    /// Compressors of the key-value history.
    Compressor,
    /// The indexer that chooses compressed rows, its compressor included.
    Indexer,
    /// Routers, their biases, and tables that route by token.
    Router,
    /// Routed experts: the chosen few are read.
    Experts,
    /// Shared experts and dense feed-forward layers.
    Dense,
    /// Hyper-connections.
    HyperConnections,
    /// The output projection and its norm.
    Output,
    /// Names unknown here; not read when a token is decoded.
    Other,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Embedding,
        Self::Attention,
        Self::Compressor,
        Self::Indexer,
        Self::Router,
        Self::Experts,
        Self::Dense,
        Self::HyperConnections,
        Self::Output,
        Self::Other,
    ];

    /// The role of the tensor called `name` in a model of `layers` layers.
    pub fn of(name: &str, layers: Option<u64>) -> Self {
        let Some((layer, part)) = name
            .strip_prefix("blk.")
            .and_then(|rest| rest.split_once('.'))
        else {
            return match name {
                "token_embd.weight" => Self::Embedding,
                _ if name.starts_with("output_hc_") || name.starts_with("hc_head_") => {
                    Self::HyperConnections
                }
                "output.weight" | "output_norm.weight" => Self::Output,
                _ => Self::Other,
            };
        };
        let in_model = layer
            .parse::<u64>()
            .is_ok_and(|layer| layers.is_none_or(|count| layer < count));
        match part {
            _ if !in_model => Self::Other,
            _ if part.starts_with("hc_") => Self::HyperConnections,
            _ if part.starts_with("attn_compress") => Self::Compressor,
            _ if part.starts_with("attn_") => Self::Attention,
            _ if part.starts_with("indexer") => Self::Indexer,
            _ if part.starts_with("ffn_gate_inp")
                || part.starts_with("ffn_gate_tid2eid")
                || part.starts_with("exp_probs_b") =>
            {
                Self::Router
            }
            _ if part.contains("_exps.") => Self::Experts,
            _ if part.starts_with("ffn_") => Self::Dense,
            _ => Self::Other,
        }
    }

    /// In words; recipes spell it so.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Attention => "attention",
            Self::Compressor => "compressor",
            Self::Indexer => "indexer",
            Self::Router => "router",
            Self::Experts => "routed experts",
            Self::Dense => "shared experts",
            Self::HyperConnections => "hyper-connections",
            Self::Output => "output",
            Self::Other => "other",
        }
    }

    /// The role called `name`, as [`Self::name`] spells it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn both_dialects_and_older_spellings_have_roles() {
        for (name, role) in [
            ("token_embd.weight", Role::Embedding),
            ("output_hc_fn.weight", Role::HyperConnections),
            ("hc_head_fn.weight", Role::HyperConnections),
            ("blk.2.attn_compressor_kv.weight", Role::Compressor),
            ("blk.2.attn_compress_kv.weight", Role::Compressor),
            ("blk.2.indexer_compressor_ape.weight", Role::Indexer),
            ("blk.2.indexer.compress_ape.weight", Role::Indexer),
            ("blk.2.indexer.proj.weight", Role::Indexer),
            ("blk.2.attn_kv_latent.weight", Role::Attention),
            ("blk.2.exp_probs_b.bias", Role::Router),
            ("blk.2.ffn_gate_up_exps.weight", Role::Experts),
            ("blk.2.ffn_down_shexp.weight", Role::Dense),
            ("blk.43.ffn_down_exps.weight", Role::Other),
            ("mtp.0.attn_kv.weight", Role::Other),
        ] {
            assert_eq!(Role::of(name, Some(43)), role, "{name}");
        }
    }

    #[test]
    fn names_lead_back() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(Role::from_name("experts"), None);
    }
}
