//! Activations: rows of `f32`, quantized at most once for each kind of weight they meet.
//!
//! ```text
//! view    group  scale of a group            code
//! f32     –      –                           the number itself
//! Q8_0    32     d = max|x| / 127, as f16    round half away(x · 1/d_f32)
//! Q8_K    256    d = −max/127 (signed max)   min(127, round half even(x / d))
//! ```
//! Beside the codes stand the sums of each 16 of them, which turn minimum and offset terms of weights into one short
//! product. A group with a number that is not finite gets the scale NaN: it shows in every output it touches.
//! Source: ggml-org/llama.cpp:ggml/src/ggml-quants.c (`quantize_row_q8_0_ref`, `quantize_row_q8_K_ref`).

use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};
use ds4_gguf::TensorType;
use half::f16;

use crate::{Error, Isa, Pool};

/// How a product treats the activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// Activations stay `f32`; weights are decoded exactly. Slow and as right as `f32` gets.
    Exact,
    /// Activations meet block formats as signed bytes: groups of 32 under an f16 scale (Q8_0), for types of 256 weights a
    /// block groups of 256 under an f32 scale (Q8_K). Plain float weights (F32, F16, BF16) still see `f32`.
    ///
    /// A group with a number that is not finite has the scale NaN, which shows in every output it touches.
    /// Source: ggml-org/llama.cpp:ggml/src/ggml-quants.c (`quantize_row_q8_0_ref`, `quantize_row_q8_K_ref`).
    #[default]
    Fast,
}

/// Rows of activations `[rows, cols]`, with quantized views made on first use and then shared.
///
/// Cloning and [`Activations::select`] copy no numbers.
#[derive(Clone, Debug)]
pub struct Activations {
    rows: Arc<Rows>,
    picks: Option<Arc<[u32]>>,
}

#[derive(Debug)]
struct Rows {
    x: Vec<f32>,
    rows: usize,
    cols: usize,
    precision: Precision,
    q8_0: OnceLock<Quantized>,
    q8_k: OnceLock<Quantized>,
}

/// 32 codes, placed where a 256-bit load is cheap.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(32))]
struct Codes([i8; 32]);

/// All rows in signed bytes.
#[derive(Debug)]
pub(crate) struct Quantized {
    cols: usize,
    group: usize,
    codes: Vec<Codes>,
    scales: Vec<f32>,
    sums: Vec<i16>,
}

/// One row of a [`Quantized`]: codes `[cols]`, scales `[cols / group]`, sums of codes `[cols / 16]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuantizedRow<'a> {
    pub(crate) codes: &'a [i8],
    pub(crate) scales: &'a [f32],
    pub(crate) sums: &'a [i16],
}

impl Activations {
    /// Take rows of activations.
    ///
    /// * `x`: `[rows, cols]`
    ///
    /// # Errors
    /// [`Error::Length`] when `x` does not hold `rows · cols` numbers, [`Error::TooLarge`] when that overflows.
    pub fn new(x: &[f32], rows: usize, cols: usize, precision: Precision) -> Result<Self, Error> {
        let want = rows.checked_mul(cols).ok_or(Error::TooLarge {
            what: "a block of activations",
            rows,
            cols,
        })?;
        if x.len() != want {
            return Err(Error::Length {
                what: "activations",
                got: x.len(),
                want,
            });
        }
        Ok(Self {
            rows: Arc::new(Rows {
                x: x.to_vec(),
                rows,
                cols,
                precision,
                q8_0: OnceLock::new(),
                q8_k: OnceLock::new(),
            }),
            picks: None,
        })
    }

    /// Rows seen by a product.
    pub fn rows(&self) -> usize {
        self.picks.as_ref().map_or(self.rows.rows, |p| p.len())
    }

    /// Numbers a row.
    pub fn cols(&self) -> usize {
        self.rows.cols
    }

    /// How products treat these activations.
    pub fn precision(&self) -> Precision {
        self.rows.precision
    }

