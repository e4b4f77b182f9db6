//! Compiled kernels against references in Rust, bit for bit, at small and odd shapes.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::have_llvm;
use device::reference::{
    Random, as_f32, block_sum_reference, codebook_reference, floats, launch, module, signed_bytes,
    tile_inputs, tile_reference, wave_sum,
};
use ds4_hip_gfx1151::{Options, Order};

#[test]
fn sums_over_blocks_are_equal_in_any_order_of_waves() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    for n in [1, 31, 128, 129, 1000] {
        let x = floats(&mut Random(n as u64), 3 * n);
        let want = block_sum_reference(&as_f32(&x), n);
        for order in [Order::Forward, Order::Reverse, Order::Seeded(7)] {
            let mut options = Options::default();
            options.order = order;
            let (got, stats) = launch(
                &module,
                "block_sum",
                3,
                128,
                &[&x],
                3,
                &[n as u32],
                &options,
            )
            .unwrap_or_else(|f| panic!("{f}"));
            assert_eq!(got, want, "n = {n}, {order:?}");
            assert_eq!((stats.blocks, stats.waves), (3, 12));
        }
    }
}

#[test]
fn integer_matvec_is_equal() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    for (rows, blocks) in [(1, 1), (3, 33), (5, 64)] {
        let mut random = Random(9);
        let mut row = |n: usize| -> Vec<u32> {
            (0..n)
                .flat_map(|_| {
                    let scale = random.float().to_bits();
                    std::iter::once(scale).chain(std::array::from_fn::<_, 8, _>(|_| random.word()))
                })
                .collect()
        };
        let (w, x) = (row(rows * blocks), row(blocks));
        let want: Vec<u32> = (0..rows)
            .map(|r| {
                let mut lanes = [0_f32; 32];
                for b in 0..blocks {
                    let (q, p) = (&w[(r * blocks + b) * 9..][..9], &x[b * 9..][..9]);
                    let dot: i32 = (0..32)
                        .map(|k| {
                            let byte =
                                |v: &[u32]| i32::from(v[1 + k / 4].to_le_bytes()[k % 4] as i8);
                            byte(q) * byte(p)
                        })
                        .sum();
                    let scale = f32::from_bits(q[0]) * f32::from_bits(p[0]);
                    lanes[b % 32] = scale.mul_add(dot as f32, lanes[b % 32]);
                }
                wave_sum(lanes).to_bits()
            })
            .collect();
        let (got, _) = launch(
            &module,
            "matvec",
            rows.div_ceil(2) as u32,
            64,
            &[&w, &x],
            rows,
            &[rows as u32, blocks as u32],
            &Options::default(),
        )
        .unwrap_or_else(|f| panic!("{f}"));
        assert_eq!(got, want, "{rows} x {blocks}");
    }
}

#[test]
fn codebooks_and_exchanges_are_equal() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    let mut random = Random(3);
    let x: Vec<u32> = (0..500).map(|_| random.word()).collect();
    let options = Options::default();
    let (got, _) = launch(&module, "codebook", 3, 32, &[&x], 77, &[77], &options).unwrap();
    assert_eq!(got, codebook_reference(&x[..77]));
    for n in [1_u32, 7, 32, 33, 100, 256] {
        let grid = 500 / n.max(2);
        let count = (grid.min(5) * n) as usize;
        let (got, _) = launch(
            &module,
            "reverse",
            grid.min(5),
            n,
            &[&x[..count.min(500)]],
            count,
            &[],
            &options,
        )
        .unwrap_or_else(|f| panic!("{f}"));
        let want: Vec<u32> = x[..count]
            .chunks(n as usize)
            .flat_map(|c| c.iter().rev().copied())
            .collect();
        assert_eq!(got, want, "block of {n}");
    }
    let (got, _) = launch(&module, "histogram", 2, 64, &[&x], 16, &[500], &options)
        .unwrap_or_else(|f| panic!("{f}"));
    let want: Vec<u32> = (0..16)
        .map(|k| x.iter().filter(|&&v| v & 15 == k).count() as u32)
        .collect();
    assert_eq!(got, want);
}

