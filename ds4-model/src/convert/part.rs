//! `Part`: a matrix of a checkpoint as rows of a type that GGUF has.
//!
//! | in the checkpoint | scales | becomes |
//! |---|---|---|
//! | F32, F16, BF16 | none | the same; F32 if it is a vector |
//! | F8_E4M3 | powers of two (F8_E8M0), one for 128 × 128 weights | BF16: four bits times a power of two |
//! | F8_E4M3 | F32, one for 128 × 128 weights | F32 |
//! | two E2M1 a byte (F4, I8 or U8) | powers of two, one for 32 weights of a row | MXFP4: the same codes in another order |
//! | I32, I64 | none | I32 |
//!
//! Two products may round, all else is exact. F8_E4M3 times an F32 scale is the product of these two in F32, as the
//! checkpoint's own code computes it. F8_E4M3 times a power of two below 2^−124 (E8M0 bytes 0, 1 and 2) may have bits below
//! the smallest BF16, 2^−133, and goes to the nearest multiple of that: off by 2^−134 at most.
//!
//! A scale that is no number (E8M0 255; an F32 one beside E2M1) makes its weights NaN. MXFP4 has a place for it in byte 255;
//! `ds4_quant::quantize` reads it so, and stops or replaces the weights as the caller wants.
//!
//! The order of E2M1 codes: a checkpoint has weights 2j and 2j+1 in byte j, low nibble first; a block of MXFP4 has
//! weights j and j+16. The values are the same bit for bit: `2^(e−127) · v` here, `2^(e−128) · 2v` there.
//! Sources: ggml-org/llama.cpp:conversion/deepseek.py; OCP 8-bit Floating Point Specification 1.0 (E4M3);
//! OCP Microscaling Formats 1.0 (E2M1, E8M0).

use std::ops::Range;

use ds4_gguf::TensorType;
use half::{bf16, f16};

use super::error::ConvertError;
use super::safetensors::Dtype;
use super::shards::{Place, Shards};

/// Rows and columns of weights under one scale of an F8_E4M3 matrix.
pub(super) const TILE: usize = 128;
/// Weights of a row under one scale of an E2M1 matrix.
pub(super) const GROUP: usize = 32;

/// Rows of a tensor: a matrix, a vector, or one matrix of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) place: Place,
    /// The row of the tensor, all matrices of a stack counted, that the part begins with.
    pub(super) first: usize,
    pub(super) cols: usize,
    pub(super) form: Form,
}

/// What rows are made of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Floats of this type, as they are.
    Floats(TensorType),
    /// Floats of this type as F32.
    Widened(TensorType),
    /// F8_E4M3 times scales.
    Tiles {
        scales: Place,
        /// The row of scales that the matrix of the part begins with.
        first: usize,
        /// Rows of that matrix before the part.
        before: usize,
        /// Scales are powers of two.
        powers: bool,
    },
    /// E2M1 codes; one scale for 32 weights of a row.
    Groups { scales: Place, powers: bool },
    /// Expert numbers below `experts`, in I32 or I64.
    Integers { wide: bool, experts: usize },
}

impl Form {
    /// The type of the rows that come out.
    pub(super) fn ty(self) -> TensorType {
        match self {
            Self::Floats(ty) => ty,
            Self::Tiles { powers: true, .. } => TensorType::Bf16,
            Self::Widened(_) | Self::Tiles { powers: false, .. } => TensorType::F32,
            Self::Groups { .. } => TensorType::Mxfp4,
            Self::Integers { .. } => TensorType::I32,
        }
    }
}

/// The type of floats that stay what they are.
pub(super) fn floats(dtype: Dtype) -> Option<TensorType> {
    match dtype {
        Dtype::F32 => Some(TensorType::F32),
        Dtype::F16 => Some(TensorType::F16),
        Dtype::Bf16 => Some(TensorType::Bf16),
        _ => None,
    }
}

