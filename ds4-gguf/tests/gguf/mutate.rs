//! Files that were right and are not any more: bits flipped, lengths blown up, ends cut off, pieces moved.

use crate::raw::Raw;

/// A stream of numbers that a seed determines (splitmix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Small valid files that together use every part of the format.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let all_types = include_bytes!("../data/gguf_py.gguf").to_vec();
    let mut version_2 = all_types.clone();
    version_2[4] = 2;
    let unknown_types = Raw::new(3, 1)
        .key("general.architecture", 8)
        .string("deepseek4")
        .tensor("a", &[8], 42, 0)
        .tensor("b", &[4, 2], 0, 32)
        .tensor("c", &[256], 999, 64)
        .data(96)
        .0;
    let id_107 = Raw::new(2, 1)
        .key("general.quantization.rocmfp2_layout", 8)
        .string("two-scale")
        .tensor("x", &[64, 2], 107, 0)
        .tensor("y", &[32], 107, 64)
        .data(96)
        .0;
    let nested = Raw::new(0, 2)
        .key("deep", 9)
        .bytes(&[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(6))
        .u32(8)
        .u64(2)
        .string("a")
        .string("b")
        .key("flags", 9)
        .u32(7)
        .u64(3)
        .bytes(&[0, 1, 1])
        .0;
    vec![all_types, version_2, unknown_types, id_107, nested]
}

/// Numbers that lengths, counts, offsets and dimensions do not survive.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    7,
    31,
    33,
    255,
    65_535,
    65_536,
    1 << 20,
    u32::MAX as u64,
    1 << 32,
    (1 << 61) + 1,
    i64::MAX as u64,
    u64::MAX - 31,
    u64::MAX,
];

/// One of `seeds` with one to four things wrong.
pub(crate) fn mutant(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.below(bytes.len());
        let len = 1 + rng.below((bytes.len() - at).min(64));
        match rng.below(8) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            2 | 3 => {
                let edge = EDGES[rng.below(EDGES.len())].to_le_bytes();
                let width = [4, 8][rng.below(2)].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&edge[..width]);
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.drain(at..at + len)),
            6 => {
                let piece = bytes[at..at + len].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let other = &seeds[rng.below(seeds.len())];
                let from = rng.below(other.len());
                let len = len.min(other.len() - from);
                let piece = other[from..from + len].to_vec();
                bytes.splice(at..(at + len).min(bytes.len()), piece);
            }
        }
    }
    bytes
}