#[test]
fn matrix_tiles_are_equal() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    let (a, b) = tile_inputs();
    let (got, stats) = launch(
        &module,
        "tile_i8",
        1,
        32,
        &[&a, &b],
        256,
        &[],
        &Options::default(),
    )
    .unwrap();
    assert_eq!(got, tile_reference(&signed_bytes(&a), &signed_bytes(&b)));
    assert_eq!(stats.of(ds4_hip_gfx1151::Class::Wmma), 1);
    // Small whole numbers: every order of summation gives the same bits.
    let small = |seed| -> (Vec<i8>, Vec<u32>) {
        let mut random = Random(seed);
        let values: Vec<i8> = (0..256).map(|_| (random.word() % 17) as i8 - 8).collect();
        let halves: Vec<u16> = values.iter().map(|&v| half_of(v)).collect();
        (
            values,
            halves
                .chunks(2)
                .map(|p| u32::from(p[0]) | u32::from(p[1]) << 16)
                .collect(),
        )
    };
    let ((av, a), (bv, b)) = (small(1), small(2));
    let (got, _) = launch(
        &module,
        "tile_f16",
        1,
        32,
        &[&a, &b],
        256,
        &[],
        &Options::default(),
    )
    .unwrap();
    let want: Vec<f32> = tile_reference(&av, &bv)
        .into_iter()
        .map(|x| x as i32 as f32)
        .collect();
    assert_eq!(as_f32(&got), want);
}

/// A whole number of at most 4 bits as f16.
fn half_of(v: i8) -> u16 {
    let magnitude = v.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let e = 7 - magnitude.leading_zeros() as u16;
    let mantissa = (u16::from(magnitude) << (10 - e)) & 0x3ff;
    u16::from(v < 0) << 15 | (15 + e) << 10 | mantissa
}

/// The compiler's own sequences for division and square root must give the correctly rounded result.
#[test]
fn division_and_square_root_are_correctly_rounded() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        3.0,
        1e-45,
        1.1e-38,
        1e-38,
        -7e-40,
        3.4e38,
        1e30,
        -1e-30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        65504.0,
        6e-8,
        1.7e38,
        8.5e37,
        2.3e-38,
    ];
    let mut pairs: Vec<[f32; 2]> = edges.iter().flat_map(|&a| edges.map(|b| [a, b])).collect();
    let mut random = Random(11);
    pairs.extend((0..2000).map(|_| [f32::from_bits(random.word()), f32::from_bits(random.word())]));
    let x: Vec<u32> = pairs.iter().flatten().map(|f| f.to_bits()).collect();
    let n = pairs.len();
    let (got, _) = launch(
        &module,
        "floats",
        n.div_ceil(32) as u32,
        32,
        &[&x],
        4 * n,
        &[n as u32],
        &Options::default(),
    )
    .unwrap_or_else(|f| panic!("{f}"));
    for (k, [a, b]) in pairs.iter().enumerate() {
        let out = as_f32(&got[4 * k..][..4]);
        let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        assert!(
            same(out[0], a / b),
            "{a:e} / {b:e} = {:e}, not {:e}",
            a / b,
            out[0]
        );
        assert!(
            same(out[1], a.abs().sqrt()),
            "sqrt |{a:e}| is not {:e}",
            out[1]
        );
        assert!(same(out[3], a.floor() as i32 as f32), "floor {a:e}");
    }
}

#[test]
fn doubles_and_constants_are_equal() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    let mut random = Random(13);
    let mut pairs = vec![
        [1.0, 3.0],
        [1e308, 1e-5],
        [4e-320, 3.0],
        [1.0, 5e-324],
        [-7.0, 1e300],
        [1e-300, -1e10],
    ];
    pairs.extend((0..90).map(|_| {
        let mut one = || f64::from_bits(u64::from(random.word()) << 32 | u64::from(random.word()));
        [one(), one()]
    }));
    let x: Vec<u32> = pairs
        .iter()
        .flatten()
        .flat_map(|d: &f64| [d.to_bits() as u32, (d.to_bits() >> 32) as u32])
        .collect();
    let n = pairs.len();
    let (got, _) = launch(
        &module,
        "wide",
        n.div_ceil(32) as u32,
        32,
        &[&x],
        4 * n,
        &[n as u32],
        &Options::default(),
    )
    .unwrap_or_else(|f| panic!("{f}"));
    for (k, [a, b]) in pairs.iter().enumerate() {
        let double = |at: usize| f64::from_bits(u64::from(got[at]) | u64::from(got[at + 1]) << 32);
        let (quotient, rest) = (double(4 * k), double(4 * k + 2));
        let want = a / b;
        assert!(
            quotient.to_bits() == want.to_bits() || quotient.is_nan() && want.is_nan(),
            "{a:e} / {b:e} = {want:e}, not {quotient:e}"
        );
        let table = [3, 1, 4, 1, 5, 9, 2, 6][k & 7];
        assert_eq!(
            rest,
            ((0x1_0000_0001_u64 * k as u64 + table) % 1_000_003) as f64
        );
    }
}