impl Part {
    /// Append `rows` of the part to `out`, in the form of [`Form::ty`].
    pub(super) fn rows(
        &self,
        shards: &Shards,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let (count, cols) = (rows.len(), self.cols);
        let at = self.first + rows.start;
        match self.form {
            Form::Floats(ty) => {
                let row = cols * ty.block_bytes();
                let start = out.len();
                out.resize(start + count * row, 0);
                shards.read(self.place, (at * row) as u64, &mut out[start..])
            }
            Form::Widened(ty) => {
                let size = ty.block_bytes();
                let bytes = read(shards, self.place, at * cols * size, count * cols * size)?;
                match ty {
                    TensorType::F16 => {
                        out.extend(widened(&bytes, |b| f16::from_le_bytes(b).to_f32()))
                    }
                    TensorType::Bf16 => {
                        out.extend(widened(&bytes, |b| bf16::from_le_bytes(b).to_f32()));
                    }
                    _ => out.extend(bytes),
                }
                Ok(())
            }
            Form::Tiles {
                scales,
                first,
                before,
                powers,
            } => {
                let codes = read(shards, self.place, at * cols, count * cols)?;
                let wide = cols.div_ceil(TILE);
                let scale_rows = first + (before + rows.start) / TILE
                    ..first + (before + rows.end).div_ceil(TILE);
                let scales = scale_values(
                    shards,
                    scales,
                    powers,
                    scale_rows.start * wide,
                    scale_rows.len() * wide,
                )?;
                for (r, codes) in rows.zip(codes.chunks_exact(cols)) {
                    let row = first + (before + r) / TILE - scale_rows.start;
                    let scales = &scales[row * wide..][..wide];
                    for (codes, &scale) in codes.chunks(TILE).zip(scales) {
                        let weights = codes.iter().map(|&code| e4m3(code) * scale);
                        if powers {
                            out.extend(weights.flat_map(|w| bf16::from_f32(w).to_le_bytes()));
                        } else {
                            out.extend(weights.flat_map(f32::to_le_bytes));
                        }
                    }
                }
                Ok(())
            }
            Form::Groups { scales, powers } => {
                let groups = cols / GROUP;
                let codes = read(shards, self.place, at * cols / 2, count * cols / 2)?;
                let exponents =
                    self.exponents(shards, scales, powers, at * groups, count * groups)?;
                for (codes, exponent) in codes.as_chunks().0.iter().zip(exponents) {
                    out.push(exponent);
                    out.extend(split_halves(codes));
                }
                Ok(())
            }
            Form::Integers { wide, experts } => {
                let size = if wide { 8 } else { 4 };
                let words = read(shards, self.place, size * at * cols, size * count * cols)?;
                for (i, word) in words.chunks_exact(size).enumerate() {
                    let number = integer(word);
                    let known = u32::try_from(number).is_ok_and(|n| (n as usize) < experts);
                    if !known {
                        return Err(ConvertError::Expert {
                            path: shards.path(self.place).to_owned(),
                            tensor: shards.entry(self.place).name.clone(),
                            index: (at * cols + i) as u64,
                            found: number,
                            experts,
                        });
                    }
                    // Experts are numbered in 32 bits: there are fewer than that.
                    out.extend((number as i32).to_le_bytes());
                }
                Ok(())
            }
        }
    }

    /// Scales `first..` of an E2M1 matrix as E8M0.
    fn exponents(
        &self,
        shards: &Shards,
        scales: Place,
        powers: bool,
        first: usize,
        count: usize,
    ) -> Result<Vec<u8>, ConvertError> {
        if powers {
            return read(shards, scales, first, count);
        }
        let exponent = |(i, scale): (usize, f32)| {
            let exact = scale.is_normal() && scale > 0.0 && scale.to_bits().trailing_zeros() >= 23;
            match scale {
                _ if !scale.is_finite() => Ok(u8::MAX),
                _ if exact => Ok((scale.to_bits() >> 23) as u8),
                _ if scale == e8m0(0) => Ok(0),
                _ => Err(value(shards, scales, first + i, scale, "a power of two")),
            }
        };
        let scales_ = scale_values(shards, scales, false, first, count)?;
        scales_.into_iter().enumerate().map(exponent).collect()
    }
}

/// `len` bytes of a tensor from its byte `at`.
fn read(shards: &Shards, place: Place, at: usize, len: usize) -> Result<Vec<u8>, ConvertError> {
    let mut bytes = vec![0; len];
    shards.read(place, at as u64, &mut bytes)?;
    Ok(bytes)
}

/// `count` scales from number `first` on.
fn scale_values(
    shards: &Shards,
    place: Place,
    powers: bool,
    first: usize,
    count: usize,
) -> Result<Vec<f32>, ConvertError> {
    Ok(if powers {
        read(shards, place, first, count)?
            .into_iter()
            .map(e8m0)
            .collect()
    } else {
        let bytes = read(shards, place, 4 * first, 4 * count)?;
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect()
    })
}

