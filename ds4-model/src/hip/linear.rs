//! Mat-vec over packed weights: one to four columns, each weight read once.
#![expect(unsafe_code, reason = "launches kernels")]

use std::sync::Arc;

use ds4_gguf::TensorType;
use ds4_hip::{Kernel, Module, Stream, View, ViewMut};

use super::error::{extent, same};
use super::{Error, Kernels, activations};

/// Columns that one launch multiplies at most.
pub const MAX_COLS: usize = 4;

/// Types that are multiplied with byte activations, and what their kernels are called.
pub const PACKED: [(TensorType, &str); 15] = [
    (TensorType::Q8_0, "q8_0"),
    (TensorType::Q4K, "q4_k"),
    (TensorType::Q2K, "q2_k"),
    (TensorType::Iq2Xxs, "iq2_xxs"),
    (TensorType::Iq2S, "iq2_s"),
    (TensorType::Iq3Xxs, "iq3_xxs"),
    (TensorType::Mxfp4, "mxfp4"),
    (TensorType::RocmFp2S40, "rocmfp2_s40"),
    (TensorType::RocmFp2TwoScale, "rocmfp2_two_scale"),
    (TensorType::RocmFp2Affine, "rocmfp2_affine"),
    (TensorType::RocmFp3, "rocmfp3"),
    (TensorType::RocmFp4, "rocmfp4"),
    (TensorType::RocmFp4Fast, "rocmfp4_fast"),
    (TensorType::RocmFp6, "rocmfp6"),
    (TensorType::RocmFp8, "rocmfp8"),
];

/// Which waves share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// None: two rows a wave, eight a block. For many rows.
    Whole,
    /// The four of a block: two rows a block. For few rows.
    Split,
}

impl Variant {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Split];

    /// The one for so many rows: by the shape alone, so that a result does not depend on anything else.
    pub const fn of(rows: usize) -> Self {
        // Below this, blocks of eight rows leave compute units without work.
        if rows < 8192 {
            Self::Split
        } else {
            Self::Whole
        }
    }

    const fn rows_per_block(self) -> u32 {
        match self {
            Self::Whole => 8,
            Self::Split => 2,
        }
    }
}

/// The kernels of one type.
#[derive(Debug)]
pub(crate) struct Linear {
    ty: TensorType,
    /// By columns, then by variant.
    kernels: [[Kernel; 2]; MAX_COLS],
}

/// Find the kernels of every type.
pub(crate) fn load(module: &Arc<Module>) -> Result<Vec<Linear>, Error> {
    let mut all = Vec::new();
    for (ty, name) in PACKED {
        let of = |cols: usize| {
            Ok::<_, Error>([
                module.kernel(&format!("linear_{name}_{cols}"))?,
                module.kernel(&format!("linear_{name}_{cols}_split"))?,
            ])
        };
        let kernels = [of(1)?, of(2)?, of(3)?, of(4)?];
        all.push(Linear { ty, kernels });
    }
    Ok(all)
}

/// A packed matrix on the device.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// What the bytes are.
    pub ty: TensorType,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub cols: usize,
    /// `rows · cols / block` blocks; at an address that is a multiple of 16.
    pub bytes: View<'a, u8>,
}

/// `y[c][r] = Σ_k W[r, k] · x[c][k]`.
///
/// * `w`: `[rows, cols]` packed, `cols` a multiple of 64 and of its block · `x`: 1 to 4 rows of `cols`
///   [activations] · `y`: `[n, rows]`
///
/// # Errors
/// [`Error::Type`] for a type without a kernel, [`Error::Shape`] and [`Error::Length`] for what does not fit, [`Error::Hip`].
pub fn linear(
    k: &Kernels,
    s: &Stream,
    w: &Weights<'_>,
    x: &View<'_, u8>,
    y: &mut ViewMut<'_, f32>,
) -> Result<(), Error> {
    linear_as(k, s, Variant::of(w.rows), w, x, y)
}

/// [`linear`] with a chosen variant, for tests and benches. The order of sums is the variant's.
///
/// # Errors
/// As for [`linear`].
pub fn linear_as(
    k: &Kernels,
    s: &Stream,
    variant: Variant,
    w: &Weights<'_>,
    x: &View<'_, u8>,
    y: &mut ViewMut<'_, f32>,
) -> Result<(), Error> {
    const NAME: &str = "linear";
    let shape = |what, found, must| Error::Shape {
        kernel: NAME,
        what,
        found,
        must,
    };
    let Some(kernels) = k.linear.iter().find(|l| l.ty == w.ty) else {
        return Err(Error::Type { ty: w.ty });
    };
    let (block, bytes) = (w.ty.block_len(), w.ty.block_bytes());
    let (rows, cols) = (extent(NAME, "rows", w.rows)?, extent(NAME, "cols", w.cols)?);
    if !w.cols.is_multiple_of(block) || !w.cols.is_multiple_of(64) {
        return Err(shape(
            "cols",
            w.cols,
            "a multiple of 64 and of the type's block",
        ));
    }
    same(NAME, "w", w.bytes.len(), w.rows * (w.cols / block) * bytes)?;
    if !w.bytes.address().is_multiple_of(16) {
        let at = (w.bytes.address() % 16) as usize;
        return Err(shape("the address of w, modulo 16,", at, "0"));
    }
    let row = activations::bytes(1, w.cols);
    let n = x.len() / row;
    if n == 0 || n > MAX_COLS {
        return Err(shape("the rows of x", n, "1 to 4"));
    }
    same(NAME, "x", x.len(), n * row)?;
    same(NAME, "y", y.len(), n * w.rows)?;
    let launch = kernels.kernels[n - 1][variant as usize]
        .launch(rows.div_ceil(variant.rows_per_block()), 128)
        .arg(&w.bytes)
        .arg(x)
        .arg_mut(y)
        .scalar(rows)
        .scalar(cols);
    // SAFETY: arguments and lengths are those stated above the kernel, checked here; what is read behind the weights is less
    // than the 16 bytes that every allocation has there.
    Ok(unsafe { launch.run(s) }?)
}