    /// The rows named by `rows`, in that order, repeats allowed. Quantized views are shared, so a row has the same
    /// codes here as there.
    ///
    /// # Errors
    /// [`Error::Row`] when an index is not below [`Activations::rows`].
    pub fn select(&self, rows: &[u32]) -> Result<Self, Error> {
        let have = self.rows();
        if let Some(&row) = rows.iter().find(|&&r| r as usize >= have) {
            return Err(Error::Row {
                row: row as usize,
                rows: have,
            });
        }
        let picks = match &self.picks {
            None => rows.into(),
            Some(p) => rows.iter().map(|&r| p[r as usize]).collect(),
        };
        Ok(Self {
            rows: Arc::clone(&self.rows),
            picks: Some(picks),
        })
    }

    /// Row `row` as it was given.
    ///
    /// # Panics
    /// When `row` is not below [`Activations::rows`].
    pub fn row(&self, row: usize) -> &[f32] {
        let at = self.stored(row) * self.rows.cols;
        &self.rows.x[at..at + self.rows.cols]
    }

    /// Where row `row` of a product is stored.
    fn stored(&self, row: usize) -> usize {
        self.picks.as_ref().map_or(row, |p| p[row] as usize)
    }

    /// Row `row` in groups of 32; quantizes all rows on first use.
    pub(crate) fn q8_0(&self, row: usize) -> QuantizedRow<'_> {
        let make = || Quantized::new(&self.rows, Q8_0_GROUP, None);
        self.rows.q8_0.get_or_init(make).row(self.stored(row))
    }

    /// Row `row` in groups of 256; quantizes all rows on first use.
    pub(crate) fn q8_k(&self, row: usize) -> QuantizedRow<'_> {
        let make = || Quantized::new(&self.rows, Q8_K_GROUP, None);
        self.rows.q8_k.get_or_init(make).row(self.stored(row))
    }

    /// Make the view that weights of a type meet, with all threads.
    pub(crate) fn prepare(&self, ty: TensorType, pool: &Pool) {
        let (view, group) = match ty.block_len() {
            _ if self.precision() == Precision::Exact => return,
            1 => return,
            256 => (&self.rows.q8_k, Q8_K_GROUP),
            _ => (&self.rows.q8_0, Q8_0_GROUP),
        };
        if view.get().is_none() {
            // Made outside the lock: a thread that waits for the pool may be handed work that needs this view. If two
            // were at it, they made the same.
            let _ = view.set(Quantized::new(&self.rows, group, Some(pool)));
        }
    }
}

/// Numbers under one scale in the Q8_0 view.
const Q8_0_GROUP: usize = 32;
/// Numbers under one scale in the Q8_K view.
const Q8_K_GROUP: usize = 256;

/// Quantize one row: numbers in; codes, scales and sums of 16 codes out.
pub(crate) type QuantizeRow = fn(&[f32], &mut [i8], &mut [f32], &mut [i16]);

/// Where one row's results go.
struct RowTask<'a> {
    x: &'a [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    sums: &'a mut [i16],
}

impl Quantized {
    /// Quantize every row. `cols` is a multiple of `group`: the weights that ask for the view have such blocks.
    fn new(rows: &Rows, group: usize, pool: Option<&Pool>) -> Self {
        let isa = Isa::best();
        let quantize = if group == Q8_K_GROUP {
            isa.quantize_q8_k()
        } else {
            isa.quantize_q8_0()
        };
        let (n, cols) = (rows.x.len(), rows.cols);
        let mut codes = vec![Codes::zeroed(); n / 32];
        let mut scales = vec![0.0; n / group];
        let mut sums = vec![0; n / 16];
        match pool {
            Some(pool) if rows.rows > 1 => {
                let codes: &mut [i8] = bytemuck::cast_slice_mut(&mut codes);
                let outputs = codes
                    .chunks_exact_mut(cols)
                    .zip(scales.chunks_exact_mut(cols / group))
                    .zip(sums.chunks_exact_mut(cols / 16));
                let mut tasks: Vec<_> = rows
                    .x
                    .chunks_exact(cols)
                    .zip(outputs)
                    .map(|(x, ((codes, scales), sums))| RowTask {
                        x,
                        codes,
                        scales,
                        sums,
                    })
                    .collect();
                pool.for_chunks(&mut tasks, ROWS_PER_TASK, |_, tasks| {
                    for t in tasks {
                        quantize(t.x, t.codes, t.scales, t.sums);
                    }
                });
            }
            _ => quantize(
                &rows.x,
                bytemuck::cast_slice_mut(&mut codes),
                &mut scales,
                &mut sums,
            ),
        }
        Self {
            cols,
            group,
            codes,
            scales,
            sums,
        }
    }

