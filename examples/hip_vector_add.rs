//! ds4-hip alone: compile a kernel, load it, launch it, read the result.
//!
//! ```text
//! cargo run --example hip_vector_add                     the machine's HIP runtime
//! cargo run --example hip_vector_add -- LIBRARY          another one, for instance a look-alike of `ds4-hip/testing`
//! ```
#![expect(
    unsafe_code,
    clippy::print_stdout,
    reason = "launches a kernel, prints what came out"
)]

use std::path::Path;

use anyhow::Context;
use ds4_hip::{Buffer, Device, Error, Hip, Module, Search, Stream};
use ds4_hip_compile::{Compiler, Target};

const N: usize = 1000;

fn main() -> anyhow::Result<()> {
    let search = match std::env::args_os().nth(1) {
        Some(library) => Search::library(library),
        None => Search::default(),
    };
    let device = match Hip::load_with(&search).and_then(|hip| Device::open(&hip, 0)) {
        Ok(device) => device,
        Err(why @ (Error::NotInstalled { .. } | Error::NoDevice)) => {
            println!("Nothing to add on at all: {why}.");
            return Ok(());
        }
        Err(other) => return Err(other.into()),
    };
    let props = device.props();
    println!("{} ({}), {} units", props.name, props.arch, props.units);

    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Target::of(&props.arch).context("no compiler for this architecture")?;
    let code = Compiler::find(target)?
        .include(here.join("../ds4-hip/include"))
        .compile(
            &here.join("hip_vector_add.hip"),
            &std::env::temp_dir().join("ds4-kernels"),
        )?;
    let kernel = Module::load(&device, &std::fs::read(code)?)?.kernel("vector_add")?;

    let stream = Stream::new(&device)?;
    let x: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let dx = Buffer::from_slice(&stream, &x)?;
    let mut dy = Buffer::from_slice(&stream, &[0.5; N])?;
    let launch = kernel
        .launch(N.div_ceil(128) as u32, 128)
        .arg(&dx.view())
        .arg_mut(&mut dy.view_mut())
        .scalar(N as u32);
    // SAFETY: the arguments are those of the kernel, and both buffers have N values.
    unsafe { launch.run(&stream) }?;
    let y = stream.read(dy.view())?;
    anyhow::ensure!(y.iter().zip(&x).all(|(y, x)| *y == x + 0.5), "wrong sums");
    println!("{N} sums, the last one {}: all right", y[N - 1]);
    Ok(())
}
