//! The tensors of a DeepSeek-V4 trunk, by role.

use ds4_gguf::Gguf;

use super::load::Loader;
use super::{MatrixId, TableId, VectorId, Weights, WeightsError};
use crate::config::{Config, Ratio};

/// One set of hyper-connection weights (N streams, `M = 2N + N²`).
#[derive(Clone, Copy, Debug)]
pub struct Hyper {
    /// `[M, N·D]`
    pub mix: MatrixId,
    /// `[3]`: pre, post, comb
    pub scale: VectorId,
    /// `[M]`
    pub base: VectorId,
}

/// One compressor; `w = halves · dim`.
#[derive(Clone, Copy, Debug)]
pub struct Compressor {
    /// `[w, D]`
    pub kv: MatrixId,
    /// `[w, D]`
    pub gate: MatrixId,
    /// Position embedding of the gate, `[ratio, w]`
    pub ape: VectorId,
    /// `[dim]`
    pub norm: VectorId,
}

/// The learned indexer of a ratio-4 layer.
#[derive(Clone, Copy, Debug)]
pub struct Indexer {
    /// `[index_heads · index_dim, q_rank]`
    pub q_b: MatrixId,
    /// Weight of each head, `[index_heads, D]`
    pub head_weights: MatrixId,
    /// Its own compressor, at `index_dim`.
    pub compressor: Compressor,
}

/// How a layer picks experts.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// Table over token ids, `[vocab, experts_used]`.
    Hash(TableId),
    /// Highest score plus bias `[experts]`; no bias in some files.
    TopK(Option<VectorId>),
}

/// Weights of one decoder block.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Hyper-connection around attention.
    pub attn_hc: Hyper,
    /// Hyper-connection around the experts.
    pub ffn_hc: Hyper,
    /// `[D]`
    pub attn_norm: VectorId,
    /// `[q_rank, D]`
    pub q_a: MatrixId,
    /// `[q_rank]`
    pub q_a_norm: VectorId,
    /// `[H · d, q_rank]`
    pub q_b: MatrixId,
    /// `[d, D]`
    pub kv: MatrixId,
    /// `[d]`
    pub kv_norm: VectorId,
    /// `[H]`
    pub sinks: VectorId,
    /// `[G · rank, H · d / G]`: rows of group g apply to the heads of group g
    pub out_a: MatrixId,
    /// `[D, G · rank]`
    pub out_b: MatrixId,
    /// Compressor of the attention, when the layer has one.
    pub compressor: Option<Compressor>,
    /// Indexer, on ratio-4 layers.
    pub indexer: Option<Indexer>,
    /// `[D]`
    pub ffn_norm: VectorId,
    /// `[E, D]`
    pub router: MatrixId,
    /// How experts are picked.
    pub selection: Selection,
    /// `[E, F, D]`
    pub gate_experts: MatrixId,
    /// `[E, F, D]`
    pub up_experts: MatrixId,
    /// `[E, D, F]`
    pub down_experts: MatrixId,
    /// `[S, D]`
    pub gate_shared: MatrixId,
    /// `[S, D]`
    pub up_shared: MatrixId,
    /// `[D, S]`
    pub down_shared: MatrixId,
}

/// Handles of a whole trunk.
#[derive(Clone, Debug)]
pub struct Model {
    /// `[V, D]`
    pub embedding: MatrixId,
    /// Decoder blocks.
    pub layers: Vec<Layer>,
    /// Collapse before the head: `mix [N, N·D]`, `scale [1]`, `base [N]`.
    pub head_hc: Hyper,
    /// `[D]`
    pub output_norm: VectorId,
    /// `[V, D]`
    pub output: MatrixId,
}

impl Model {
    /// Find and check every tensor of the trunk in `gguf`.
    ///
    /// # Errors
    /// [`WeightsError`] lists all missing, misshapen and undecodable tensors at once.
    pub fn load(gguf: &Gguf, c: &Config) -> Result<(Self, Weights), WeightsError> {
        let mut t = Loader::new(gguf);
        let streams = c.streams * c.dim;
        let embedding = t.matrix("token_embd.weight", c.vocab, c.dim);
        let layers = (0..c.layers).map(|l| Layer::load(&mut t, c, l)).collect();
        let head_hc = Hyper {
            mix: t.matrix("output_hc_fn.weight", c.streams, streams),
            scale: t.vector("output_hc_scale.weight", &[1]),
            base: t.vector("output_hc_base.weight", &[c.streams]),
        };
        let output_norm = t.vector("output_norm.weight", &[c.dim]);
        let output = t.matrix("output.weight", c.vocab, c.dim);
        Ok((
            Model {
                embedding,
                layers,
                head_hc,
                output_norm,
                output,
            },
            t.finish()?,
        ))
    }
}

