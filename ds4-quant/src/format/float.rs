//! F32, F16, BF16: rows of plain little-endian floats.
//!
//! ```text
//! F32   4 bytes   IEEE single
//! F16   2 bytes   IEEE half
//! BF16  2 bytes   the upper half of an IEEE single
//! ```
//! Products use the activations as they are, under either precision; see [`crate::accumulate`] for the order.

use ds4_gguf::TensorType;
use half::{bf16, f16};

use crate::accumulate::FloatChains;
use crate::{Activations, Codec, Error, encode};

macro_rules! float_codec {
    ($(#[doc = $doc:literal])+ $name:ident, $bytes:literal, $to_f32:expr) => {
        $(#[doc = $doc])+
        pub(crate) struct $name;

        impl $name {
            pub(crate) fn to_f32(b: &[u8; $bytes]) -> f32 {
                $to_f32(*b)
            }

            fn numbers(what: &'static str, bytes: usize, numbers: usize) -> Result<(), Error> {
                if bytes % $bytes != 0 || bytes / $bytes != numbers {
                    return Err(Error::Length { what, got: numbers, want: bytes / $bytes });
                }
                Ok(())
            }
        }

        impl Codec for $name {
            fn ty(&self) -> TensorType {
                TensorType::$name
            }

            fn decode(&self, blocks: &[u8], out: &mut [f32]) -> Result<(), Error> {
                Self::numbers("decoded weights", blocks.len(), out.len())?;
                for (b, w) in blocks.as_chunks().0.iter().zip(out) {
                    *w = Self::to_f32(b);
                }
                Ok(())
            }

            fn encode(
                &self,
                row: &[f32],
                importance: Option<&[f32]>,
                blocks: &mut [u8],
            ) -> Result<(), Error> {
                encode::encode_row(TensorType::$name, row, importance, blocks)
            }

            fn dot(&self, blocks: &[u8], x: &Activations, row: usize) -> f32 {
                let weights: &[[u8; $bytes]] = bytemuck::cast_slice(blocks);
                assert_eq!(weights.len(), x.cols(), "one row of weights for one row of activations");
                let mut acc = FloatChains::new();
                for (w, x) in weights.chunks(256).zip(x.row(row).chunks(256)) {
                    let mut numbers = [0.0; 256];
                    for (n, w) in numbers.iter_mut().zip(w) {
                        *n = Self::to_f32(w);
                    }
                    acc.add(&numbers[..w.len()], x);
                }
                acc.sum()
            }
        }
    };
}

float_codec!(
    /// IEEE single precision.
    F32, 4, f32::from_le_bytes
);
float_codec!(
    /// IEEE half precision.
    F16, 2, |b| f16::from_le_bytes(b).to_f32()
);
float_codec!(
    /// The upper half of an IEEE single.
    Bf16, 2, |b| bf16::from_le_bytes(b).to_f32()
);
