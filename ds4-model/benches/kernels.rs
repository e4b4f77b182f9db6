//! The GPU kernels on a device: right against the CPU, and how much of the memory's bandwidth they use.
//!
//! ```text
//! cargo bench -p ds4-model --features hip --bench kernels                 the CPU in place of a GPU, small shapes
//! kernels --hip LIBRARY --code FOLDER [--host LIBRARY --host-code FOLDER] [--check | --time] [--small] [NAME …]
//! ```
//! `cargo xtask kernels --pack FOLDER` puts this program, the look-alikes and all code objects into a folder that runs
//! elsewhere. Numbers: GB/s of packed weight bytes, and as a part of what copying device to device moved in the same run.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints its table, and ends where something fails"
)]

#[path = "../tests/kernels/place.rs"]
mod place;

use std::path::PathBuf;

use ds4_gguf::TensorType;
use ds4_hip::{Buffer, Event, Stream};
use ds4_hip_compile::Target;
use ds4_model::hip::activations;
use ds4_model::hip::linear::{MAX_COLS, PACKED, Variant, Weights, linear_as};
use place::{Place, Rng, packed, product};

/// Matrices of V4 Flash, `[rows, cols]`.
const SHAPES: [(usize, usize); 7] = [
    (512, 4096),
    (1024, 4096),
    (2048, 4096),
    (4096, 2048),
    (4096, 8192),
    (32_768, 1024),
    (129_280, 4096),
];
const SMALL: [(usize, usize); 2] = [(64, 1024), (256, 2048)];

struct Args {
    hip: Option<PathBuf>,
    code: Option<PathBuf>,
    host: Option<PathBuf>,
    host_code: Option<PathBuf>,
    check: bool,
    time: bool,
    small: bool,
    names: Vec<String>,
}

fn args() -> Args {
    let mut args = Args {
        hip: None,
        code: None,
        host: None,
        host_code: None,
        check: false,
        time: false,
        small: false,
        names: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut path = || words.next().map(PathBuf::from);
        match word.as_str() {
            "--hip" => args.hip = path(),
            "--code" => args.code = path(),
            "--host" => args.host = path(),
            "--host-code" => args.host_code = path(),
            "--check" => args.check = true,
            "--time" => args.time = true,
            "--small" => args.small = true,
            // What cargo passes to every bench.
            "--bench" => {}
            name => args.names.push(name.to_owned()),
        }
    }
    if !args.check && !args.time {
        (args.check, args.time) = (args.host.is_some(), true);
    }
    args
}

fn main() {
    let args = args();
    let place = match (&args.hip, &args.code) {
        (Some(hip), Some(code)) => Place::open(hip, code),
        _ => {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels");
            let Some(code) = place::compile(Target::Host, &folder) else {
                return;
            };
            let bench = std::env::current_exe().expect("a program has a path");
            Place::open(&bench.with_file_name("libds4_hip_cpu.so"), &code)
        }
    };
    let props = place.device.props();
    println!("{} ({}), {} units", props.name, props.arch, props.units);
    let small = args.small || args.hip.is_none();
    let shapes: &[(usize, usize)] = if small { &SMALL } else { &SHAPES };
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|n| n == name);
    if args.check {
        let host = Place::open(
            &args.host.expect("--check needs --host"),
            &args.host_code.expect("--check needs --host-code"),
        );
        check(&place, &host, shapes, wanted);
    }
    if args.time {
        time(&place, shapes, small, wanted);
    }
}

/// Every type and shape, one and four columns: the same bits as on the CPU.
fn check(place: &Place, host: &Place, shapes: &[(usize, usize)], wanted: impl Fn(&str) -> bool) {
    let mut rng = Rng(9);
    let (mut equal, mut all) = (0, 0);
    for (ty, name) in PACKED.into_iter().filter(|(_, n)| wanted(n)) {
        for &(rows, cols) in shapes {
            // The CPU takes a minute for all rows of the head, and they are like the first ones.
            let rows = rows.min(8192 + 9);
            let w = packed(&mut rng, ty, rows, cols);
            let x = rng.floats(MAX_COLS * cols);
            for n in [1, MAX_COLS] {
                for variant in Variant::ALL {
                    let got = product(place, variant, ty, &w, &x[..n * cols], rows, cols);
                    let want = product(host, variant, ty, &w, &x[..n * cols], rows, cols);
                    let same = got
                        .iter()
                        .zip(&want)
                        .all(|(a, b)| a.to_bits() == b.to_bits());
                    (equal, all) = (equal + usize::from(same), all + 1);
                    if !same {
                        println!("DIFFERS {name} {rows} x {cols}, {n} columns, {variant:?}");
                    }
                }
            }
        }
    }
    println!("linear: {equal} of {all} products bit-equal to the CPU's");
}

