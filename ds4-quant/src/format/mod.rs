//! The packed formats, one a file: layout drawing, block, decode, and the integers behind it.

pub(crate) mod float;
pub(crate) mod iq2_s;
pub(crate) mod iq2_xs;
pub(crate) mod iq2_xxs;
pub(crate) mod iq3_s;
pub(crate) mod iq3_xxs;
pub(crate) mod iq4_nl;
pub(crate) mod iq4_xs;
pub(crate) mod mxfp4;
pub(crate) mod nvfp4;
pub(crate) mod packed;
pub(crate) mod q2_k;
pub(crate) mod q3_k;
pub(crate) mod q4_0;
pub(crate) mod q4_k;
pub(crate) mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_0;
pub(crate) mod rocm_mix;
pub(crate) mod rocmfp2;
pub(crate) mod rocmfp3;
pub(crate) mod rocmfp4;
pub(crate) mod rocmfp6;
pub(crate) mod rocmfp8;
pub(crate) mod rocmi4;

use ds4_gguf::TensorType;

use crate::Codec;
use crate::accumulate::Products;
use crate::simd::{Kernel, portable};
use packed::{Block, Packed};

/// The formats that are arrays of blocks.
macro_rules! packed_formats {
    ($($block:ty,)+) => {
        /// Every codec of this crate.
        pub(crate) static CODECS: &[&dyn Codec] = &[
            &float::F32,
            &float::F16,
            &float::Bf16,
            $(&Packed::<$block>::CODEC,)+
        ];

        /// The kernel that any format and any processor has; `None` for types that are not blocks.
        pub(crate) fn portable_kernel<P: Products>(ty: TensorType) -> Option<Kernel> {
            Some(match ty {
                $(<$block as Block>::TY => portable::rows::<$block, P>,)+
                _ => return None,
            })
        }
    };
}

packed_formats! {
    q4_0::BlockQ4_0,
    q8_0::BlockQ8_0,
    q2_k::BlockQ2K,
    q3_k::BlockQ3K,
    q4_k::BlockQ4K,
    q5_k::BlockQ5K,
    q6_k::BlockQ6K,
    iq2_xxs::BlockIq2Xxs,
    iq2_xs::BlockIq2Xs,
    iq2_s::BlockIq2S,
    iq3_xxs::BlockIq3Xxs,
    iq3_s::BlockIq3S,
    iq4_nl::BlockIq4Nl,
    iq4_xs::BlockIq4Xs,
    mxfp4::BlockMxfp4,
    nvfp4::BlockNvfp4,
    rocmfp2::BlockS40,
    rocmfp2::BlockTwoScale,
    rocmfp2::BlockAffine,
    rocmfp3::BlockRocmFp3,
    rocmfp4::BlockRocmFp4,
    rocmfp4::BlockRocmFp4Fast,
    rocmfp6::BlockRocmFp6,
    rocmfp8::BlockRocmFp8,
    rocmi4::BlockRocmI4,
}