impl Layer {
    fn load(t: &mut Loader<'_>, c: &Config, layer: usize) -> Self {
        let name = |suffix: &str| format!("blk.{layer}.{suffix}");
        let (dim, width) = (c.dim, c.expert_width);
        let ratio = c.ratios[layer];
        let compressor = (ratio != Ratio::None)
            .then(|| Compressor::load(t, &name("attn_compressor"), ratio, c.head_dim, dim));
        let indexer = (ratio == Ratio::Four).then(|| Indexer {
            q_b: t.matrix(
                &name("indexer.attn_q_b.weight"),
                c.index_heads * c.index_dim,
                c.q_rank,
            ),
            head_weights: t.matrix(&name("indexer.proj.weight"), c.index_heads, dim),
            compressor: Compressor::load(t, &name("indexer_compressor"), ratio, c.index_dim, dim),
        });
        let bias = name("exp_probs_b.bias");
        let selection = if layer < c.hash_layers {
            t.ignore(&bias);
            Selection::Hash(t.table(
                &name("ffn_gate_tid2eid.weight"),
                c.vocab,
                c.experts_used,
                c.experts,
            ))
        } else {
            Selection::TopK(t.optional_vector(&bias, &[c.experts]))
        };
        Layer {
            attn_hc: Hyper::load(t, c, &name("hc_attn")),
            ffn_hc: Hyper::load(t, c, &name("hc_ffn")),
            attn_norm: t.vector(&name("attn_norm.weight"), &[dim]),
            q_a: t.matrix(&name("attn_q_a.weight"), c.q_rank, dim),
            q_a_norm: t.vector(&name("attn_q_a_norm.weight"), &[c.q_rank]),
            q_b: t.matrix(&name("attn_q_b.weight"), c.heads * c.head_dim, c.q_rank),
            kv: t.matrix(&name("attn_kv.weight"), c.head_dim, dim),
            kv_norm: t.vector(&name("attn_kv_a_norm.weight"), &[c.head_dim]),
            sinks: t.vector(&name("attn_sinks.weight"), &[c.heads]),
            out_a: t.matrix(
                &name("attn_output_a.weight"),
                c.out_groups * c.out_rank,
                c.heads * c.head_dim / c.out_groups,
            ),
            out_b: t.matrix(
                &name("attn_output_b.weight"),
                dim,
                c.out_groups * c.out_rank,
            ),
            compressor,
            indexer,
            ffn_norm: t.vector(&name("ffn_norm.weight"), &[dim]),
            router: t.matrix(&name("ffn_gate_inp.weight"), c.experts, dim),
            selection,
            gate_experts: t.stack(&name("ffn_gate_exps.weight"), width, dim, c.experts),
            up_experts: t.stack(&name("ffn_up_exps.weight"), width, dim, c.experts),
            down_experts: t.stack(&name("ffn_down_exps.weight"), dim, width, c.experts),
            gate_shared: t.matrix(&name("ffn_gate_shexp.weight"), c.shared_width, dim),
            up_shared: t.matrix(&name("ffn_up_shexp.weight"), c.shared_width, dim),
            down_shared: t.matrix(&name("ffn_down_shexp.weight"), dim, c.shared_width),
        }
    }
}

impl Hyper {
    fn load(t: &mut Loader<'_>, c: &Config, prefix: &str) -> Self {
        let mixed = 2 * c.streams + c.streams * c.streams;
        Hyper {
            mix: t.matrix(&format!("{prefix}_fn.weight"), mixed, c.streams * c.dim),
            scale: t.vector(&format!("{prefix}_scale.weight"), &[3]),
            base: t.vector(&format!("{prefix}_base.weight"), &[mixed]),
        }
    }
}

impl Compressor {
    fn load(t: &mut Loader<'_>, prefix: &str, ratio: Ratio, dim: usize, hidden: usize) -> Self {
        let width = ratio.halves() * dim;
        Compressor {
            kv: t.matrix(&format!("{prefix}_kv.weight"), width, hidden),
            gate: t.matrix(&format!("{prefix}_gate.weight"), width, hidden),
            ape: t.vector(
                &format!("{prefix}_ape.weight"),
                &[width, ratio.tokens() as usize],
            ),
            norm: t.vector(&format!("{prefix}_norm.weight"), &[dim]),
        }
    }
}