/// Milliseconds of `work`, put into a graph and launched until it has run for a while.
fn graph_ms(
    stream: &Stream,
    times: u32,
    work: impl FnOnce(&Stream) -> Result<(), ds4_hip::Error>,
) -> f64 {
    let graph = stream.capture(work).unwrap().instantiate().unwrap();
    let device = stream.device();
    let (mut start, mut end) = (Event::timed(device).unwrap(), Event::timed(device).unwrap());
    graph.launch(stream).unwrap();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        start.record(stream).unwrap();
        for _ in 0..times {
            graph.launch(stream).unwrap();
        }
        end.record(stream).unwrap();
        end.synchronize().unwrap();
        best = best.min(f64::from(end.ms_since(&start).unwrap()) / f64::from(times));
    }
    best
}

/// Bytes a second that copying moves, read and written.
fn copy_rate(place: &Place, bytes: usize) -> f64 {
    let from = Buffer::<u8>::new(&place.device, bytes).unwrap();
    let mut to = Buffer::<u8>::new(&place.device, bytes).unwrap();
    let ms = graph_ms(&place.stream, 3, |s| {
        s.copy(from.view(), &mut to.view_mut())
    });
    2.0 * bytes as f64 / ms * 1e3
}

fn time(place: &Place, shapes: &[(usize, usize)], small: bool, wanted: impl Fn(&str) -> bool) {
    let copy = copy_rate(place, if small { 1 << 24 } else { 1 << 30 });
    println!("copy: {:.0} GB/s", copy / 1e9);
    println!("| type | shape | MB | variant | GB/s | of copy | us | 4 columns, time of 1 |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut rng = Rng(3);
    for (ty, name) in PACKED.into_iter().filter(|(_, n)| wanted(n)) {
        for &(rows, cols) in shapes {
            row(place, &mut rng, ty, name, rows, cols, copy, small);
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "one row of a table")]
fn row(
    place: &Place,
    rng: &mut Rng,
    ty: TensorType,
    name: &str,
    rows: usize,
    cols: usize,
    copy: f64,
    small: bool,
) {
    let Place {
        device,
        stream,
        kernels,
    } = place;
    let bytes = rows * (cols / ty.block_len()) * ty.block_bytes();
    // So many different matrices that caches hold none when its turn comes again.
    let rotated: usize = if small { 1 << 21 } else { 400 << 20 };
    let n = rotated.div_ceil(bytes).clamp(2, 512);
    let one = packed(rng, ty, rows.min(1024), cols);
    let stride = bytes.next_multiple_of(256);
    let mut all = Buffer::<u8>::new(device, n * stride).unwrap();
    for k in 0..n {
        for from in (0..bytes).step_by(one.len()) {
            let part = &one[..one.len().min(bytes - from)];
            let mut to = all
                .slice_mut(k * stride + from..k * stride + from + part.len())
                .unwrap();
            stream.upload(part, &mut to).unwrap();
        }
    }
    let x = Buffer::from_slice(stream, &rng.floats(MAX_COLS * cols)).unwrap();
    let mut q = Buffer::<u8>::new(device, activations::bytes(MAX_COLS, cols)).unwrap();
    activations::quantize(kernels, stream, &x.view(), cols, &mut q.view_mut()).unwrap();
    let mut y = Buffer::<f32>::new(device, MAX_COLS * rows).unwrap();
    let mut ms = |variant, columns: usize| {
        graph_ms(stream, 3, |s| {
            for k in 0..n {
                let weights = Weights {
                    ty,
                    rows,
                    cols,
                    bytes: all.slice(k * stride..k * stride + bytes).unwrap(),
                };
                let x = q.slice(..activations::bytes(columns, cols)).unwrap();
                let mut y = y.slice_mut(..columns * rows).unwrap();
                linear_as(kernels, s, variant, &weights, &x, &mut y).unwrap();
            }
            Ok(())
        }) / n as f64
    };
    for variant in Variant::ALL {
        let (one, four) = (ms(variant, 1), ms(variant, MAX_COLS));
        let rate = bytes as f64 / one * 1e3;
        let chosen = if variant == Variant::of(rows) {
            "*"
        } else {
            ""
        };
        println!(
            "| {name} | {rows}x{cols} | {:.1} | {variant:?}{chosen} | {:.0} | {:.0} % | {:.1} | {:.2} |",
            bytes as f64 / 1e6,
            rate / 1e9,
            100.0 * rate / copy,
            1e3 * one,
            four / one
        );
    }
}
