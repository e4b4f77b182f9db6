//! AVX-512 with VNNI: tiles of sixteen matrix rows for many rows of activations, 64 codes a register for few.
//!
//! A tile is two of the AVX2 ones side by side, so every format comes with what it has there. Blocks of 32 weights meet
//! few rows of activations in AVX2: they wait for memory, not for instructions.

mod few;
mod many;

use ds4_gguf::TensorType;

use super::avx2::{self, MANY, Small, Super, kernel_of_type};
use super::{Kernel, tile};
use crate::{Activations, Matrix};

/// Whether the processor has the instructions used here, beside those of AVX2.
pub(super) fn usable() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
}

/// The kernel of a type, if it has one of its own here.
pub(super) fn kernel(ty: TensorType) -> Option<Kernel> {
    kernel_of_type!(ty, small, super_)
}

/// Any number of rows of activations with a matrix of 32-weight blocks.
fn small<B: Small>(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    if y.len() < MANY {
        return avx2::small::<B>(w, x, y);
    }
    // SAFETY: a kernel is handed out only where the processor has these features.
    unsafe { tile::rows::<many::SmallPair<B>, 16, 8>(w, |t| x.q8_0(t), y) }
}

/// Any number of rows of activations with a matrix of 256-weight blocks.
fn super_<B: Super>(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    if y.len() < MANY {
        // SAFETY: a kernel is handed out only where the processor has these features.
        return unsafe { avx2::few::super_::<B, few::Avx512>(w, |t| x.q8_k(t), y) };
    }
    // SAFETY: a kernel is handed out only where the processor has these features.
    unsafe { tile::rows::<many::SuperPair<B>, 16, 8>(w, |t| x.q8_k(t), y) }
}