#[test]
fn integer_sequences_of_the_compiler_are_equal() {
    if !have_llvm() {
        return;
    }
    let edges = [
        0,
        1,
        2,
        3,
        5,
        31,
        0x7f,
        0x80,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_fffe,
        0xffff_ffff,
    ];
    let mut random = Random(17);
    let mut pairs: Vec<[u32; 2]> = edges.iter().flat_map(|&a| edges.map(|b| [a, b])).collect();
    pairs.extend((0..300).map(|_| [random.word(), random.word() >> (random.word() & 31)]));
    // The one quotient that does not exist.
    pairs.retain(|&[a, b]| !(a == 0x8000_0000 && b | 1 == u32::MAX));
    let n = pairs.len();
    let input: Vec<u32> = pairs.iter().flatten().copied().collect();
    let (got, _) = launch(
        &module(&[]),
        "integers",
        n.div_ceil(32) as u32,
        32,
        &[&input],
        8 * n,
        &[n as u32],
        &Options::default(),
    )
    .unwrap_or_else(|f| panic!("{f}"));
    for (got, &[a, b]) in got.chunks_exact(8).zip(&pairs) {
        let b = b | 1;
        let fold = |x: u64| x as u32 ^ (x >> 32) as u32;
        let p = (u64::from(a) << 32 | u64::from(b)) / u64::from(b >> 3 | 5);
        let q = (u64::from(b) << 32 | u64::from(a)) as i64 % i64::from((a | 3) as i32);
        let counts = a.count_ones() + 100 * b.leading_zeros() + 10000 * (a | 64).trailing_zeros();
        let product = (a as i8 as u32).wrapping_mul(u32::from(b as u16));
        let want = [
            a / b,
            a % b,
            (a as i32 / b as i32) as u32,
            fold(p),
            fold(q as u64),
            counts.wrapping_add(b.swap_bytes()),
            a.rotate_right(b & 31)
                .wrapping_add((a as i32 >> 7) as u32)
                .wrapping_add(product),
            a.reverse_bits() ^ a.min(b) ^ (a as i32).max(b as i32) as u32,
        ];
        assert_eq!(got, want, "{a:#x} {b:#x}");
    }
}

#[test]
fn registers_chosen_at_run_time_are_equal() {
    if !have_llvm() {
        return;
    }
    let module = module(&[]);
    let mut random = Random(19);
    let x: Vec<u32> = (0..256).map(|_| random.word()).collect();
    for n in [0_u32, 1, 13, 42, 63] {
        let (got, _) = launch(
            &module,
            "indexed",
            1,
            32,
            &[&x],
            32,
            &[n],
            &Options::default(),
        )
        .unwrap_or_else(|f| panic!("{f}"));
        for (l, got) in (0_u32..).zip(got) {
            let mut v: [u32; 8] = std::array::from_fn(|i| x[l as usize * 8 + i]);
            let mut sum = v[n as usize & 7];
            v[n as usize >> 3 & 7] = 1000 + l;
            for i in 0..n {
                sum = match x[i as usize].wrapping_add(l) & 3 {
                    0 => sum.wrapping_add(i),
                    1 => sum ^ v[i as usize & 7],
                    2 => sum.wrapping_mul(3),
                    _ => sum.wrapping_sub(7),
                };
            }
            assert_eq!(got, sum, "n = {n}, lane {l}");
        }
    }
}
