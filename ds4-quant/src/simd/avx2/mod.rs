//! AVX2: one file a format, which expands packed blocks to bytes in registers; the loops over them are generic.
//!
//! A format's codes come in one of two kinds. *Unsigned* codes are 0..=127 with an offset that is taken off again
//! by way of the sums of the activations: `Σ(q + o)·x − o·Σx`. *Signed* codes pay one more instruction a register.
//! Either way the integers are exact, so nothing here decides the bits of a result ([`crate::accumulate`] does).

pub(super) mod few;
pub(super) mod many;
mod quantize;
pub(in crate::simd) mod reg;

mod k_quants;
mod lattice;
mod nibbles;
mod q2_k;
mod q8_0;
mod rocm;

use std::arch::x86_64::{__m256, __m256i, _mm256_setzero_si256};

use ds4_gguf::TensorType;

use super::{Kernel, tile};
use crate::format::packed::Block;
use crate::{Activations, Matrix};

/// How codes stand in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Codes {
    /// 0..=127.
    Unsigned,
    /// −128..=127.
    Signed,
}

/// What is taken off a sum of products over 256 weights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Correction {
    None,
    /// `Σ min·Σx` as an integer: codes are stored with an offset, `min` is offset · scale.
    Offset,
    /// `dmin · Σ min·Σx`: the format has minima.
    Minimum,
}

/// Scales and minima of 256 weights.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    /// 16 words: scales of weights 32c..32c+16 for c = 0..8, then of weights 32c+16..32c+32.
    pub(super) scale: __m256i,
    /// 16 words in the order of the weights.
    pub(super) min: __m256i,
}

/// Blocks of 256 weights.
pub(super) trait Super: Block {
    const CODES: Codes;
    const CORRECTION: Correction;
    /// A power of two that belongs to `d`.
    const FACTOR: f32 = 1.0;

    /// Of formats with signs apart from the codes: a code c with a minus sign stands as `2·MIRROR − c`; else 0.
    const MIRROR: i16 = 0;

    /// How many sums of pairs of products fit a word; a divisor of 4.
    const SPAN: usize;
    /// What the codes of all chunks need.
    type Open;

    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn open(&self) -> Self::Open;

    /// Codes of weights 32C..32C+32.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn codes<const C: usize>(&self, open: &Self::Open) -> __m256i;

    /// [`Super::codes`] before their signs are looked at.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn points<const C: usize>(&self, open: &Self::Open) -> __m256i {
        // SAFETY: this function has the same contract.
        unsafe { self.codes::<C>(open) }
    }

    /// 256 bits in the order of the weights: where a sign is minus.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn minus(_: &Self::Open) -> __m256i {
        _mm256_setzero_si256()
    }

    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn parts(&self) -> Parts;

    /// Half float before the scales.
    fn d(&self) -> [u8; 2];

    /// Half float before the minima.
    fn dmin(&self) -> [u8; 2] {
        [0; 2]
    }
}

/// Scales of eight times 32 weights.
#[derive(Clone, Copy)]
pub(super) enum Scales {
    /// One scale for 32 weights.
    One(__m256),
    /// One for the first 16 of each, one for the last.
    Halves(__m256, __m256),
    /// One for 32 weights, and what is subtracted from each.
    Affine(__m256, __m256),
}

/// Blocks of 32 weights, or a small multiple.
pub(super) trait Small: Block {
    const CODES: Codes;
    /// What is to be taken off every code.
    const OFFSET: i16 = 0;
    /// Whether each half of a block has its own scale.
    const HALVES: bool = false;
    /// Whether a block has an offset that is subtracted.
    const AFFINE: bool = false;
    /// How many sums of pairs of products fit a word; a divisor of 4.
    const SPAN: usize;

    /// Codes of the `k`-th 32 weights of a group of 256.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn codes(group: &[Self], k: usize) -> __m256i;

    /// Scales of a group of 256 weights.
    ///
    /// # Safety
    /// The processor has AVX2, FMA and F16C.
    unsafe fn scales(group: &[Self]) -> Scales;
}

