//! WMMA: `D = A · B + C` with 16×16 matrices spread over a wave of 32 lanes.
//!
//! ```text
//! A   lane l holds row    l & 15, element k at bits k·width of its registers; both halves of the wave hold the same
//! B   lane l holds column l & 15, likewise
//! C,D 32-bit: register i of lane l is row 2i + (l >> 4), column l & 15
//!     16-bit: the same, in the lower or (op_sel[2]) upper half of each register
//! ```
//! Float sums run over k in ascending order in f32, each product exact, each sum rounded once; the hardware's order and inner
//! width are not documented. Source: AMD, "RDNA3.5 Instruction Set Architecture", Wave Matrix Multiply Accumulate; GPUOpen, "How
//! to accelerate AI applications on RDNA 3 using WMMA".

use super::operand::{At, Src};
use super::wave::{Lanes, Wave};
use crate::fault::{Done, Trouble};
use crate::float16::{bf16_from_f32, bf16_to_f32, from_f32, to_f32};
use crate::table::QUIET_NAN;

/// Element formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// f16 factors, f32 sums.
    F32F16,
    /// bf16 factors, f32 sums.
    F32Bf16,
    /// f16 throughout.
    F16F16,
    /// bf16 throughout.
    Bf16Bf16,
    /// 8-bit integers, i32 sums.
    I32Iu8,
    /// 4-bit integers, i32 sums.
    I32Iu4,
}

impl Format {
    /// Registers of A and of B.
    fn registers(self) -> u8 {
        match self {
            Format::I32Iu8 => 4,
            Format::I32Iu4 => 2,
            _ => 8,
        }
    }
}

/// A resolved matrix instruction.
pub(crate) struct Matrix {
    pub(crate) format: Format,
    pub(crate) dst: u8,
    pub(crate) src: [Src; 3],
    /// Bit 0: A is signed, bit 1: B is signed (integers); else the signs of A, B and C are turned.
    pub(crate) neg_lo: u8,
    /// Bit 2: absolute value of C (floats).
    pub(crate) neg_hi: u8,
    /// 16-bit C and D are in the upper halves.
    pub(crate) upper: bool,
    pub(crate) clamp: bool,
}

/// Execute it. EXEC must be all ones.
pub(crate) fn run(w: &mut Wave, i: &Matrix) -> Done {
    if w.exec() != u32::MAX {
        return Err(Trouble::MatrixLanesOff { exec: w.exec() }.into());
    }
    let count = i.format.registers();
    let (a, b) = (
        fragment(w, &i.src[0], count)?,
        fragment(w, &i.src[1], count)?,
    );
    let c = fragment(w, &i.src[2], 8)?;
    let mut d: [Lanes; 8] = [[0; 32]; 8];
    match i.format {
        Format::I32Iu8 => integers(i, 8, &a, &b, &c, &mut d),
        Format::I32Iu4 => integers(i, 4, &a, &b, &c, &mut d),
        _ => floats(i, &a, &b, &c, &mut d),
    }
    for (k, mut value) in (0_u8..).zip(d) {
        let register = i.dst.wrapping_add(k);
        if matches!(i.format, Format::F16F16 | Format::Bf16Bf16) {
            let (shift, keep) = if i.upper {
                (16, 0xffff)
            } else {
                (0, 0xffff_0000)
            };
            for (x, old) in value.iter_mut().zip(w.v_kept(register)) {
                *x = *x << shift | old & keep;
            }
        }
        w.write_v(register, u32::MAX, &value);
    }
    Ok(())
}

/// The registers of an operand; a constant is the same everywhere.
fn fragment(w: &Wave, src: &Src, count: u8) -> Done<[Lanes; 8]> {
    let mut out = [[0; 32]; 8];
    for k in 0..count {
        let mut buffer = [0; 32];
        let part = match src.at {
            At::V(register) => Src::new(At::V(register.wrapping_add(k))),
            _ => *src,
        };
        out[usize::from(k)] = *w.plain(&part, u32::MAX, &mut buffer)?;
    }
    Ok(out)
}

fn integers(
    i: &Matrix,
    width: usize,
    a: &[Lanes; 8],
    b: &[Lanes; 8],
    c: &[Lanes; 8],
    d: &mut [Lanes; 8],
) {
    let per_word = 32 / width;
    let unpack = |m: &[Lanes; 8], signed: bool| -> [[i32; 16]; 32] {
        std::array::from_fn(|l| {
            std::array::from_fn(|k| {
                let top = m[k / per_word][l] << (32 - width - width * (k % per_word));
                if signed {
                    top as i32 >> (32 - width)
                } else {
                    (top >> (32 - width)) as i32
                }
            })
        })
    };
    let (a, b) = (unpack(a, i.neg_lo & 1 != 0), unpack(b, i.neg_lo & 2 != 0));
    for r in 0..8 {
        for l in 0..32 {
            let (row, column) = (&a[2 * r + (l >> 4)], &b[l]);
            let sum: i64 = row.iter().zip(column).map(|(x, y)| i64::from(x * y)).sum();
            let total = sum + i64::from(c[r][l] as i32);
            d[r][l] = if i.clamp {
                total.clamp(i32::MIN.into(), i32::MAX.into()) as u32
            } else {
                total as u32
            };
        }
    }
}

fn floats(i: &Matrix, a: &[Lanes; 8], b: &[Lanes; 8], c: &[Lanes; 8], d: &mut [Lanes; 8]) {
    let narrow: fn(u32) -> f32 = match i.format {
        Format::F32Bf16 | Format::Bf16Bf16 => bf16_to_f32,
        _ => to_f32,
    };
    let unpack = |m: &[Lanes; 8], bit: u8| -> [[f32; 16]; 32] {
        let flip = |upper: usize| if upper == 0 { i.neg_lo } else { i.neg_hi } >> bit & 1 == 1;
        std::array::from_fn(|l| {
            std::array::from_fn(|k| {
                let x = narrow(m[k / 2][l] >> (16 * (k & 1)) & 0xffff);
                if flip(k & 1) { -x } else { x }
            })
        })
    };
    let (a, b) = (unpack(a, 0), unpack(b, 1));
    let half = matches!(i.format, Format::F16F16 | Format::Bf16Bf16);
    for r in 0..8 {
        for l in 0..32 {
            let start = if half {
                narrow(c[r][l] >> if i.upper { 16 } else { 0 } & 0xffff)
            } else {
                f32::from_bits(c[r][l])
            };
            let start = if i.neg_hi & 4 != 0 {
                start.abs()
            } else {
                start
            };
            let start = if i.neg_lo & 4 != 0 { -start } else { start };
            let (row, column) = (&a[2 * r + (l >> 4)], &b[l]);
            let mut sum = start;
            let mut nan = start.is_nan();
            for (x, y) in row.iter().zip(column) {
                // The product of two 16-bit floats is exact in f32, but for bf16's extremes.
                sum += x * y;
                nan |= x.is_nan() | y.is_nan();
            }
            if sum.is_nan() && !nan {
                sum = f32::from_bits(QUIET_NAN);
            }
            d[r][l] = match i.format {
                Format::F16F16 => from_f32(sum),
                Format::Bf16Bf16 => bf16_from_f32(sum),
                _ => sum.to_bits(),
            };
        }
    }
}
