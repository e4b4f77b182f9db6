//! Compiled kernels against references in Rust, bit for bit, at small and odd shapes; planted faults are caught.
#![allow(
    clippy::unwrap_used,
    reason = "parts of tests in functions of their own"
)]

mod device;

use device::{assemble, bytes, compile, have_llvm, load, one, source, words};
use ds4_hip_gfx1151::{Arena, Fault, Module, Options, Order, Stats, Trouble};

/// Reproducible words.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 32) as u32
    }

    fn float(&mut self) -> f32 {
        (self.word() >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

fn module(defines: &[&str]) -> Module {
    load(&compile(&source("kernels.hip"), defines))
}

/// Launch `name` with input buffers, an output of `out` words and scalars; the output.
#[allow(clippy::too_many_arguments, reason = "a launch has that many parts")]
fn launch(
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
fn wave_sum(mut lanes: [f32; 32]) -> f32 {
    for m in [16, 8, 4, 2, 1] {
        let old = lanes;
        for l in 0..32 {
            lanes[l] = old[l] + old[l ^ m];
        }
    }
    lanes[0]
}

fn block_sum_reference(x: &[f32], n: usize) -> Vec<u32> {
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

fn floats(random: &mut Random, n: usize) -> Vec<u32> {
    (0..n).map(|_| random.float().to_bits()).collect()
}

fn as_f32(x: &[u32]) -> Vec<f32> {
    x.iter().map(|&b| f32::from_bits(b)).collect()
}

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

fn codebook_reference(codes: &[u32]) -> Vec<u32> {
    const TABLE: [u8; 8] = [0x81, 0xc0, 0xe0, 0xfb, 0x10, 0x30, 0x50, 0x7f];
    codes
        .iter()
        .map(|c| u32::from_le_bytes(c.to_le_bytes().map(|b| TABLE[usize::from(b & 7)])))
        .collect()
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

fn tile_reference(a: &[i8], b: &[i8]) -> Vec<u32> {
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

fn tile_inputs() -> (Vec<u32>, Vec<u32>) {
    let mut random = Random(5);
    let mut side = || (0..64).map(|_| random.word()).collect();
    (side(), side())
}

fn signed_bytes(words: &[u32]) -> Vec<i8> {
    bytes(words).into_iter().map(|b| b as i8).collect()
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

/// The assembly of the kernels with `from` replaced by `to` everywhere in `kernel`.
fn planted(kernel: &str, from: &str, to: &str) -> Module {
    let text = String::from_utf8(compile(&source("kernels.hip"), &["-S"])).unwrap();
    let start = text.find(&format!("\n{kernel}:")).unwrap();
    let end = start + text[start..].find("s_endpgm").unwrap();
    assert!(text[start..end].contains(from), "{kernel} has no `{from}`");
    let body = text[start..end].replace(from, to);
    load(&assemble(&[&text[..start], &body, &text[end..]].concat()))
}

fn sum_of(module: &Module, options: &Options) -> Result<Vec<u32>, Box<Fault>> {
    let x = floats(&mut Random(1), 3 * 200);
    launch(module, "block_sum", 3, 128, &[&x], 3, &[200], options).map(|(out, _)| out)
}

#[test]
fn planted_lane_patterns_change_the_result() {
    if !have_llvm() {
        return;
    }
    let x = floats(&mut Random(1), 3 * 200);
    let want = block_sum_reference(&as_f32(&x), 200);
    let options = Options::default();
    let clean = planted("block_sum", "row_xmask:8", "row_xmask:8");
    assert_eq!(sum_of(&clean, &options).unwrap(), want);
    for (from, to) in [
        ("row_xmask:8", "row_xmask:4"),
        ("row_xmask:1 ", "row_shr:1 "),
        ("0x76543210", "0x76543211"),
        ("0xfedcba98", "0xfedcba89"),
        ("permlanex16", "permlane16"),
    ] {
        assert_ne!(
            sum_of(&planted("block_sum", from, to), &options).unwrap(),
            want,
            "{from} -> {to}"
        );
    }
}

#[test]
fn a_missing_barrier_is_a_race() {
    if !have_llvm() {
        return;
    }
    let module = planted("block_sum", "s_barrier", "s_nop 0");
    for order in [Order::Forward, Order::Reverse] {
        let mut options = Options::default();
        options.order = order;
        let fault = sum_of(&module, &options).unwrap_err();
        let seen = matches!(
            fault.trouble,
            Trouble::LdsRace { .. } | Trouble::UndefinedLds { .. }
        );
        assert!(seen, "{fault}");
    }
    // In the order 3, 2, 1, 0 everything has been written when wave 0 reads: only the record of accesses shows the fault.
    let mut options = Options::default();
    options.order = Order::Reverse;
    assert!(matches!(
        sum_of(&module, &options).unwrap_err().trouble,
        Trouble::LdsRace { .. }
    ));
    options.check_races = false;
    assert!(sum_of(&module, &options).is_ok());
}

#[test]
fn planted_selectors_and_fragments_change_the_result() {
    if !have_llvm() {
        return;
    }
    let codes: Vec<u32> = (0..32).map(|k| k * 0x0103_0507).collect();
    let run = |m: &Module| {
        launch(
            m,
            "codebook",
            1,
            32,
            &[&codes],
            32,
            &[32],
            &Options::default(),
        )
        .unwrap()
        .0
    };
    assert_eq!(
        run(&planted("codebook", "0x7070707", "0x7070707")),
        codebook_reference(&codes)
    );
    assert_ne!(
        run(&planted("codebook", "0x7070707", "0x7070703")),
        codebook_reference(&codes)
    );
    let (a, b) = tile_inputs();
    let want = tile_reference(&signed_bytes(&a), &signed_bytes(&b));
    let wrong_row = module(&["-DPLANT_ROW"]);
    let (got, _) = launch(
        &wrong_row,
        "tile_i8",
        1,
        32,
        &[&a, &b],
        256,
        &[],
        &Options::default(),
    )
    .unwrap();
    assert_ne!(got, want);
}

/// The order of halves matters in pairs: each must read before the other writes.
#[test]
fn pairs_read_before_they_write() {
    if !have_llvm() {
        return;
    }
    let module = one(
        "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v9, 3, v0\nv_mov_b32 v2, 5\nv_mov_b32 v3, 7\n\
         v_dual_mov_b32 v2, v3 :: v_dual_mov_b32 v3, v2\nglobal_store_b64 v9, v[2:3], s[6:7]",
        0,
    );
    let (got, stats) = device::run(
        module.kernel("k").unwrap(),
        1,
        32,
        &[0],
        64,
        &Options::default(),
    )
    .unwrap();
    assert_eq!(got[..2], [7, 5]);
    assert_eq!(stats.total(), 7);
}