/// The kernels of all types that have registers here, by the names of the functions for the two kinds of blocks.
macro_rules! kernel_of_type {
    ($ty:expr, $small:ident, $super:ident) => {{
        use crate::format::{
            iq2_s::BlockIq2S, iq2_xs::BlockIq2Xs, iq2_xxs::BlockIq2Xxs, iq3_s::BlockIq3S,
            iq3_xxs::BlockIq3Xxs, iq4_nl::BlockIq4Nl, iq4_xs::BlockIq4Xs, mxfp4::BlockMxfp4,
            nvfp4::BlockNvfp4, q2_k::BlockQ2K, q3_k::BlockQ3K, q4_0::BlockQ4_0, q4_k::BlockQ4K,
            q5_k::BlockQ5K, q6_k::BlockQ6K, q8_0::BlockQ8_0, rocmfp2::BlockAffine,
            rocmfp2::BlockS40, rocmfp2::BlockTwoScale, rocmfp3::BlockRocmFp3,
            rocmfp4::BlockRocmFp4, rocmfp4::BlockRocmFp4Fast, rocmfp6::BlockRocmFp6,
            rocmfp8::BlockRocmFp8, rocmi4::BlockRocmI4,
        };
        Some(match $ty {
            TensorType::Q4_0 => $small::<BlockQ4_0>,
            TensorType::Q8_0 => $small::<BlockQ8_0>,
            TensorType::Iq4Nl => $small::<BlockIq4Nl>,
            TensorType::Mxfp4 => $small::<BlockMxfp4>,
            TensorType::Nvfp4 => $small::<BlockNvfp4>,
            TensorType::RocmFp2S40 => $small::<BlockS40>,
            TensorType::RocmFp2TwoScale => $small::<BlockTwoScale>,
            TensorType::RocmFp2Affine => $small::<BlockAffine>,
            TensorType::RocmFp3 => $small::<BlockRocmFp3>,
            TensorType::RocmFp4 => $small::<BlockRocmFp4>,
            TensorType::RocmFp4Fast => $small::<BlockRocmFp4Fast>,
            TensorType::RocmFp6 => $small::<BlockRocmFp6>,
            TensorType::RocmFp8 => $small::<BlockRocmFp8>,
            TensorType::RocmI4 => $small::<BlockRocmI4>,
            TensorType::Q2K => $super::<BlockQ2K>,
            TensorType::Q3K => $super::<BlockQ3K>,
            TensorType::Q4K => $super::<BlockQ4K>,
            TensorType::Q5K => $super::<BlockQ5K>,
            TensorType::Q6K => $super::<BlockQ6K>,
            TensorType::Iq2Xxs => $super::<BlockIq2Xxs>,
            TensorType::Iq2Xs => $super::<BlockIq2Xs>,
            TensorType::Iq2S => $super::<BlockIq2S>,
            TensorType::Iq3Xxs => $super::<BlockIq3Xxs>,
            TensorType::Iq3S => $super::<BlockIq3S>,
            TensorType::Iq4Xs => $super::<BlockIq4Xs>,
            _ => return None,
        })
    }};
}
pub(super) use kernel_of_type;

/// The kernel of a type, if it has one of its own here.
pub(super) fn kernel(ty: TensorType) -> Option<Kernel> {
    kernel_of_type!(ty, small, super_)
}

/// Rows of activations to groups of 32.
pub(super) fn quantize_q8_0(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    // SAFETY: handed out only where the processor has these features.
    unsafe { quantize::q8_0(x, codes, scales, sums) }
}

/// Rows of activations to groups of 256.
pub(super) fn quantize_q8_k(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    // SAFETY: handed out only where the processor has these features.
    unsafe { quantize::q8_k(x, codes, scales, sums) }
}

/// From how many rows of activations on a tile pays for being packed.
pub(super) const MANY: usize = 8;

/// Any number of rows of activations with a matrix of 32-weight blocks.
pub(super) fn small<B: Small>(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let row = |t| x.q8_0(t);
    if y.len() >= MANY {
        // SAFETY: a kernel is handed out only where the processor has these features.
        unsafe { tile::rows::<many::SmallTile<B>, 8, 4>(w, row, y) }
    } else {
        // SAFETY: as above.
        unsafe { few::small::<B>(w, row, y) }
    }
}

/// Any number of rows of activations with a matrix of 256-weight blocks.
pub(super) fn super_<B: Super>(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let row = |t| x.q8_k(t);
    if y.len() >= MANY {
        // SAFETY: a kernel is handed out only where the processor has these features.
        unsafe { tile::rows::<many::SuperTile<B>, 8, 4>(w, row, y) }
    } else {
        // SAFETY: as above.
        unsafe { few::super_::<B, few::Avx2>(w, row, y) }
    }
}
