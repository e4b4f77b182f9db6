//! Kernels: some rows of a matrix with all rows of activations, for the instruction set at hand.
#![expect(
    unsafe_code,
    reason = "calls functions compiled for instruction sets found at run time"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2_rows;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
mod tile;

use std::sync::OnceLock;

use ds4_gguf::TensorType;

use crate::accumulate::Plain;
use crate::activations::{QuantizeRow, q8_0_row, q8_k_row};
use crate::format::portable_kernel;
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
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
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
            if avx512::usable() {
                sets.push(Set::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        sets.push(Set::Neon);
        sets.into_iter().map(Self)
    }

    /// The fastest.
    pub fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Self::all().last().expect("scalar code runs everywhere"))
    }

    /// `"scalar"`; `"avx2"` (with FMA and F16C) and `"avx512"` on x86-64; `"neon"` on AArch64.
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
        }
    }

    /// The kernel of a type.
    pub(crate) fn kernel(self, ty: TensorType, precision: Precision) -> Kernel {
        #[cfg(target_arch = "x86_64")]
        let floats = ty.block_len() == 1 || precision == Precision::Exact;
        let own = match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 if floats => Some(avx2_rows::floats as Kernel),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => avx2::kernel(ty),
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => avx512::kernel(ty).or_else(|| avx2::kernel(ty)),
            #[cfg(target_arch = "aarch64")]
            Set::Neon => portable_kernel::<neon::Neon>(ty),
            Set::Scalar => None,
        };
        own.or_else(|| portable_kernel::<Plain>(ty))
            .unwrap_or(pairs)
    }

    /// Rows of activations to groups of 32.
    pub(crate) fn quantize_q8_0(self) -> QuantizeRow {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => avx2::quantize_q8_0,
            _ => q8_0_row,
        }
    }

    /// Rows of activations to groups of 256.
    pub(crate) fn quantize_q8_k(self) -> QuantizeRow {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 | Set::Avx512 => avx2::quantize_q8_k,
            _ => q8_k_row,
        }
    }
}

/// The specification, pair by pair.
fn pairs(w: Matrix<'_>, x: &Activations, y: &mut [&mut [f32]]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, with the corners: nothing, one number, ties, the smallest, the largest, no number.
    fn rows() -> Vec<Vec<f32>> {
        let mut seed = 1u64;
        let mut next = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) as f32 / 8_388_608.0 - 1.0
        };
        let mut rows: Vec<Vec<f32>> = Vec::new();
        for size in [1.0, 1e-3, 1e30, 1e-37, 1e-40, 3e38, 127.0] {
            rows.push((0..512).map(|_| next() * size).collect());
        }
        rows.push((0..512).map(|i| (i % 255) as f32 * 0.5 - 63.5).collect());
        rows.push(vec![0.0; 512]);
        rows.push(vec![-2.0; 512]);
        rows.push(
            (0..512)
                .map(|i| if i % 2 == 0 { 3.0 } else { -3.0 })
                .collect(),
        );
        for odd in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MIN_POSITIVE,
            1e-45,
        ] {
            rows.push((0..512).map(|i| if i == 300 { odd } else { 0.0 }).collect());
        }
        rows
    }

    #[test]
    fn every_instruction_set_quantizes_activations_to_the_same_bytes() {
        for x in rows() {
            let run = |quantize: QuantizeRow, group: usize| {
                let (mut q, mut d, mut s) = (vec![7; 512], vec![7.0; 512 / group], vec![7; 32]);
                quantize(&x, &mut q, &mut d, &mut s);
                let d: Vec<u32> = d
                    .iter()
                    .map(|d| if d.is_nan() { 1 } else { d.to_bits() })
                    .collect();
                (q, d, s)
            };
            for isa in Isa::all() {
                assert_eq!(
                    run(isa.quantize_q8_0(), 32),
                    run(q8_0_row, 32),
                    "{} {x:?}",
                    isa.name()
                );
                assert_eq!(
                    run(isa.quantize_q8_k(), 256),
                    run(q8_k_row, 256),
                    "{} {x:?}",
                    isa.name()
                );
            }
        }
    }
}
