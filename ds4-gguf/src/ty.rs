//! `TensorType`: what one block of a tensor is called, how many weights it holds and how many bytes it takes.
//!
//! One table below is the whole truth; the maths of the blocks is not known here.
//!
//! Sources: ggml-org/llama.cpp:ggml/include/ggml.h (`enum ggml_type`), ggml/src/ggml-common.h (block structs);
//! ciru-ai/ROCmFPX:ggml/include/ggml.h and Luce-Org/lucebox (ids from 100 up).

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Which of three incompatible layouts of the same 10 bytes a file means by type id 107.
///
/// Every block holds 32 two-bit codes in bytes 0..8 and two bytes of unsigned E4M3 in 8 and 9. Nothing in the
/// tensor table separates the three; see [`crate::RocmFp2Decision`] for how a reader decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RocmFp2Layout {
    /// Codes mean −4 −1 +1 +4; one scale for each half. Written by the ROCmFPX fork.
    S40,
    /// Codes mean −1 0 1 2; one scale for each half. Written by lucebox, and by us.
    TwoScale,
    /// Codes mean 0 1 2 3; byte 8 is the scale and byte 9 an offset that is subtracted. Written by affine builds.
    Affine,
}

impl RocmFp2Layout {
    /// The metadata key under which a file names its layout; files written here carry it.
    pub const KEY: &'static str = "general.quantization.rocmfp2_layout";

    /// The value of [`Self::KEY`]: `"s40"`, `"two-scale"` or `"affine"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S40 => "s40",
            Self::TwoScale => "two-scale",
            Self::Affine => "affine",
        }
    }

    /// The layout called `name`, as [`Self::name`] spells it.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::S40, Self::TwoScale, Self::Affine]
            .into_iter()
            .find(|layout| layout.name() == name)
    }

    /// The tensor type that id 107 means under this layout.
    pub const fn ty(self) -> TensorType {
        match self {
            Self::S40 => TensorType::RocmFp2S40,
            Self::TwoScale => TensorType::RocmFp2TwoScale,
            Self::Affine => TensorType::RocmFp2Affine,
        }
    }
}

impl fmt::Display for RocmFp2Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The type id whose layout depends on who wrote the file.
pub(crate) const ROCMFP2_ID: u32 = 107;

/// The table: variant, id in the file, ggml's name, weights a block, bytes a block.
macro_rules! tensor_types {
    ($($(#[doc = $doc:literal])+ $variant:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)+) => {
        /// The format of a tensor's blocks: `GGML_TYPE_*` of ggml and of the ROCmFPX family.
        ///
        /// A row of `cols` weights is `cols / block_len` blocks of `block_bytes` bytes; blocks are not padded.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TensorType {
            $($(#[doc = $doc])+ $variant,)+
            /// An id without a known layout: the tensor is listed, its size is unknown, its bytes are not reachable.
            Unknown(u32),
        }

        impl TensorType {
            /// Every type with a known layout, in table order.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The id in the file. The three layouts of 107 share theirs.
            pub const fn id(self) -> u32 {
                match self {
                    $(Self::$variant => $id,)+
                    Self::Unknown(id) => id,
                }
            }

            /// ggml's spelling of the name, `"Q2_K"`; the three layouts of 107 carry three names.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Unknown(_) => "unknown",
                }
            }

            /// Weights in one block; 1 for plain numbers and for [`Self::Unknown`].
            pub const fn block_len(self) -> usize {
                match self {
                    $(Self::$variant => $len,)+
                    Self::Unknown(_) => 1,
                }
            }

            /// Bytes of one block; 0 for [`Self::Unknown`].
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(Self::$variant => $bytes,)+
                    Self::Unknown(_) => 0,
                }
            }
        }
    };
}