    fn row(&self, row: usize) -> QuantizedRow<'_> {
        let part = |unit: usize| {
            let n = self.cols / unit;
            row * n..(row + 1) * n
        };
        let codes: &[i8] = bytemuck::cast_slice(&self.codes);
        QuantizedRow {
            codes: &codes[part(1)],
            scales: &self.scales[part(self.group)],
            sums: &self.sums[part(16)],
        }
    }
}

/// Rows that one task quantizes: some 10 µs of work.
const ROWS_PER_TASK: usize = 8;

/// Rows of Q8_0, the specification.
pub(crate) fn q8_0_row(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    quantize_groups(x, codes, scales, sums, 32, quantize_q8_0);
}

/// Rows of Q8_K, the specification.
pub(crate) fn q8_k_row(x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    quantize_groups(x, codes, scales, sums, 256, quantize_q8_k);
}

fn quantize_groups(
    x: &[f32],
    codes: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i16],
    group: usize,
    quantize: fn(&[f32], &mut [i8]) -> f32,
) {
    for ((x, q), d) in x
        .chunks_exact(group)
        .zip(codes.chunks_exact_mut(group))
        .zip(scales)
    {
        *d = quantize(x, q);
    }
    for (sum, q) in sums.iter_mut().zip(codes.chunks_exact(16)) {
        *sum = q.iter().map(|&q| i16::from(q)).sum();
    }
}

/// The largest magnitude, or `None` when a number is not finite.
fn largest(x: &[f32]) -> Option<f32> {
    let bits = x.iter().map(|v| v.abs().to_bits()).max().unwrap_or(0);
    let amax = f32::from_bits(bits);
    amax.is_finite().then_some(amax)
}

/// Q8_0: `[32]` numbers → `[32]` codes and the scale, rounded through `f16` after the codes were made.
fn quantize_q8_0(x: &[f32], q: &mut [i8]) -> f32 {
    let Some(amax) = largest(x) else {
        q.fill(0);
        return f32::NAN;
    };
    let d = amax / 127.0;
    let id = 1.0 / d;
    if !id.is_finite() {
        // Nothing left after rounding the scale to f16.
        q.fill(0);
        return 0.0;
    }
    for (q, &x) in q.iter_mut().zip(x) {
        *q = (x * id).round() as i8;
    }
    f16::from_f32(d).to_f32()
}

/// Q8_K: `[256]` numbers → `[256]` codes and the scale. The number of largest magnitude becomes −127.
fn quantize_q8_k(x: &[f32], q: &mut [i8]) -> f32 {
    let Some(amax) = largest(x) else {
        q.fill(0);
        return f32::NAN;
    };
    let Some(&max) = x.iter().find(|v| v.abs() == amax && amax != 0.0) else {
        q.fill(0);
        return 0.0;
    };
    let iscale = -127.0 / max;
    if !iscale.is_finite() {
        // Numbers below 2^-121: their products with any finite weight vanish in f32.
        q.fill(0);
        return 0.0;
    }
    for (q, &x) in q.iter_mut().zip(x) {
        *q = (iscale * x).round_ties_even().min(127.0) as i8;
    }
    1.0 / iscale
}
