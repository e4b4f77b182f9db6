//! Encoders: rows of `f32` to packed blocks, one format a file.
//!
//! Every encoder takes a row, optionally the importance of its columns, and the blocks to fill. Where nothing is
//! searched (`Q8_0`, `MXFP4`, `NVFP4`, floats) importance changes nothing; the lattices `IQ2_XXS` and `IQ2_XS` demand
//! it. Results equal the reference encoders' bytes, except where a lower error was found for the same block;
//! `tests/encode.rs` counts both.

mod float;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4;
mod iq4_nl;
mod iq4_xs;
mod lattice;
mod mxfp4;
mod nvfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_k;
mod q5_k;
mod q6_k;
mod q8_0;
mod recover;
mod recover_q2_k;
mod rocm;
mod rocmfp2;
mod rocmfp2_affine;
mod rocmfp3;
mod rocmfp4;
mod rocmfp6;
mod rocmfp8;
mod rocmi4;
mod two_level;

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use ds4_gguf::TensorType;

use crate::simd::lanes::{self, Lanes, Work};
use crate::{Error, Isa, Pool};

/// A format's encoder: what the checks around it need to know, and the search.
pub(crate) trait Encoder {
    /// The blocks it makes.
    const TY: TensorType;
    /// Whether it refuses to work without importance.
    const DEMANDS_IMPORTANCE: bool = false;
    /// No block reaches magnitudes above this one.
    const LARGEST: f32 = if Self::HALF_SCALES.is_empty() {
        f32::MAX
    } else {
        1e9
    };
    /// Where in a block its 16-bit float scales lie.
    const HALF_SCALES: &'static [usize] = &[];

    /// Whether a number of the block came out infinite.
    fn overflows(block: &[u8]) -> bool {
        Self::HALF_SCALES
            .iter()
            .any(|&at| block[at + 1] & 0x7c == 0x7c)
    }

    /// Fill `blocks` from `row`. Lengths match, all numbers are finite, importance is not negative.
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]);
}

/// An encoder as a function: instruction set, row, importance of its columns, blocks.
pub(crate) type Encode = fn(Isa, &[f32], Option<&[f32]>, &mut [u8]) -> Result<(), Error>;

/// The encoder of a type, if it has one.
pub(crate) fn encoder(ty: TensorType) -> Option<Encode> {
    Some(match ty {
        TensorType::F32 => checked::<float::F32>,
        TensorType::F16 => checked::<float::F16>,
        TensorType::Bf16 => checked::<float::Bf16>,
        TensorType::Q4_0 => checked::<q4_0::Q4_0>,
        TensorType::Q8_0 => checked::<q8_0::Q8_0>,
        TensorType::Q2K => checked::<q2_k::Q2K>,
        TensorType::Q3K => checked::<q3_k::Q3K>,
        TensorType::Q4K => checked::<q4_k::Q4K>,
        TensorType::Q5K => checked::<q5_k::Q5K>,
        TensorType::Q6K => checked::<q6_k::Q6K>,
        TensorType::Iq2Xxs => checked::<iq2_xxs::Iq2Xxs>,
        TensorType::Iq2Xs => checked::<iq2_xs::Iq2Xs>,
        TensorType::Iq2S => checked::<iq2_s::Iq2S>,
        TensorType::Iq3Xxs => checked::<iq3_xxs::Iq3Xxs>,
        TensorType::Iq3S => checked::<iq3_s::Iq3S>,
        TensorType::Iq4Nl => checked::<iq4_nl::Iq4Nl>,
        TensorType::Iq4Xs => checked::<iq4_xs::Iq4Xs>,
        TensorType::Mxfp4 => checked::<mxfp4::Mxfp4>,
        TensorType::Nvfp4 => checked::<nvfp4::Nvfp4>,
        TensorType::RocmFp4 => checked::<rocm::Searched<rocmfp4::RocmFp4, 16>>,
        TensorType::RocmFp4Fast => checked::<rocm::Searched<rocmfp4::RocmFp4Fast, 32>>,
        TensorType::RocmFp6 => checked::<rocm::Searched<rocmfp6::RocmFp6, 16>>,
        TensorType::RocmFp8 => checked::<rocm::Searched<rocmfp8::RocmFp8, 32>>,
        TensorType::RocmFp3 => checked::<rocm::Searched<rocmfp3::RocmFp3, 16>>,
        TensorType::RocmFp2S40 => checked::<rocm::Searched<rocmfp2::S40, 16>>,
        TensorType::RocmFp2TwoScale => checked::<rocm::Searched<rocmfp2::TwoScale, 16>>,
        TensorType::RocmFp2Affine => checked::<rocmfp2_affine::Affine>,
        TensorType::RocmI4 => checked::<rocm::Searched<rocmi4::RocmI4, 32>>,
        _ => return None,
    })
}

