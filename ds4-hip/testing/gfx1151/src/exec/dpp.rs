//! Data-parallel primitives: operand 0 comes from another lane.
//!
//! Source: AMD, "RDNA3.5 Instruction Set Architecture", DPP16 and DPP8.

use super::operand::{At, Src};
use super::wave::{Lanes, Wave, each};
use crate::fault::Done;

/// No lane: the shift leaves the row.
pub(crate) const OUTSIDE: u8 = 32;

/// A resolved exchange pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dpp {
    /// For each lane the lane it reads, or [`OUTSIDE`].
    pub(crate) source: [u8; 32],
    /// A lane without a source reads 0; otherwise it keeps its result register.
    pub(crate) zero: bool,
    /// Inactive lanes can be read.
    pub(crate) fetch_inactive: bool,
    /// The lanes that `row_mask` and `bank_mask` let write.
    pub(crate) writes: u32,
}

impl Dpp {
    /// Operand `src` after the exchange; the lanes that take part.
    pub(crate) fn gather(&self, w: &Wave, src: &Src, out: &mut Lanes) -> Done<u32> {
        let exec = w.exec();
        let At::V(register) = src.at else {
            let mut buffer = [0; 32];
            *out = *w.plain(src, exec, &mut buffer)?;
            return Ok(exec & self.writes);
        };
        let from = w.v_kept(register);
        let readable = if self.fetch_inactive { u32::MAX } else { exec };
        let (mut lanes, mut read) = (0_u32, 0_u32);
        for l in each(exec & self.writes) {
            let source = u32::from(self.source[l]);
            if source < 32 && readable >> source & 1 == 1 {
                out[l] = from[source as usize];
                read |= 1 << source;
                lanes |= 1 << l;
            } else if self.zero {
                out[l] = 0;
                lanes |= 1 << l;
            }
        }
        w.written(register, read)?;
        Ok(lanes)
    }
}

/// The lanes of a wave whose row of 16 and bank of 4 within the row are let through.
pub(crate) fn mask(rows: u8, banks: u8) -> u32 {
    (0..32)
        .filter(|l| rows >> (l / 16) & 1 == 1 && banks >> (l / 4 % 4) & 1 == 1)
        .fold(0, |m, l| m | 1 << l)
}

/// For each lane the lane that the DPP16 control reads.
///
/// `name` is the control as the disassembler writes it, `argument` its number.
pub(crate) fn row_control(name: &str, argument: u8) -> Option<[u8; 32]> {
    let pick: fn(u8, u8) -> Option<u8> = match name {
        "row_shl" => |l, n| Some(l + n).filter(|&s| s < 16),
        "row_shr" => |l, n| l.checked_sub(n),
        "row_ror" => |l, n| Some((l + 16 - n % 16) % 16),
        "row_mirror" => |l, _| Some(15 - l),
        "row_half_mirror" => |l, _| Some(l ^ 7),
        "row_share" => |_, n| Some(n),
        "row_xmask" => |l, n| Some(l ^ n),
        _ => return None,
    };
    (argument < 16).then(|| {
        std::array::from_fn(|lane| {
            let (row, l) = (lane as u8 & 16, lane as u8 & 15);
            pick(l, argument).map_or(OUTSIDE, |s| row | s)
        })
    })
}

/// `quad_perm`: the same choice in each group of four.
pub(crate) fn quad(choice: [u8; 4]) -> [u8; 32] {
    std::array::from_fn(|l| l as u8 & !3 | choice[l & 3] & 3)
}

/// `dpp8`: the same choice in each group of eight.
pub(crate) fn eight(choice: [u8; 8]) -> [u8; 32] {
    std::array::from_fn(|l| l as u8 & !7 | choice[l & 7] & 7)
}
