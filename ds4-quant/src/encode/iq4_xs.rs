//! IQ4_XS: eight groups of 32 codes into sixteen uneven levels, signed 6-bit scales under one `f16`.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use super::iq4::{GROUP, Levels};
use super::two_level::BLOCK;
use crate::search::{energies, tile};
use crate::simd::lanes::{Float, LANES, Lanes};

const BYTES: usize = 136;

pub(crate) struct Iq4Xs;

impl Encoder for Iq4Xs {
    const TY: TensorType = TensorType::Iq4Xs;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let levels = Levels::new(lanes);
        let chunks = row
            .chunks(LANES * BLOCK)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            let energy = if importance.is_some() {
                energies(lanes, x)
            } else {
                [0.0; LANES]
            };
            let out = x.chunks_exact(BLOCK).zip(blocks.chunks_exact_mut(BYTES));
            for (b, (x, block)) in out.enumerate() {
                let t = tile::<L, GROUP>(lanes, x);
                let mut w = t;
                match importance {
                    Some(a) => {
                        let energy = lanes.splat(energy[b] * (2.0 / BLOCK as f32));
                        w = tile(lanes, &a[(i * LANES + b) * BLOCK..]);
                        for i in 0..GROUP {
                            w[i] = w[i] * (energy + t[i] * t[i]).sqrt();
                        }
                    }
                    None => {
                        for w in &mut w {
                            *w = *w * *w;
                        }
                    }
                }
                pack(&levels, &levels.fit(&t, &w).to_array(), x, block);
            }
        }
    }
}

/// ```text
/// byte 0..2    d
/// byte 2..4    top two bits of scale b at bits 2b
/// byte 4..8    low four bits of the scales, even ones low
/// byte 8..136  codes, 16 bytes a group
/// ```
#[inline(always)]
fn pack<L: Lanes>(levels: &Levels<L>, scales: &[f32; LANES], x: &[f32], block: &mut [u8]) {
    let extreme = scales
        .iter()
        .fold(0.0f32, |a, &b| if b.abs() > a.abs() { b } else { a });
    let d = -extreme / 32.0;
    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
    let (mut low, mut high) = ([0; 4], 0);
    let groups = x
        .chunks_exact(GROUP)
        .zip(block[8..].chunks_exact_mut(GROUP / 2));
    for (b, ((x, bytes), scale)) in groups.zip(scales).enumerate() {
        let l = (inverse * scale).round_ties_even().clamp(-32.0, 31.0);
        let unit = d * l;
        levels.pack(if unit == 0.0 { 0.0 } else { 1.0 / unit }, x, bytes);
        let code = (l + 32.0) as u16;
        low[b / 2] |= ((code & 15) as u8) << (4 * (b % 2));
        high |= code >> 4 << (2 * b);
    }
    block[..2].copy_from_slice(&f16::from_f32(d).to_le_bytes());
    block[2..4].copy_from_slice(&high.to_le_bytes());
    block[4..8].copy_from_slice(&low);
}