/// Encode one row. See [`Codec::encode`](crate::Codec::encode).
pub(crate) fn encode_row(
    ty: TensorType,
    row: &[f32],
    importance: Option<&[f32]>,
    blocks: &mut [u8],
) -> Result<(), Error> {
    let encode = encoder(ty).ok_or(Error::DecodeOnly { ty })?;
    encode(Isa::best(), row, importance, blocks)
}

/// Encode a matrix: rows in parallel, the same bytes for any number of threads.
///
/// * `x`: `[rows, cols]` · `importance`: `[cols]`, shared by all rows
/// * `blocks`: `rows · cols / block_len · block_bytes` bytes
///
/// ```
/// use ds4_gguf::TensorType;
/// use ds4_quant::{Pool, codec, encode_rows};
///
/// let x: Vec<f32> = (0..512).map(|i| (i as f32 * 0.1).sin()).collect();
/// let mut blocks = vec![0; 2 * 84];
/// encode_rows(&Pool::new(2)?, TensorType::Q2K, 256, &x, None, &mut blocks)?;
///
/// let mut back = vec![0.0; 512];
/// codec(TensorType::Q2K).expect("Q2_K is known").decode(&blocks, &mut back)?;
/// assert!(x.iter().zip(&back).all(|(x, y)| (x - y).abs() < 0.5));
/// # Ok::<(), ds4_quant::Error>(())
/// ```
///
/// # Errors
/// [`Error::DecodeOnly`] for a type that no encoder knows, whether or not it can be decoded; [`Error::Cols`] when `cols`
/// is 0 or not a whole number of blocks; [`Error::Length`] when `x` is not whole rows or `blocks` does not fit. Then those
/// of [`Codec::encode`](crate::Codec::encode), for the first row that has one; indices count from the start of `x` and
/// `blocks`, and `blocks` holds rows in part.
pub fn encode_rows(
    pool: &Pool,
    ty: TensorType,
    cols: usize,
    x: &[f32],
    importance: Option<&[f32]>,
    blocks: &mut [u8],
) -> Result<(), Error> {
    encode_rows_with(Isa::best(), pool, ty, cols, x, importance, blocks)
}

/// [`encode_rows`] with a chosen instruction set, for tests and benches: the same bytes come out.
///
/// # Errors
/// As [`encode_rows`].
pub fn encode_rows_with(
    isa: Isa,
    pool: &Pool,
    ty: TensorType,
    cols: usize,
    x: &[f32],
    importance: Option<&[f32]>,
    blocks: &mut [u8],
) -> Result<(), Error> {
    let encode = encoder(ty).ok_or(Error::DecodeOnly { ty })?;
    let (block, bytes) = (ty.block_len(), ty.block_bytes());
    if cols == 0 || !cols.is_multiple_of(block) {
        return Err(Error::Cols { ty, cols, block });
    }
    let rows = x.len() / cols;
    if x.len() != rows * cols {
        return Err(Error::Length {
            what: "weights of whole rows",
            got: x.len(),
            want: rows * cols,
        });
    }
    let row_bytes = cols / block * bytes;
    if blocks.len() != rows * row_bytes {
        return Err(Error::Length {
            what: "encoded blocks",
            got: blocks.len(),
            want: rows * row_bytes,
        });
    }
    let first: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    pool.for_chunks(blocks, row_bytes, |r, blocks| {
        if let Err(error) = encode(isa, &x[r * cols..][..cols], importance, blocks) {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(row, _)| r < *row) {
                *first = Some((r, error));
            }
        }
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some((
            r,
            Error::NonFinite {
                what: WEIGHT,
                index,
                value,
            },
        )) => Err(Error::NonFinite {
            what: WEIGHT,
            index: r * cols + index,
            value,
        }),
        Some((r, Error::OutOfRange { ty, block })) => Err(Error::OutOfRange {
            ty,
            block: r * (row_bytes / bytes) + block,
        }),
        Some((_, error)) => Err(error),
    }
}

struct Row<'a, E> {
    row: &'a [f32],
    importance: Option<&'a [f32]>,
    blocks: &'a mut [u8],
    encoder: PhantomData<E>,
}

