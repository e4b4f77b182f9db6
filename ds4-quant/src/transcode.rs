//! Rows of one type to rows of another, with what it costs: the step that `quantize` and `requant` share.

use ds4_gguf::TensorType;

use crate::matrix::row_bytes;
use crate::{Codec, Difference, Error, Imatrix, ImatrixError, Pool, codec};

/// Largest magnitude that [`NonFinite::Clamp`] leaves: the largest half float, so that every scale can be stored.
pub const CLAMP: f32 = 65_504.0;

/// Rows whose weights are all within this can be encoded in every type.
const SURE: f32 = 64.0;

/// What to do with weights that are no numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonFinite {
    /// Stop with an error that names tensor and index.
    #[default]
    Refuse,
    /// NaN becomes 0; infinities, and whatever lies beyond ±65504, become ±65504.
    Clamp,
}

/// How the rows of one tensor are taken from one type to another.
pub(crate) struct Transcode<'a> {
    from: &'static dyn Codec,
    to: TensorType,
    encode: crate::encode::Encode,
    cols: usize,
    /// Rows that share a vector of importance: those of one expert.
    rows_per_expert: usize,
    /// One vector an expert, or none.
    importance: Vec<&'a [f32]>,
    nonfinite: NonFinite,
}

/// The shape of a tensor as importance sees it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) cols: usize,
    pub(crate) rows_per_expert: usize,
    pub(crate) experts: usize,
}

impl Shape {
    /// `[cols, rows]` is one matrix, `[cols, rows, n]` is n of them.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond the address space.
    pub(crate) fn of(dims: &ds4_gguf::Dims) -> Result<Self, Error> {
        let shape = || {
            Some(Self {
                cols: usize::try_from(dims.cols()).ok()?,
                rows_per_expert: usize::try_from(dims.get(1)).ok()?,
                experts: usize::try_from(dims.get(2).checked_mul(dims.get(3))?).ok()?,
            })
        };
        shape().ok_or(Error::TooLarge {
            what: "a tensor",
            rows: usize::MAX,
            cols: usize::MAX,
        })
    }
}

/// The importance of each expert of tensor `name`; empty when the matrix has nothing for it.
///
/// An expert without an entry of its own among others that have one counts as one without importance: then nothing is
/// returned, for a tensor is encoded with or without importance as a whole.
pub(crate) fn importance<'a>(
    imatrix: &'a Imatrix,
    name: &str,
    shape: Shape,
) -> Result<Vec<&'a [f32]>, ImatrixError> {
    let all = (0..shape.experts)
        .map(|expert| imatrix.get(name, expert, shape.experts, shape.cols))
        .collect::<Result<Option<Vec<_>>, _>>()?;
    Ok(all.unwrap_or_default())
}

/// One row of a call: where it goes, and what became of it.
struct Row<'a> {
    blocks: &'a mut [u8],
    outcome: Result<Difference, Error>,
}

impl<'a> Transcode<'a> {
    /// From rows of `from` to rows of `to`; `importance` holds one vector for each expert, or none at all.
    pub(crate) fn new(
        from: TensorType,
        to: TensorType,
        shape: Shape,
        importance: Vec<&'a [f32]>,
        nonfinite: NonFinite,
    ) -> Result<Self, Error> {
        Ok(Self {
            from: codec(from).ok_or(Error::NoCodec { ty: from })?,
            to,
            encode: crate::encode::encoder(to).ok_or(Error::DecodeOnly { ty: to })?,
            cols: shape.cols,
            rows_per_expert: shape.rows_per_expert,
            importance,
            nonfinite,
        })
    }

