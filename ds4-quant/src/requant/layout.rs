//! Where every tensor lies before and after, and the steps from one to the other.
//!
//! Tensors keep their order and are packed towards the start. With tensors sorted by old place `r`, none larger than
//! before, every new place `w` is at or below `r`, and the last byte written for a piece is at or below the last byte
//! read for it: in order, nothing is overwritten that is still to be read. What a step may overwrite is its own source;
//! then its result goes to the journal first.

use ds4_gguf::{Dims, TensorType};

use super::RequantError;

/// Bytes of a source that a step reads at most; more only where a single row is longer.
pub(super) const STEP: u64 = 64 << 20;

/// Steps that overwrite their source are this small: their results are written twice.
pub(super) const SMALL_STEP: u64 = 1 << 20;

/// A tensor before and after.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Move {
    pub(super) name: Box<str>,
    pub(super) dims: Dims,
    pub(super) from: TensorType,
    pub(super) to: TensorType,
    /// Bytes from the start of the file, before.
    pub(super) read: u64,
    /// Bytes from the start of the file, after.
    pub(super) write: u64,
    /// Importance of the columns of each expert, one expert after another; empty without.
    pub(super) importance: Vec<f32>,
}

impl Move {
    pub(super) fn bytes(&self, ty: TensorType) -> u64 {
        // The directory of the source was checked against its size: nothing overflows.
        self.row(ty) * self.dims.rows()
    }

    /// Bytes of one row.
    pub(super) fn row(&self, ty: TensorType) -> u64 {
        self.dims.cols() / ty.block_len() as u64 * ty.block_bytes() as u64
    }
}

/// One piece of work: read a range, write a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Which of the moves.
    pub(super) tensor: usize,
    /// First row, for a tensor that changes its type.
    pub(super) row: u64,
    pub(super) read: u64,
    pub(super) read_bytes: u64,
    pub(super) write: u64,
    pub(super) write_bytes: u64,
    /// Zeros after it, up to the alignment; only behind the last piece of a tensor.
    pub(super) padding: u64,
}

impl Step {
    /// Whether the result overwrites the source: it can then be done only once.
    pub(super) fn overlaps(&self) -> bool {
        self.write + self.write_bytes + self.padding > self.read
    }
}

/// The steps, in order. Sizes are in bytes; see [`STEP`] and [`SMALL_STEP`].
pub(super) fn steps(moves: &[Move], alignment: u64, step: u64, small: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for (tensor, m) in moves.iter().enumerate() {
        if m.from == m.to && m.read == m.write {
            continue;
        }
        // A copy is cut anywhere, a conversion between rows.
        let (unit_read, unit_write) = if m.from == m.to {
            (1, 1)
        } else {
            (m.row(m.from), m.row(m.to))
        };
        let units = m.bytes(m.from) / unit_read;
        let mut done = 0;
        while done < units {
            let (read, write) = (m.read + done * unit_read, m.write + done * unit_write);
            let gap = read - write;
            // The padding behind a tensor must leave the source alone as well.
            let fits = gap.saturating_sub(alignment) / unit_write;
            let large = step.div_ceil(unit_read);
            let few = small.div_ceil(unit_read);
            // As much as leaves the source alone; where that is next to nothing, a small step by way of the journal.
            let count = if fits >= few { fits.min(large) } else { few };
            let count = count.clamp(1, units - done);
            done += count;
            let end = write + count * unit_write;
            steps.push(Step {
                tensor,
                row: done - count,
                read,
                read_bytes: count * unit_read,
                write,
                write_bytes: count * unit_write,
                padding: if done == units {
                    end.next_multiple_of(alignment) - end
                } else {
                    0
                },
            });
        }
    }
    steps
}

/// Refuse what cannot be done in place: a table out of order, a tensor that grows.
pub(super) fn check(moves: &[Move]) -> Result<(), RequantError> {
    for pair in moves.windows(2) {
        if pair[1].read < pair[0].read {
            return Err(RequantError::Order {
                tensor: pair[1].name.clone(),
                after: pair[0].name.clone(),
            });
        }
    }
    for m in moves {
        if m.bytes(m.to) > m.bytes(m.from) {
            return Err(RequantError::Grows {
                tensor: m.name.clone(),
                from: m.from,
                to: m.to,
                before: m.bytes(m.from),
                after: m.bytes(m.to),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the tensors: steps cover every byte once, in order, and overwrite nothing that is still to be read.
        #[test]
        fn no_step_overwrites_what_a_later_one_reads(
            tensors in prop::collection::vec((1u64..40, 0u8..3, 0u64..3), 1..8),
            step in 1u64..4000,
            small in 1u64..500,
            header in 0u64..4,
        ) {
            const ALIGNMENT: u64 = 32;
            let (mut read, mut write) = (1024 + 32 * header, 1024);
            let mut moves = Vec::new();
            for (rows, kind, gap) in tensors {
                let (from, to) = match kind {
                    0 => (TensorType::Mxfp4, TensorType::Q2K),
                    1 => (TensorType::Q8_0, TensorType::Q8_0),
                    _ => (TensorType::Q4K, TensorType::Iq4Xs),
                };
                let m = Move {
                    name: "x".into(),
                    dims: Dims::new(&[256, rows]).unwrap(),
                    from,
                    to,
                    read,
                    write,
                    importance: Vec::new(),
                };
                read = (read + m.bytes(from)).next_multiple_of(ALIGNMENT) + ALIGNMENT * gap;
                write = (write + m.bytes(to)).next_multiple_of(ALIGNMENT);
                moves.push(m);
            }
            check(&moves).unwrap();
            let steps = steps(&moves, ALIGNMENT, step, small);
            for (i, a) in steps.iter().enumerate() {
                for later in &steps[i + 1..] {
                    prop_assert!(a.write + a.write_bytes + a.padding <= later.read);
                }
                let m = &moves[a.tensor];
                prop_assert!(!a.overlaps() || a.read_bytes <= small.max(m.row(m.from)).next_multiple_of(m.row(m.from)));
            }
            for (tensor, m) in moves.iter().enumerate() {
                let of = steps.iter().filter(|s| s.tensor == tensor);
                let (mut read, mut write) = (m.read, m.write);
                let mut any = false;
                for s in of {
                    prop_assert_eq!((s.read, s.write), (read, write));
                    (read, write) = (read + s.read_bytes, write + s.write_bytes + s.padding);
                    any = true;
                }
                if any {
                    prop_assert_eq!(read, m.read + m.bytes(m.from));
                    prop_assert_eq!(write, (m.write + m.bytes(m.to)).next_multiple_of(ALIGNMENT));
                } else {
                    prop_assert!(m.from == m.to && m.read == m.write);
                }
            }
        }
    }
}