impl<E: Encoder> Work for Row<'_, E> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        E::row(lanes, self.row, self.importance, self.blocks);
    }
}

/// The highest bit pattern of some numbers under a mask. Without the sign bit, patterns order like magnitudes, and those
/// of infinities and NaN come after all others.
struct Highest<'a> {
    of: &'a [f32],
    mask: u32,
}

impl Work for Highest<'_> {
    type Out = u32;

    #[inline(always)]
    fn run<L: Lanes>(self, _lanes: L) -> u32 {
        let mut highest = 0;
        for x in self.of {
            highest = highest.max(x.to_bits() & self.mask);
        }
        highest
    }
}

/// Check, encode, check again.
fn checked<E: Encoder>(
    isa: Isa,
    row: &[f32],
    importance: Option<&[f32]>,
    blocks: &mut [u8],
) -> Result<(), Error> {
    let (len, bytes) = (E::TY.block_len(), E::TY.block_bytes());
    if !row.len().is_multiple_of(len) {
        return Err(Error::Cols {
            ty: E::TY,
            cols: row.len(),
            block: len,
        });
    }
    let want = row.len() / len * bytes;
    if blocks.len() != want {
        return Err(Error::Length {
            what: "encoded blocks",
            got: blocks.len(),
            want,
        });
    }
    if let Some(a) = importance {
        if a.len() != row.len() {
            return Err(Error::Length {
                what: "importance of columns",
                got: a.len(),
                want: row.len(),
            });
        }
        // Of all bit patterns those of negative numbers are the highest, −0 among them.
        let patterns = Highest {
            of: a,
            mask: u32::MAX,
        };
        if lanes::run(isa, patterns) >= f32::INFINITY.to_bits() {
            finite("importance of column", a)?;
            if let Some(column) = a.iter().position(|&a| a < 0.0) {
                return Err(Error::NegativeImportance {
                    column,
                    value: a[column],
                });
            }
        }
    } else if E::DEMANDS_IMPORTANCE {
        return Err(Error::MissingImportance { ty: E::TY });
    }
    let patterns = Highest {
        of: row,
        mask: u32::MAX >> 1,
    };
    if lanes::run(isa, patterns) > E::LARGEST.to_bits() {
        finite(WEIGHT, row)?;
        if let Some(index) = row.iter().position(|x| x.abs() > E::LARGEST) {
            return Err(Error::OutOfRange {
                ty: E::TY,
                block: index / len,
            });
        }
    }
    lanes::run(
        isa,
        Row {
            row,
            importance,
            blocks,
            encoder: PhantomData::<E>,
        },
    );
    match blocks.chunks_exact(bytes).position(E::overflows) {
        Some(block) => Err(Error::OutOfRange { ty: E::TY, block }),
        None => Ok(()),
    }
}

pub(crate) const WEIGHT: &str = "weight";

fn finite(what: &'static str, x: &[f32]) -> Result<(), Error> {
    match x.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(Error::NonFinite {
            what,
            index,
            value: x[index],
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible weights of awkward shapes: spikes, zeros, tiny values, and a bell.
    fn weights(n: usize) -> Vec<f32> {
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        (0..n)
            .map(|i| {
                let bell = next() + next() + next() + next() - 2.0;
                match i / 64 % 5 {
                    0 => 0.02 * bell,
                    1 => bell.powi(5) * 10.0,
                    2 if next() < 0.9 => 0.0,
                    3 => 3e-4 * bell,
                    _ => bell,
                }
            })
            .collect()
    }

    #[test]
    fn lanes_of_any_kind_give_the_same_bytes() {
        let x = weights(5 * 256);
        let a: Vec<f32> = weights(x.len()).iter().map(|a| a.abs()).collect();
        for &ty in TensorType::KNOWN {
            let Some(encode) = encoder(ty) else { continue };
            for importance in [None, Some(&a[..])] {
                let mut found = [
                    vec![0; x.len() / ty.block_len() * ty.block_bytes()],
                    Vec::new(),
                ];
                found[1] = found[0].clone();
                let [best, portable] = &mut found;
                match encode(Isa::best(), &x, importance, best) {
                    Err(Error::MissingImportance { .. }) => continue,
                    other => other.unwrap(),
                }
                encode(Isa::SCALAR, &x, importance, portable).unwrap();
                assert!(
                    best == portable,
                    "{ty}, importance {}",
                    importance.is_some()
                );
            }
        }
    }
}
