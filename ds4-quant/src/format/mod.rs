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

use crate::Codec;
use packed::Packed;

/// Every codec of this crate.
pub(crate) static CODECS: &[&dyn Codec] = &[
    &float::F32,
    &float::F16,
    &float::Bf16,
    &Packed::<q4_0::BlockQ4_0>::CODEC,
    &Packed::<q8_0::BlockQ8_0>::CODEC,
    &Packed::<q2_k::BlockQ2K>::CODEC,
    &Packed::<q3_k::BlockQ3K>::CODEC,
    &Packed::<q4_k::BlockQ4K>::CODEC,
    &Packed::<q5_k::BlockQ5K>::CODEC,
    &Packed::<q6_k::BlockQ6K>::CODEC,
    &Packed::<iq2_xxs::BlockIq2Xxs>::CODEC,
    &Packed::<iq2_xs::BlockIq2Xs>::CODEC,
    &Packed::<iq2_s::BlockIq2S>::CODEC,
    &Packed::<iq3_xxs::BlockIq3Xxs>::CODEC,
    &Packed::<iq3_s::BlockIq3S>::CODEC,
    &Packed::<iq4_nl::BlockIq4Nl>::CODEC,
    &Packed::<iq4_xs::BlockIq4Xs>::CODEC,
    &Packed::<mxfp4::BlockMxfp4>::CODEC,
    &Packed::<nvfp4::BlockNvfp4>::CODEC,
    &Packed::<rocmfp2::BlockS40>::CODEC,
    &Packed::<rocmfp2::BlockTwoScale>::CODEC,
    &Packed::<rocmfp2::BlockAffine>::CODEC,
    &Packed::<rocmfp3::BlockRocmFp3>::CODEC,
    &Packed::<rocmfp4::BlockRocmFp4>::CODEC,
    &Packed::<rocmfp4::BlockRocmFp4Fast>::CODEC,
    &Packed::<rocmfp6::BlockRocmFp6>::CODEC,
    &Packed::<rocmfp8::BlockRocmFp8>::CODEC,
    &Packed::<rocmi4::BlockRocmI4>::CODEC,
];
