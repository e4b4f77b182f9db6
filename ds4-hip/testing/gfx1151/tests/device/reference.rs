//! The kernels of `data/kernels.hip` in Rust, their inputs, and how they are launched.

use ds4_hip_gfx1151::{Arena, Fault, Module, Options, Stats};

use super::{bytes, compile, load, source, words};

/// Reproducible words.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 32) as u32
    }

    pub(crate) fn float(&mut self) -> f32 {
        (self.word() >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

/// Launch `name` with input buffers, an output of `out` words and scalars; the output.
#[allow(clippy::too_many_arguments, reason = "a launch has that many parts")]
pub(crate) fn launch(
    module: &Module,
    name: &str,
    grid: u32,
    block: u32,
    inputs: &[&[u32]],
    out: usize,
    scalars: &[u32],
    options: &Options,
) -> Result<(Vec<u32>, Stats), Box<Fault>> {
    let memory = Arena::new();
    let mut args = Vec::new();
    for input in inputs {
        args.extend(memory.alloc_read_only(&bytes(input)).to_le_bytes());
    }
    let result = memory.alloc(&vec![0; 4 * out]);
    args.extend(result.to_le_bytes());
    args.extend(scalars.iter().flat_map(|s| s.to_le_bytes()));
    let kernel = module.kernel(name).unwrap();
    let stats = kernel.launch([grid, 1, 1], [block, 1, 1], &args, &memory, options)?;
    Ok((words(&memory.read(result).unwrap()), stats))
}

/// The butterfly of the kernels: the same tree, so the same bits.
pub(crate) fn wave_sum(mut lanes: [f32; 32]) -> f32 {
    for m in [16, 8, 4, 2, 1] {
        let old = lanes;
        for l in 0..32 {
            lanes[l] = old[l] + old[l ^ m];
        }
    }
    lanes[0]
}

pub(crate) fn block_sum_reference(x: &[f32], n: usize) -> Vec<u32> {
    x.chunks_exact(n)
        .map(|x| {
            let mut lanes = [0_f32; 128];
            for (i, v) in x.iter().enumerate() {
                lanes[i % 128] += v;
            }
            let part: Vec<f32> = lanes
                .chunks_exact(32)
                .map(|w| wave_sum(std::array::from_fn(|l| w[l])))
                .collect();
            (part[0] + part[1] + part[2] + part[3]).to_bits()
        })
        .collect()
}

pub(crate) fn floats(random: &mut Random, n: usize) -> Vec<u32> {
    (0..n).map(|_| random.float().to_bits()).collect()
}

pub(crate) fn as_f32(x: &[u32]) -> Vec<f32> {
    x.iter().map(|&b| f32::from_bits(b)).collect()
}

pub(crate) fn codebook_reference(codes: &[u32]) -> Vec<u32> {
    const TABLE: [u8; 8] = [0x81, 0xc0, 0xe0, 0xfb, 0x10, 0x30, 0x50, 0x7f];
    codes
        .iter()
        .map(|c| u32::from_le_bytes(c.to_le_bytes().map(|b| TABLE[usize::from(b & 7)])))
        .collect()
}

pub(crate) fn tile_reference(a: &[i8], b: &[i8]) -> Vec<u32> {
    (0..256)
        .map(|i| {
            let (row, column) = (&a[i / 16 * 16..][..16], &b[i % 16 * 16..][..16]);
            row.iter()
                .zip(column)
                .map(|(x, y)| i32::from(*x) * i32::from(*y))
                .sum::<i32>() as u32
        })
        .collect()
}

pub(crate) fn tile_inputs() -> (Vec<u32>, Vec<u32>) {
    let mut random = Random(5);
    let mut side = || (0..64).map(|_| random.word()).collect();
    (side(), side())
}

pub(crate) fn signed_bytes(words: &[u32]) -> Vec<i8> {
    bytes(words).into_iter().map(|b| b as i8).collect()
}

pub(crate) fn module(defines: &[&str]) -> Module {
    load(&compile(&source("kernels.hip"), defines))
}
