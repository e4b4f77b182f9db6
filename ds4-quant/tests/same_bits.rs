//! A result depends on its two rows alone: not on the instruction set, the tile, the call or the threads.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a panic is the failure"
)]

use ds4_gguf::TensorType;
use ds4_quant::{Activations, Isa, Job, Matrix, Pool, Precision, codec, matmul_with};
use proptest::prelude::*;

/// Types with a codec.
fn types() -> impl Iterator<Item = TensorType> {
    TensorType::KNOWN
        .iter()
        .copied()
        .filter(|&ty| codec(ty).is_some())
}

/// A small generator of bytes: reproducible, and the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| (self.next() as u16 as f32 / 32768.0 - 1.0).powi(3))
            .collect()
    }
}

/// Bits, with one pattern for everything that is not a number.
fn bits(y: &[f32]) -> Vec<u32> {
    y.iter()
        .map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() })
        .collect()
}

/// Every element by the scalar specification.
fn specified(w: Matrix<'_>, x: &Activations) -> Vec<f32> {
    let codec = codec(w.ty()).unwrap();
    let pairs = (0..x.rows()).flat_map(|t| (0..w.rows()).map(move |r| (t, r)));
    pairs
        .map(|(t, r)| codec.dot(w.part(r, r + 1).bytes(), x, t))
        .collect()
}

fn multiplied(isa: Isa, pool: &Pool, w: Matrix<'_>, x: &Activations) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.rows() * w.rows()];
    matmul_with(isa, pool, &mut [Job { w, x, y: &mut y }]).unwrap();
    y
}

fn check(
    ty: TensorType,
    rows: usize,
    blocks: usize,
    tokens: usize,
    precision: Precision,
    seed: u64,
) {
    let mut noise = Noise(seed);
    let cols = blocks * ty.block_len();
    let packed = noise.bytes(rows * blocks * ty.block_bytes());
    let w = Matrix::new(ty, rows, cols, &packed).unwrap();
    let x = Activations::new(&noise.floats(tokens * cols), tokens, cols, precision).unwrap();
    let want = bits(&specified(w, &x));
    for isa in Isa::all() {
        for threads in [1, 3] {
            let got = multiplied(isa, &Pool::new(threads).unwrap(), w, &x);
            assert!(
                bits(&got) == want,
                "{ty} {rows} × {cols}, {tokens} tokens, {}, {threads} threads, seed {seed}",
                isa.name()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_instruction_set_tile_and_thread_count_gives_the_specified_bits(
        rows in 1usize..40, blocks in 1usize..20, tokens in 1usize..12, seed: u64,
    ) {
        for ty in types() {
            check(ty, rows, blocks, tokens, Precision::Fast, seed);
        }
    }

    #[test]
    fn exact_products_give_the_specified_bits(
        rows in 1usize..20, blocks in 1usize..6, tokens in 1usize..8, seed: u64,
    ) {
        for ty in types() {
            check(ty, rows, blocks, tokens, Precision::Exact, seed);
        }
    }
}

/// More rows of activations than any tile, batch or register holds.
#[test]
fn long_batches_give_the_specified_bits() {
    for ty in types() {
        check(ty, 11, 3, 261, Precision::Fast, 5);
    }
}

/// Rows picked out of a batch give what they gave in the batch.
#[test]
fn selected_rows_keep_their_bits() {
    let mut noise = Noise(7);
    for ty in types() {
        let cols = 512;
        let packed = noise.bytes(5 * cols / ty.block_len() * ty.block_bytes());
        let w = Matrix::new(ty, 5, cols, &packed).unwrap();
        let x = Activations::new(&noise.floats(9 * cols), 9, cols, Precision::Fast).unwrap();
        let all = bits(&specified(w, &x));
        let picks = [8, 0, 3, 3, 5, 1, 7, 2, 6, 4, 8];
        let some = x.select(&picks).unwrap();
        for isa in Isa::all() {
            let got = bits(&multiplied(isa, &Pool::new(1).unwrap(), w, &some));
            for (got, &p) in got.chunks(5).zip(&picks) {
                assert_eq!(got, &all[5 * p as usize..][..5], "{ty} {}", isa.name());
            }
        }
    }
}
