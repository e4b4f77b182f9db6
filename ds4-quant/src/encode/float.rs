//! F32, F16, BF16: rounding to nearest even, nothing to search.

use ds4_gguf::TensorType;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Encoder;
use crate::simd::lanes::Lanes;

/// Numbers converted at a time.
const PART: usize = 256;

pub(crate) struct F32;
pub(crate) struct F16;
pub(crate) struct Bf16;

impl Encoder for F32 {
    const TY: TensorType = TensorType::F32;

    #[inline(always)]
    fn row<L: Lanes>(_lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        for (x, bytes) in row.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = x.to_le_bytes();
        }
    }
}

impl Encoder for F16 {
    const TY: TensorType = TensorType::F16;

    #[inline(always)]
    fn row<L: Lanes>(_lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        let mut part = [f16::ZERO; PART];
        for (x, bytes) in row.chunks(PART).zip(bytes.chunks_mut(2 * PART)) {
            let part = &mut part[..x.len()];
            part.convert_from_f32_slice(x);
            for (half, bytes) in part.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = half.to_le_bytes();
            }
        }
    }

    fn overflows(block: &[u8]) -> bool {
        block[1] & 0x7c == 0x7c
    }
}

impl Encoder for Bf16 {
    const TY: TensorType = TensorType::Bf16;

    #[inline(always)]
    fn row<L: Lanes>(_lanes: L, row: &[f32], _importance: Option<&[f32]>, bytes: &mut [u8]) {
        for (x, bytes) in row.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = bf16::from_f32(*x).to_le_bytes();
        }
    }

    fn overflows(block: &[u8]) -> bool {
        block[1] & 0x7f == 0x7f && block[0] & 0x80 == 0x80
    }
}
