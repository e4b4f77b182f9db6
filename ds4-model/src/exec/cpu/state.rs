//! Rings and growing tables of one session in host memory.

use crate::exec::{CopyDir, ExecError};
use crate::graph::{StateId, StateKind, StateLayout, StateSpec};

/// One state: rows of `cols` f32.
pub(super) struct Rows {
    spec: StateSpec,
    /// Ring capacity in rows; 0 for a growing table.
    ring: usize,
    data: Vec<f32>,
}

/// All states of one session.
pub(super) struct CpuState {
    rows: Vec<Rows>,
}

impl CpuState {
    /// Rings hold what later tokens need plus one whole step, so that a step may write before it reads.
    pub(super) fn new(layout: &StateLayout, step: usize) -> Result<Self, ExecError> {
        let rows = layout
            .specs
            .iter()
            .map(|spec| Rows::new(spec.clone(), step))
            .collect::<Result<_, _>>()?;
        Ok(Self { rows })
    }

    pub(super) fn get(&self, id: StateId) -> &Rows {
        &self.rows[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: StateId) -> &mut Rows {
        &mut self.rows[id.0 as usize]
    }

    pub(super) fn copy(
        &mut self,
        id: StateId,
        first: usize,
        dir: CopyDir<'_>,
    ) -> Result<(), ExecError> {
        let rows = self.get_mut(id);
        let cols = rows.cols();
        match dir {
            CopyDir::Out(out) => {
                let end = first + out.len() / cols;
                let held = if rows.ring > 0 {
                    rows.ring
                } else {
                    rows.data.len() / cols
                };
                let whole = out.len().is_multiple_of(cols);
                let fits = if rows.ring > 0 {
                    end - first <= held
                } else {
                    end <= held
                };
                if !whole || !fits {
                    return Err(ExecError::StateRows {
                        state: rows.spec.name.clone(),
                        first,
                        end,
                    });
                }
                for (i, row) in out.chunks_exact_mut(cols).enumerate() {
                    row.copy_from_slice(rows.row(first + i));
                }
            }
            CopyDir::In(from) => {
                let end = first + from.len() / cols;
                if !from.len().is_multiple_of(cols) || (rows.ring > 0 && end - first > rows.ring) {
                    return Err(ExecError::StateRows {
                        state: rows.spec.name.clone(),
                        first,
                        end,
                    });
                }
                for (i, row) in from.chunks_exact(cols).enumerate() {
                    rows.row_mut(first + i)?.copy_from_slice(row);
                }
            }
        }
        Ok(())
    }
}

impl Rows {
    fn new(spec: StateSpec, step: usize) -> Result<Self, ExecError> {
        let ring = match spec.kind {
            StateKind::Ring { keep } => keep.most() as usize + step,
            StateKind::Windows { .. } => 0,
        };
        let mut rows = Rows {
            spec,
            ring,
            data: Vec::new(),
        };
        rows.grow(ring)?;
        Ok(rows)
    }

    pub(super) fn cols(&self) -> usize {
        self.spec.cols as usize
    }

    /// Row by token position (ring) or window (table).
    pub(super) fn row(&self, index: usize) -> &[f32] {
        let at = self.place(index) * self.cols();
        &self.data[at..at + self.cols()]
    }

    /// As [`Rows::row`], growing a table to hold the row.
    pub(super) fn row_mut(&mut self, index: usize) -> Result<&mut [f32], ExecError> {
        let (at, cols) = (self.place(index), self.cols());
        if self.ring == 0 {
            self.grow(at + 1)?;
        }
        Ok(&mut self.data[at * cols..(at + 1) * cols])
    }

    /// Rows `first..end` in at most two contiguous pieces.
    pub(super) fn pieces(&self, first: usize, end: usize) -> [&[f32]; 2] {
        let cols = self.cols();
        let count = end - first;
        let at = self.place(first);
        let until_wrap = if self.ring > 0 {
            count.min(self.ring - at)
        } else {
            count
        };
        [
            &self.data[at * cols..(at + until_wrap) * cols],
            &self.data[..(count - until_wrap) * cols],
        ]
    }

    fn place(&self, index: usize) -> usize {
        if self.ring > 0 {
            index % self.ring
        } else {
            index
        }
    }

    fn grow(&mut self, rows: usize) -> Result<(), ExecError> {
        let len = rows * self.cols();
        if len > self.data.len() {
            let more = len - self.data.len();
            let bytes = len as u64 * 4;
            self.data.try_reserve(more).map_err(|_| ExecError::Memory {
                what: "session state",
                bytes,
            })?;
            self.data.resize(len, 0.0);
        }
        Ok(())
    }
}
