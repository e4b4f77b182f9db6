//! Block layouts for programs in C: where each field of each block lies, and the tables that indices point into.
//!
//! GPU kernels read the same bytes as the codecs here; their header is made of this crate's structs, so that the two cannot
//! disagree.

use std::fmt::Write;
use std::mem::offset_of;

use crate::codebook::{IQ2_S, IQ2_XXS, IQ3_XXS};
use crate::format::iq2_s::BlockIq2S;
use crate::format::iq2_xxs::BlockIq2Xxs;
use crate::format::iq3_xxs::BlockIq3Xxs;
use crate::format::mxfp4::BlockMxfp4;
use crate::format::q2_k::BlockQ2K;
use crate::format::q4_k::BlockQ4K;
use crate::format::q8_0::BlockQ8_0;
use crate::format::rocmfp2::TwoBits;
use crate::format::rocmfp3::BlockRocmFp3;
use crate::format::rocmfp4::{BlockRocmFp4, BlockRocmFp4Fast};
use crate::format::rocmfp6::BlockRocmFp6;
use crate::format::rocmfp8::BlockRocmFp8;

/// One block: its name in C, weights and bytes, and where its fields begin.
struct Layout {
    name: &'static str,
    weights: usize,
    bytes: usize,
    fields: Vec<(&'static str, usize)>,
}

macro_rules! layout {
    ($name:literal, $weights:literal, $block:ty, { $($c:ident = $field:ident),* }) => {
        Layout {
            name: $name,
            weights: $weights,
            bytes: size_of::<$block>(),
            fields: vec![$((stringify!($c), offset_of!($block, $field))),*],
        }
    };
}

/// The header `blocks.h` of the GPU kernels.
///
/// ```
/// let header = ds4_quant::c_header();
/// assert!(header.contains("struct layout_q8_0 { static constexpr gp_u32 WEIGHTS = 32, BYTES = 34, D = 0, Q = 2; };"));
/// ```
pub fn c_header() -> String {
    let layouts = [
        layout!("q8_0", 32, BlockQ8_0, { D = d, Q = q }),
        layout!("q4_k", 256, BlockQ4K, { D = d, DMIN = dmin, S = s, QS = qs }),
        layout!("q2_k", 256, BlockQ2K, { SC = sc, QS = qs, D = d, DMIN = dmin }),
        layout!("iq2_xxs", 256, BlockIq2Xxs, { D = d, GROUPS_AT = groups }),
        layout!("iq2_s", 256, BlockIq2S, { D = d, QS = qs, SIGNS = signs, QH = qh, SC = sc }),
        layout!("iq3_xxs", 256, BlockIq3Xxs, { D = d, QS = qs, SS = ss }),
        layout!("mxfp4", 32, BlockMxfp4, { E = e, QS = qs }),
        layout!("rocmfp2", 32, TwoBits, { QS = qs, E = e }),
        layout!("rocmfp3", 32, BlockRocmFp3, { QS = qs, E = e }),
        layout!("rocmfp4", 32, BlockRocmFp4, { QS = qs, E = e }),
        layout!("rocmfp4_fast", 32, BlockRocmFp4Fast, { QS = qs, E = e }),
        layout!("rocmfp6", 32, BlockRocmFp6, { QS = qs, E = e }),
        layout!("rocmfp8", 32, BlockRocmFp8, { Q = q, E = e }),
    ];
    let mut text = String::from(
        "// Made from ds4-quant by `cargo xtask kernels --blocks`; do not edit.\n#pragma once\n#include \"gpu_port.h\"\n\n",
    );
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for layout in layouts {
        let fields: String = layout
            .fields
            .iter()
            .map(|(name, at)| format!(", {name} = {at}"))
            .collect();
        line(format!(
            "struct layout_{} {{ static constexpr gp_u32 WEIGHTS = {}, BYTES = {}{fields}; }};",
            layout.name, layout.weights, layout.bytes
        ));
    }
    line(String::new());
    line(table("iq2_xxs", IQ2_XXS.as_flattened()));
    line(table("iq2_s", IQ2_S.as_flattened()));
    line(table("iq3_xxs", IQ3_XXS.as_flattened()));
    text
}

/// Points as words of four bytes, the first lowest.
fn table(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("GP_TABLE gp_u32 table_{name}[{}] = {{", bytes.len() / 4);
    for (i, word) in bytes.chunks_exact(4).enumerate() {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let before = if i % 10 == 0 { "\n    " } else { " " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{before}0x{word:08x}u,");
    }
    text.push_str("\n};\n");
    text
}
