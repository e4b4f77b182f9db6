//! How an engine runs a model.

use ds4_gguf::RocmFp2Layout;
use ds4_quant::Precision;

use crate::arch::deepseek4::CacheRounding;

/// Choices made when a model is opened. [`Options::default`] runs the model on the CPU as its reference engine does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Longest timeline of a session, in tokens; `None` = what the file says.
    pub context: Option<usize>,
    /// Worker threads; 0 = one a core.
    pub threads: usize,
    /// Most tokens of a prompt computed in one step. Larger is faster and needs more memory.
    pub prefill_rows: usize,
    /// Arithmetic of packed weights.
    pub precision: Precision,
    /// Rounding of cached rows.
    pub rounding: CacheRounding,
    /// Layout of tensors with type id 107, when the file does not say and the user knows.
    pub rocmfp2_layout: Option<RocmFp2Layout>,
    /// Rewrite the recorded graph with fused operations; results are the same bits.
    pub fuse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            context: None,
            threads: 0,
            prefill_rows: 512,
            precision: Precision::Fast,
            rounding: CacheRounding::Reference,
            rocmfp2_layout: None,
            fuse: true,
        }
    }
}
