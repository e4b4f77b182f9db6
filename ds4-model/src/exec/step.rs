//! What differs between two runs of the same plan.

use bytemuck::{Pod, Zeroable};

use crate::graph::Rows;

/// One step's parameters: 64 bytes, one copy to a device. Everything else (window rows, open windows, compressed rows)
/// follows from `pos` and `rows`, so one plan serves every position.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Step {
    /// Position of the first token, from the start of the timeline.
    pub pos: u32,
    /// Tokens of the step.
    pub rows: u32,
    /// First row whose logits are wanted; `rows` when none are.
    pub head_row: u32,
    /// Zero.
    pub reserved: [u32; 13],
}
const _: () = assert!(size_of::<Step>() == 64);

impl Step {
    /// A step over `rows` tokens from `pos`, with logits from row `head_row` on.
    pub fn new(pos: u32, rows: u32, head_row: u32) -> Self {
        Self {
            pos,
            rows,
            head_row,
            ..Self::default()
        }
    }

    /// Position after the step.
    pub fn end(&self) -> u32 {
        self.pos + self.rows
    }

    /// Rows of a value with symbolic row count `rows`.
    pub fn count(&self, rows: Rows) -> usize {
        let count = match rows {
            Rows::Tokens => self.rows,
            Rows::Head => self.rows.saturating_sub(self.head_row),
            Rows::Windows(ratio) => self.end() / ratio - self.pos / ratio,
        };
        count as usize
    }

    /// Position of row `index`: the token's own, or the first token of a closed window.
    pub fn position(&self, rows: Rows, index: usize) -> u32 {
        let index = index as u32;
        match rows {
            Rows::Tokens => self.pos + index,
            Rows::Head => self.pos + self.head_row + index,
            Rows::Windows(ratio) => (self.pos / ratio + index) * ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_close_where_their_last_token_falls() {
        assert_eq!(Step::new(3, 1, 0).count(Rows::Windows(4)), 1);
        assert_eq!(Step::new(0, 3, 0).count(Rows::Windows(4)), 0);
        assert_eq!(Step::new(3, 5, 0).count(Rows::Windows(4)), 2);
        assert_eq!(Step::new(3, 5, 0).position(Rows::Windows(4), 1), 4);
    }
}
