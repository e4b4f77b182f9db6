//! Random content of the right distribution, made piece by piece from a tensor's name.

use ds4_gguf::TensorType;
use half::f16;

use super::flash::Tensor;

/// Goes into the file's name: raise it when the same arguments give other bytes.
pub(super) const VERSION: u32 = 1;

/// Bytes made at a time; a multiple of every block size used here.
pub(super) const PIECE: usize = 84 * 66 * 34 * 4;

/// What fills a tensor. `sigma` is the standard deviation of its weights.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    F16 {
        sigma: f32,
    },
    F32 {
        mean: f32,
        sigma: f32,
    },
    Q8_0 {
        sigma: f32,
    },
    Iq2Xxs {
        sigma: f32,
    },
    Q2K {
        sigma: f32,
    },
    /// For each token `used` different experts of `count`.
    Experts {
        count: u32,
        used: u32,
    },
}

impl Content {
    /// Weights of a norm: around 1.
    pub(super) const NORM: Self = Self::F32 {
        mean: 1.0,
        sigma: 0.1,
    };
    /// Offsets and biases: around 0.
    pub(super) const SMALL: Self = Self::F32 {
        mean: 0.0,
        sigma: 0.1,
    };

    /// A product with `cols` inputs keeps the size of its input.
    pub(super) fn f16(cols: u64) -> Self {
        Self::F16 {
            sigma: keeping(cols),
        }
    }

    /// As [`Self::f16`].
    pub(super) fn q8_0(cols: u64) -> Self {
        Self::Q8_0 {
            sigma: keeping(cols),
        }
    }

    /// As [`Self::f16`].
    pub(super) fn iq2_xxs(cols: u64) -> Self {
        Self::Iq2Xxs {
            sigma: keeping(cols),
        }
    }

    /// As [`Self::f16`].
    pub(super) fn q2_k(cols: u64) -> Self {
        Self::Q2K {
            sigma: keeping(cols),
        }
    }

    /// The type of the tensor.
    pub(super) fn ty(self) -> TensorType {
        match self {
            Self::F16 { .. } => TensorType::F16,
            Self::F32 { .. } => TensorType::F32,
            Self::Q8_0 { .. } => TensorType::Q8_0,
            Self::Iq2Xxs { .. } => TensorType::Iq2Xxs,
            Self::Q2K { .. } => TensorType::Q2K,
            Self::Experts { .. } => TensorType::I32,
        }
    }
}

fn keeping(cols: u64) -> f32 {
    1.0 / (cols as f32).sqrt()
}

/// The bytes of one tensor, from its start to its end.
pub(super) struct Filler {
    content: Content,
    random: Random,
    left: u64,
    /// Entries of an expert table made so far.
    entries: u32,
}

impl Filler {
    /// From the start of `tensor`, whose name is the seed.
    pub(super) fn new(tensor: &Tensor) -> Self {
        let ty = tensor.content.ty();
        let blocks = tensor.dims.iter().product::<u64>() / ty.block_len() as u64;
        Self {
            content: tensor.content,
            random: Random::new(&tensor.name),
            left: blocks * ty.block_bytes() as u64,
            entries: 0,
        }
    }