    /// Take the rows from number `first` on through `f32`: `source` is whole rows, `blocks` gets as many.
    ///
    /// Indices in errors count from the start of the tensor.
    pub(crate) fn rows(
        &self,
        pool: &Pool,
        first: usize,
        source: &[u8],
        blocks: &mut [u8],
    ) -> Result<Difference, Error> {
        let [from, to] = [self.from.ty(), self.to].map(|ty| row_bytes(ty, self.cols));
        let count = source.len() / from;
        for (what, got, want) in [
            ("source rows", source.len(), count * from),
            ("encoded blocks", blocks.len(), count * to),
        ] {
            if got != want {
                return Err(Error::Length { what, got, want });
            }
        }
        let mut rows: Vec<Row<'_>> = blocks
            .chunks_exact_mut(to)
            .map(|blocks| Row {
                blocks,
                outcome: Ok(Difference::default()),
            })
            .collect();
        // A task of a few rows outlives the cost of starting it; its buffers serve all of them.
        const ROWS_A_TASK: usize = 8;
        pool.for_chunks(&mut rows, ROWS_A_TASK, |task, rows| {
            let mut x = vec![0.0; self.cols];
            let mut y = vec![0.0; self.cols];
            for (i, row) in rows.iter_mut().enumerate() {
                let r = task * ROWS_A_TASK + i;
                let source = &source[r * from..][..from];
                row.outcome = self.row(first + r, source, row.blocks, &mut x, &mut y);
            }
        });
        let mut sum = Difference::default();
        for row in &rows {
            sum.merge(row.outcome.as_ref().map_err(Clone::clone)?);
        }
        Ok(sum)
    }

    /// Look whether [`Self::rows`] would succeed, without the cost of encoding: weights within ±64 always do, others
    /// are tried.
    pub(crate) fn check(&self, pool: &Pool, first: usize, source: &[u8]) -> Result<(), Error> {
        let [from, to] = [self.from.ty(), self.to].map(|ty| row_bytes(ty, self.cols));
        const ROWS_A_TASK: usize = 64;
        let mut outcomes = vec![Ok(()); (source.len() / from).div_ceil(ROWS_A_TASK)];
        pool.for_chunks(&mut outcomes, 1, |task, outcome| {
            let mut x = vec![0.0; self.cols];
            let rows = source.chunks_exact(from).enumerate();
            outcome[0] = rows
                .skip(task * ROWS_A_TASK)
                .take(ROWS_A_TASK)
                .try_for_each(|(r, row)| {
                    self.load(row, &mut x)?;
                    if x.iter().any(|x| x.is_nan() || x.abs() > SURE) {
                        self.encode(first + r, &x, &mut vec![0; to])?;
                    }
                    Ok(())
                });
        });
        outcomes.into_iter().collect()
    }

    fn row(
        &self,
        r: usize,
        source: &[u8],
        blocks: &mut [u8],
        x: &mut [f32],
        y: &mut [f32],
    ) -> Result<Difference, Error> {
        self.load(source, x)?;
        self.encode(r, x, blocks)?;
        let mut difference = Difference::default();
        codec(self.to)
            .ok_or(Error::NoCodec { ty: self.to })?
            .decode(blocks, y)?;
        difference.add(x, y, self.importance_of(r))?;
        Ok(difference)
    }

    /// A row of the source as numbers.
    fn load(&self, source: &[u8], x: &mut [f32]) -> Result<(), Error> {
        self.from.decode(source, x)?;
        if self.nonfinite == NonFinite::Clamp {
            clamp(x);
        }
        Ok(())
    }

    fn importance_of(&self, r: usize) -> Option<&[f32]> {
        self.importance.get(r / self.rows_per_expert).copied()
    }

    /// Row `r` into blocks; indices in errors count from the start of the tensor.
    fn encode(&self, r: usize, x: &[f32], blocks: &mut [u8]) -> Result<(), Error> {
        (self.encode)(crate::Isa::best(), x, self.importance_of(r), blocks).map_err(|error| {
            match error {
                Error::NonFinite {
                    what: crate::encode::WEIGHT,
                    index,
                    value,
                } => Error::NonFinite {
                    what: crate::encode::WEIGHT,
                    index: r * self.cols + index,
                    value,
                },
                Error::OutOfRange { ty, block } => Error::OutOfRange {
                    ty,
                    block: r * (self.cols / ty.block_len()) + block,
                },
                other => other,
            }
        })
    }
}

