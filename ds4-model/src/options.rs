//! How an engine runs a model.

use ds4_gguf::RocmFp2Layout;
use ds4_quant::Precision;

use crate::arch::deepseek4::CacheRounding;

/// Choices made when a model is opened. [`Options::default`] runs the model on the CPU as its reference engine does.
///
/// ```
/// let mut options = ds4_model::Options::default();
/// options.threads = 8;
/// options.context = Some(32_768);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Longest timeline of a session, in tokens, at least 1. `None` (the default), or more than the file says: what the
    /// file says. [`Engine::context`](crate::Engine::context) has the result.
    pub context: Option<usize>,
    /// Worker threads; 0 (the default) = one a core.
    pub threads: usize,
    /// Most tokens of a prompt computed in one step, at least 1; 512 by default. Larger is faster and needs more memory.
    pub prefill_rows: usize,
    /// Arithmetic of packed weights; [`Precision::Fast`] by default.
    pub precision: Precision,
    /// Rounding of cached rows; [`CacheRounding::Reference`] by default.
    pub rounding: CacheRounding,
    /// Layout of tensors with type id 107, whatever the file says; by default the file decides. Only
    /// [`Engine::open`](crate::Engine::open) looks at it.
    pub rocmfp2_layout: Option<RocmFp2Layout>,
    /// Rewrite the recorded graph with fused operations; results are the same bits. On by default.
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
