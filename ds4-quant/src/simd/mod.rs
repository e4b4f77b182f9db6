//! Kernels: some rows of a matrix with all rows of activations, for the instruction set at hand.
#![expect(
    unsafe_code,
    reason = "calls functions compiled for instruction sets found at run time"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2_rows;
pub(crate) mod lanes;

use ds4_gguf::TensorType;

use crate::{Activations, Matrix, Precision, codec};

/// `y[t][r] = Σ w[r, i]·x[t, i]`.
///
/// * `w`: `[rows, cols]` · `x`: `[tokens, cols]` · `y`: `tokens` slices of `[rows]`
pub(crate) type Kernel = fn(Matrix<'_>, &Activations, &mut [&mut [f32]]);

/// An instruction set that this processor has. Results are the same for all; tests and benches choose, everybody
/// else takes [`Isa::best`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// Plain scalar code.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// All instruction sets this processor has, slowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        let mut sets = vec![Set::Scalar];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            sets.push(Set::Avx2);
        }
        sets.into_iter().map(Self)
    }

    /// The fastest.
    pub fn best() -> Self {
        Self::all().last().expect("scalar code runs everywhere")
    }

    /// `"scalar"`, `"avx2"`, …
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
        }
    }

    /// The kernel of a type.
    pub(crate) fn kernel(self, ty: TensorType, precision: Precision) -> Kernel {
        let floats = matches!(ty, TensorType::F32 | TensorType::F16 | TensorType::Bf16);
        match self.0 {
            Set::Scalar => scalar,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 if floats || precision == Precision::Exact => avx2_rows::floats,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => avx2::kernel(ty).unwrap_or(scalar),
        }
    }
}

/// The specification, pair by pair.
fn scalar(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
    let codec = codec(w.ty()).expect("Matrix::new checks that there is a codec");
    for r in 0..w.rows() {
        let row = w.part(r, r + 1).bytes();
        for (t, y) in y.iter_mut().enumerate() {
            y[r] = codec.dot(row, x, t);
        }
    }
}

/// `Σ a[i]·b[i]` in the order of every float product of this crate: 16 chains, then halves.
///
/// # Panics
/// When the lengths differ.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "a dot product of equal lengths");
    #[cfg(target_arch = "x86_64")]
    if let Some(dot) = avx2_rows::dot(a, b) {
        return dot;
    }
    dot_f32_scalar(a, b)
}

/// The specification of [`dot_f32`].
pub(crate) fn dot_f32_scalar(a: &[f32], b: &[f32]) -> f32 {
    let mut acc = crate::accumulate::FloatChains::new();
    acc.add(a, b);
    acc.sum()
}