/// What [`NonFinite::Clamp`] does.
fn clamp(x: &mut [f32]) {
    for x in x {
        *x = if x.is_nan() {
            0.0
        } else {
            x.clamp(-CLAMP, CLAMP)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(x: &[f32]) -> Vec<u8> {
        x.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    const SHAPE: Shape = Shape {
        cols: 32,
        rows_per_expert: 2,
        experts: 2,
    };

    #[test]
    fn the_first_bad_weight_of_the_tensor_is_named_whatever_the_threads() {
        let mut x = vec![0.5; 64 * 32];
        (x[70], x[1500]) = (f32::NAN, f32::INFINITY);
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let nonfinite = NonFinite::Refuse;
            let t = Transcode::new(
                TensorType::F32,
                TensorType::Q8_0,
                SHAPE,
                Vec::new(),
                nonfinite,
            )
            .unwrap();
            let mut blocks = vec![0; 64 * 34];
            let error = t.rows(&pool, 10, &pack(&x), &mut blocks).unwrap_err();
            assert!(
                matches!(error, Error::NonFinite { index, .. } if index == 10 * 32 + 70),
                "{error}"
            );
            assert_eq!(
                t.check(&pool, 10, &pack(&x)).map_err(|e| e.to_string()),
                Err(error.to_string())
            );
            let later = t.check(&pool, 3, &pack(&x[96..])).unwrap_err();
            assert!(
                matches!(later, Error::NonFinite { index: 1500, .. }),
                "{later}"
            );
            assert_eq!(t.check(&pool, 0, &pack(&x[..64])), Ok(()));
        }
    }

    #[test]
    fn every_type_encodes_what_is_not_tried() {
        let rows: [fn(usize) -> f32; 5] = [
            |_| SURE,
            |i| if i % 3 == 0 { SURE } else { -SURE },
            |i| if i == 200 { -SURE } else { 0.0 },
            |i| SURE * (i as f32).sin(),
            |i| if i < 9 { 1e-30 } else { SURE },
        ];
        let ones = [1.0; 256];
        let uneven: Vec<f32> = (0..256).map(|i| if i == 9 { 1e6 } else { 0.0 }).collect();
        for &ty in TensorType::KNOWN {
            let Some(codec) = codec(ty) else { continue };
            let mut blocks = vec![0; 256 / ty.block_len() * ty.block_bytes()];
            for (i, row) in rows.iter().enumerate() {
                let x: Vec<f32> = (0..256).map(row).collect();
                for importance in [None, Some(&ones[..]), Some(&uneven)] {
                    match codec.encode(&x, importance, &mut blocks) {
                        Ok(())
                        | Err(Error::DecodeOnly { .. } | Error::MissingImportance { .. }) => {}
                        Err(error) => panic!("{ty}, row {i}: {error}"),
                    }
                }
            }
        }
    }

    #[test]
    fn clamped_weights_are_zero_or_the_largest_half() {
        let mut x = vec![1.0; 32];
        (x[0], x[1], x[2], x[3]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1e30);
        let t = Transcode::new(
            TensorType::F32,
            TensorType::F32,
            SHAPE,
            Vec::new(),
            NonFinite::Clamp,
        )
        .unwrap();
        let mut blocks = vec![0; 32 * 4];
        let pool = Pool::new(1).unwrap();
        t.rows(&pool, 0, &pack(&x), &mut blocks).unwrap();
        (x[0], x[1], x[2], x[3]) = (0.0, CLAMP, -CLAMP, -CLAMP);
        assert_eq!(blocks, pack(&x));
    }

    #[test]
    fn each_expert_has_its_importance() {
        let wave: Vec<f32> = (0..4 * 256).map(|i| (i as f32 * 0.7).sin()).collect();
        let (a, b): (Vec<f32>, Vec<f32>) = (0..256).map(|i| (i as f32, 255.0 - i as f32)).unzip();
        let shape = Shape { cols: 256, ..SHAPE };
        let pool = Pool::new(1).unwrap();
        let encode = |importance| {
            let ty = TensorType::Q2K;
            let t = Transcode::new(TensorType::F32, ty, shape, importance, NonFinite::Refuse);
            let mut blocks = vec![0; 4 * 84];
            t.unwrap()
                .rows(&pool, 0, &pack(&wave), &mut blocks)
                .unwrap();
            blocks
        };
        let (both, first) = (encode(vec![&a[..], &b]), encode(vec![&a[..], &a]));
        assert_eq!(both[..168], first[..168]);
        assert_ne!(both[168..], first[168..]);
    }
}