tensor_types! {
    /// 32-bit float.
    F32 = 0, "F32", 1, 4;
    /// 16-bit float, IEEE half.
    F16 = 1, "F16", 1, 2;
    /// 4 bits, one scale for 32 weights.
    Q4_0 = 2, "Q4_0", 32, 18;
    /// 4 bits, scale and minimum for 32 weights.
    Q4_1 = 3, "Q4_1", 32, 20;
    /// 5 bits, one scale for 32 weights.
    Q5_0 = 6, "Q5_0", 32, 22;
    /// 5 bits, scale and minimum for 32 weights.
    Q5_1 = 7, "Q5_1", 32, 24;
    /// 8 bits, one scale for 32 weights.
    Q8_0 = 8, "Q8_0", 32, 34;
    /// 8 bits with a block sum; activations.
    Q8_1 = 9, "Q8_1", 32, 36;
    /// 2-bit K-quant.
    Q2K = 10, "Q2_K", 256, 84;
    /// 3-bit K-quant.
    Q3K = 11, "Q3_K", 256, 110;
    /// 4-bit K-quant.
    Q4K = 12, "Q4_K", 256, 144;
    /// 5-bit K-quant.
    Q5K = 13, "Q5_K", 256, 176;
    /// 6-bit K-quant.
    Q6K = 14, "Q6_K", 256, 210;
    /// 8 bits with sums of 16; activations.
    Q8K = 15, "Q8_K", 256, 292;
    /// 2.06 bits, lattice of 256 points.
    Iq2Xxs = 16, "IQ2_XXS", 256, 66;
    /// 2.31 bits, lattice of 512 points.
    Iq2Xs = 17, "IQ2_XS", 256, 74;
    /// 3.06 bits, lattice of 256 points.
    Iq3Xxs = 18, "IQ3_XXS", 256, 98;
    /// 1.56 bits, lattice of 2048 points.
    Iq1S = 19, "IQ1_S", 256, 50;
    /// 4 bits into a table of 16 values.
    Iq4Nl = 20, "IQ4_NL", 32, 18;
    /// 3.44 bits, lattice of 512 points.
    Iq3S = 21, "IQ3_S", 256, 110;
    /// 2.56 bits, lattice of 1024 points.
    Iq2S = 22, "IQ2_S", 256, 82;
    /// 4.25 bits into a table of 16 values.
    Iq4Xs = 23, "IQ4_XS", 256, 136;
    /// Signed byte.
    I8 = 24, "I8", 1, 1;
    /// 16-bit integer.
    I16 = 25, "I16", 1, 2;
    /// 32-bit integer.
    I32 = 26, "I32", 1, 4;
    /// 64-bit integer.
    I64 = 27, "I64", 1, 8;
    /// 64-bit float.
    F64 = 28, "F64", 1, 8;
    /// 1.75 bits, lattice of 2048 points.
    Iq1M = 29, "IQ1_M", 256, 56;
    /// 16-bit float, the upper half of an `f32`.
    Bf16 = 30, "BF16", 1, 2;
    /// Ternary, five weights a byte.
    Tq1_0 = 34, "TQ1_0", 256, 54;
    /// Ternary, four weights a byte.
    Tq2_0 = 35, "TQ2_0", 256, 66;
    /// E2M1 codes under a power-of-two scale.
    Mxfp4 = 39, "MXFP4", 32, 17;
    /// E2M1 codes under E4M3 scales.
    Nvfp4 = 40, "NVFP4", 64, 36;
    /// One bit, one scale for 128 weights.
    Q1_0 = 41, "Q1_0", 128, 18;
    /// ROCmFPX, 4 bits, a scale for each 16 weights.
    RocmFp4 = 100, "Q4_0_ROCMFP4", 32, 18;
    /// ROCmFPX, 4 bits, one scale.
    RocmFp4Fast = 101, "Q4_0_ROCMFP4_FAST", 32, 17;
    /// ROCmFPX, 6 bits.
    RocmFp6 = 102, "Q6_0_ROCMFPX", 32, 26;
    /// ROCmFPX, 8 bits.
    RocmFp8 = 103, "Q8_0_ROCMFPX", 32, 33;
    /// ROCmFPX, 3 bits.
    RocmFp3 = 104, "Q3_0_ROCMFPX", 32, 14;
    /// lucebox, 3 bits with codebooks of each expert kept beside the tensors.
    RocmFp3Mix = 105, "Q3_1_ROCMFP3_MIX", 32, 14;
    /// lucebox, 2 bits with codebooks of each expert kept beside the tensors.
    RocmFp2Mix = 106, "Q2_1_ROCMFP2_MIX", 32, 10;
    /// Id 107 as the ROCmFPX fork writes it: [`RocmFp2Layout::S40`].
    RocmFp2S40 = 107, "Q2_0_ROCMFPX", 32, 10;
    /// Id 107 as lucebox writes it: [`RocmFp2Layout::TwoScale`].
    RocmFp2TwoScale = 107, "Q2_0_ROCMFP2", 32, 10;
    /// Id 107 as affine builds write it: [`RocmFp2Layout::Affine`].
    RocmFp2Affine = 107, "Q2_0_ROCMFP2_AFFINE", 32, 10;
    /// ROCmFPX, 4-bit two's complement, one scale.
    RocmI4 = 108, "Q4_0_ROCMI4", 32, 17;
}

impl TensorType {
    /// The type with this id, or `None` when the id has no known layout or, as 107, more than one.
    pub fn from_id(id: u32) -> Option<Self> {
        if id == ROCMFP2_ID {
            return None;
        }
        Self::KNOWN.iter().copied().find(|ty| ty.id() == id)
    }

    /// As [`Self::from_id`], with 107 read in the given layout.
    pub fn from_id_with(id: u32, layout: RocmFp2Layout) -> Option<Self> {
        if id == ROCMFP2_ID {
            Some(layout.ty())
        } else {
            Self::from_id(id)
        }
    }

    /// Which layout of id 107 this is; `None` for every other type.
    pub const fn rocmfp2_layout(self) -> Option<RocmFp2Layout> {
        match self {
            Self::RocmFp2S40 => Some(RocmFp2Layout::S40),
            Self::RocmFp2TwoScale => Some(RocmFp2Layout::TwoScale),
            Self::RocmFp2Affine => Some(RocmFp2Layout::Affine),
            _ => None,
        }
    }

    /// Bytes of one row of `cols` weights: `cols / block_len · block_bytes`.
    ///
    /// # Errors
    /// [`Error::Row`] when `cols` is not a whole number of blocks, the product passes 64 bits, or the type is
    /// [`Self::Unknown`].
    pub fn row_bytes(self, cols: u64) -> Result<u64, Error> {
        let block = self.block_len() as u64;
        let bytes = match self {
            Self::Unknown(_) => None,
            _ if !cols.is_multiple_of(block) => None,
            _ => (cols / block).checked_mul(self.block_bytes() as u64),
        };
        bytes.ok_or(Error::Row { ty: self, cols })
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => f.pad(&format!("type {id}")),
            known => f.pad(known.name()),
        }
    }
}

impl FromStr for TensorType {
    type Err = Error;

    /// The type whose [`TensorType::name`] is `name`, in any case.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::KNOWN
            .iter()
            .copied()
            .find(|ty| ty.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| Error::TypeName { name: name.into() })
    }
}
