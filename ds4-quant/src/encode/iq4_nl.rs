//! IQ4_NL: 32 codes into sixteen uneven levels under one `f16`.

use ds4_gguf::TensorType;
use half::f16;

use super::Encoder;
use super::iq4::{GROUP, Levels};
use crate::search::tile;
use crate::simd::lanes::{Float, LANES, Lanes};

const BYTES: usize = 18;

pub(crate) struct Iq4Nl;

impl Encoder for Iq4Nl {
    const TY: TensorType = TensorType::Iq4Nl;
    const HALF_SCALES: &'static [usize] = &[0];

    #[inline(always)]
    fn row<L: Lanes>(lanes: L, row: &[f32], importance: Option<&[f32]>, blocks: &mut [u8]) {
        let levels = Levels::new(lanes);
        let chunks = row
            .chunks(LANES * GROUP)
            .zip(blocks.chunks_mut(LANES * BYTES));
        for (i, (x, blocks)) in chunks.enumerate() {
            let t = tile::<L, GROUP>(lanes, x);
            let mut w = t;
            match importance {
                Some(a) => {
                    let mut energy = lanes.splat(0.0);
                    for &x in &t {
                        energy = energy + x * x;
                    }
                    energy = energy * lanes.splat(2.0 / GROUP as f32);
                    w = tile(lanes, &a[i * LANES * GROUP..]);
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
            let scales = levels.fit(&t, &w).to_array();
            let out = x.chunks_exact(GROUP).zip(blocks.chunks_exact_mut(BYTES));
            for ((x, block), scale) in out.zip(scales) {
                let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
                block[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
                levels.pack(inverse, x, &mut block[2..]);
            }
        }
    }
}