/// Floats of two bytes as F32.
fn widened(bytes: &[u8], float: impl Fn([u8; 2]) -> f32) -> impl Iterator<Item = u8> {
    let halves = bytes.as_chunks().0.iter();
    halves.flat_map(move |half| float(*half).to_le_bytes())
}

/// A little-endian I64, or an I32.
fn integer(word: &[u8]) -> i64 {
    match word.first_chunk() {
        Some(word) => i64::from_le_bytes(*word),
        None => {
            let word = word.first_chunk().copied().unwrap_or_default();
            i64::from(i32::from_le_bytes(word))
        }
    }
}

fn value(
    shards: &Shards,
    place: Place,
    index: usize,
    found: impl ToString,
    expected: &'static str,
) -> ConvertError {
    ConvertError::Value {
        path: shards.path(place).to_owned(),
        tensor: shards.entry(place).name.clone(),
        index: index as u64,
        found: found.to_string().into(),
        expected,
    }
}

/// E4M3: `±2^(e−7) · (1 + m/8)`, `±2^−6 · m/8` for e = 0; all ones is NaN, there are no infinities.
fn e4m3(code: u8) -> f32 {
    let (e, m) = (code >> 3 & 15, f32::from(code & 7));
    let size = match (e, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => m / 512.0,
        _ => (1.0 + m / 8.0) * e8m0(e + 120),
    };
    if code & 0x80 == 0 { size } else { -size }
}

/// E8M0: `2^(e−127)`; 255 is NaN.
fn e8m0(e: u8) -> f32 {
    match e {
        0 => f32::from_bits(0x0040_0000),
        255 => f32::NAN,
        _ => f32::from_bits(u32::from(e) << 23),
    }
}

/// Codes in pairs, (0, 1) (2, 3) …, as codes in halves, (0, 16) (1, 17) ….
fn split_halves(pairs: &[u8; 16]) -> [u8; 16] {
    let code = |i: usize| pairs[i / 2] >> (4 * (i % 2)) & 15;
    std::array::from_fn(|j| code(j) | code(j + 16) << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e4m3_has_the_values_of_its_table() {
        for (code, value) in [
            (0x00, 0.0),
            (0x01, 0.001_953_125),
            (0x08, 0.015_625),
            (0x38, 1.0),
            (0x3c, 1.5),
            (0x7e, 448.0),
            (0xb8, -1.0),
            (0xfe, -448.0),
        ] {
            assert_eq!(e4m3(code), value, "{code:#x}");
        }
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert!((0..=255u8).all(|c| c & 0x7f == 0x7f || e4m3(c).is_finite()));
    }

    #[test]
    fn a_code_times_a_power_of_two_is_exact_in_bf16_but_for_the_smallest_powers() {
        for e in 0..255 {
            let products = (0..=255u8).map(e4m3).filter(|x| x.is_finite());
            let off = products.map(|code| {
                let exact = f64::from(code) * 2f64.powi(i32::from(e) - 127);
                let f32s = code * e8m0(e);
                if exact.abs() < f64::from(f32::MAX) {
                    assert_eq!(f64::from(f32s), exact, "{code} · 2^({e}−127)");
                    (exact - f64::from(bf16::from_f32(f32s).to_f32())).abs()
                } else {
                    assert!(f32s.is_infinite());
                    0.0
                }
            });
            let off = off.fold(0.0, f64::max);
            let most = if e < 3 { 2f64.powi(-134) } else { 0.0 };
            assert!(off <= most && (e >= 3) == (off == 0.0), "{e}: {off:e}");
        }
    }

    #[test]
    fn pairs_become_halves() {
        let pairs: [u8; 16] =
            std::array::from_fn(|i| (2 * i as u8 % 16) | ((2 * i as u8 + 1) % 16) << 4);
        let halves = split_halves(&pairs);
        for (j, byte) in halves.iter().enumerate() {
            assert_eq!((byte & 15, byte >> 4), (j as u8, j as u8), "{j}");
        }
        assert_eq!((e8m0(127), e8m0(0)), (1.0, f32::MIN_POSITIVE / 2.0));
    }
}