    /// The next bytes, in the front of `piece`, which is [`PIECE`] long; `None` at the end.
    pub(super) fn next<'a>(&mut self, piece: &'a mut [u8]) -> Option<&'a [u8]> {
        let length = usize::try_from(self.left).map_or(piece.len(), |left| left.min(piece.len()));
        self.left -= length as u64;
        let piece = &mut piece[..length];
        match self.content {
            Content::F16 { sigma } => {
                self.values(piece, |z| f16::from_f32(sigma * z).to_le_bytes())
            }
            Content::F32 { mean, sigma } => {
                self.values(piece, |z| (mean + sigma * z).to_le_bytes())
            }
            // Codes are uniform in -128..=127: their deviation is 73.9.
            Content::Q8_0 { sigma } => self.blocks::<34>(piece, &[(0, sigma / 73.9)]),
            // Grid values times the block's own scales deviate by 33.
            Content::Iq2Xxs { sigma } => self.blocks::<66>(piece, &[(0, sigma / 33.0)]),
            // Code times scale deviates by 17; the minimum takes the mean, 1.5 codes, away.
            Content::Q2K { sigma } => {
                self.blocks::<84>(piece, &[(80, sigma / 17.0), (82, 1.5 * sigma / 17.0)])
            }
            Content::Experts { count, used } => {
                for entry in piece.chunks_exact_mut(4) {
                    let (token, choice) = (self.entries / used, self.entries % used);
                    entry.copy_from_slice(&((choice + 7 * token) % count).to_le_bytes());
                    self.entries += 1;
                }
            }
        }
        (!piece.is_empty()).then_some(piece)
    }

    fn values<const N: usize>(&mut self, piece: &mut [u8], encode: impl Fn(f32) -> [u8; N]) {
        for value in piece.chunks_exact_mut(N) {
            value.copy_from_slice(&encode(self.random.normal()));
        }
    }

    /// Random bytes, with a fixed half float at each of `scales`.
    fn blocks<const N: usize>(&mut self, piece: &mut [u8], scales: &[(usize, f32)]) {
        for bytes in piece.chunks_mut(8) {
            let random = self.random.next().to_le_bytes();
            bytes.copy_from_slice(&random[..bytes.len()]);
        }
        for block in piece.chunks_exact_mut(N) {
            for (at, scale) in scales {
                block[*at..at + 2].copy_from_slice(&f16::from_f32(*scale).to_le_bytes());
            }
        }
    }
}

/// SplitMix64. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
struct Random(u64);

impl Random {
    /// Seeded by a name (FNV-1a).
    fn new(name: &str) -> Self {
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Nearly normal, mean 0 and deviation 1: the sum of four uniform 16-bit numbers, scaled (`4 · (2¹⁶)²/12` is its variance).
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: u32 = (0..4)
            .map(|i| (bits >> (16 * i)) as u16)
            .map(u32::from)
            .sum();
        (sum as f32 - 2.0 * 65535.0) / (65536.0 / 3f32.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(content: Content, dims: &[u64]) -> Vec<u8> {
        let mut filler = Filler::new(&Tensor {
            name: "t".into(),
            dims: dims.to_vec(),
            content,
        });
        let (mut piece, mut all) = (vec![0; PIECE], Vec::new());
        while let Some(filled) = filler.next(&mut piece) {
            all.extend_from_slice(filled);
        }
        all
    }

    #[test]
    fn every_content_has_the_size_of_its_shape() {
        for (content, bytes) in [
            (Content::F16 { sigma: 1.0 }, 512 * 3 * 2),
            (Content::NORM, 512 * 3 * 4),
            (Content::q8_0(512), 512 * 3 / 32 * 34),
            (Content::iq2_xxs(512), 512 * 3 / 256 * 66),
            (Content::q2_k(512), 512 * 3 / 256 * 84),
        ] {
            assert_eq!(whole(content, &[512, 3]).len(), bytes, "{content:?}");
        }
    }

    #[test]
    fn a_tensor_larger_than_a_piece_is_the_same_stream() {
        let rows = (PIECE / 34 / 2 + 7) as u64;
        let long = whole(Content::q8_0(64), &[64, rows]);
        assert_eq!(long.len(), rows as usize * 68);
        assert!(
            long.chunks_exact(34).all(|block| block[..2] == long[..2]),
            "each block starts with the scale"
        );
    }

    /// 30000 values: the mean's own deviation is 0.006, the deviation's 0.004; bounds are five of them.
    #[test]
    fn normal_values_have_mean_0_and_deviation_1() {
        let mut random = Random::new("x");
        let values: Vec<f32> = (0..30_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f32>() / 30_000.0;
        let deviation = (values.iter().map(|v| v * v).sum::<f32>() / 30_000.0).sqrt();
        assert!(
            mean.abs() < 0.03 && (deviation - 1.0).abs() < 0.02,
            "{mean} {deviation}"
        );
    }

    #[test]
    fn expert_tables_name_different_experts_of_the_model() {
        let bytes = whole(Content::Experts { count: 16, used: 4 }, &[4, 1000]);
        for row in bytes.chunks_exact(16) {
            let mut experts: Vec<u32> = row
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            experts.sort_unstable();
            experts.dedup();
            assert!(
                experts.len() == 4 && experts.iter().all(|e| *e < 16),
                "{experts:?}"
            );
        }
    }
}
