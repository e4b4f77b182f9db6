//! Modules, kernels, launches.
#![expect(unsafe_code, reason = "launches kernels")]

use ds4_hip::{Buffer, Error, Module, Stream};

use crate::Bench;

#[test]
fn kernels_compute() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let x: Vec<f32> = (0..1000).map(|i| i as f32 * 0.25).collect();
    let dx = Buffer::from_slice(&stream, &x).unwrap();
    let mut dy = Buffer::from_slice(&stream, &vec![1.0f32; 1000]).unwrap();
    let axpy = module.kernel("axpy").unwrap();
    assert_eq!(axpy.name(), "axpy");
    assert_eq!(axpy.resources().unwrap().max_block, 128);
    assert_eq!(axpy.blocks_per_unit(128).unwrap(), 1);
    let launch = axpy
        .launch(8, 128)
        .scalar(2.0f32)
        .arg(&dx.view())
        .arg_mut(&mut dy.view_mut())
        .scalar(1000u32);
    // SAFETY: the arguments are those of `axpy`, for 1000 values each.
    unsafe { launch.run(&stream) }.unwrap();
    let want: Vec<f32> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    assert_eq!(stream.read(dy.view()).unwrap(), want);
}

#[test]
fn sums_of_waves_and_blocks_are_those_of_the_tree() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let x: Vec<f32> = (0..1024)
        .map(|i| ((i * 7919) % 1000) as f32 * 1e-3 - 0.3)
        .collect();
    let dx = Buffer::from_slice(&stream, &x).unwrap();
    let mut dy = Buffer::<f32>::new(&bench.device, 4).unwrap();
    let sums = module.kernel("sums").unwrap();
    let launch = sums
        .launch(4, 256)
        .arg(&dx.view())
        .arg_mut(&mut dy.view_mut());
    // SAFETY: the arguments are those of `sums`, for 4 blocks.
    unsafe { launch.run(&stream) }.unwrap();
    let tree = |wave: &[f32]| {
        let mut t = wave.to_vec();
        while t.len() > 1 {
            let half = t.len() / 2;
            t = (0..half).map(|i| t[i] + t[i + half]).collect();
        }
        t[0]
    };
    let want: Vec<f32> = x
        .chunks(256)
        .map(|block| block.chunks(32).fold(0.0, |sum, wave| sum + tree(wave)))
        .collect();
    assert_eq!(stream.read(dy.view()).unwrap(), want);
}

#[test]
fn every_kind_of_argument_arrives() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let mut out = Buffer::<u64>::new(&bench.device, 5).unwrap();
    let e = Buffer::from_slice(&stream, &[1u32, 0xdead_beef]).unwrap();
    let kernel = module.kernel("arguments").unwrap();
    let launch = kernel
        .launch(1, 32)
        .arg_mut(&mut out.view_mut())
        .scalar(u32::MAX)
        .scalar(-2i32)
        .scalar(1.5f32)
        .scalar(0x0123_4567_89ab_cdefu64)
        .arg(&e.view());
    // SAFETY: the arguments are those of `arguments`.
    unsafe { launch.run(&stream) }.unwrap();
    let want = [
        u64::from(u32::MAX),
        (-2i64).cast_unsigned(),
        u64::from(1.5f32.to_bits()),
        0x0123_4567_89ab_cdef,
        0xdead_beef,
    ];
    assert_eq!(stream.read(out.view()).unwrap(), want);
}

#[test]
fn launches_that_no_device_can_take_are_refused_with_the_kernels_name() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let axpy = module.kernel("axpy").unwrap();
    for (grid, block) in [(0, 128), (u32::MAX, 128), (1, 0), (1, 1025)] {
        // SAFETY: it is not run.
        let error = unsafe { axpy.launch(grid, block).run(&stream) }.unwrap_err();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
        assert!(error.to_string().contains("axpy"), "{error}");
    }
    let mut many = axpy.launch(1, 128);
    for i in 0..25u32 {
        many = many.scalar(i);
    }
    // SAFETY: it is not run.
    let error = unsafe { many.run(&stream) }.unwrap_err();
    assert!(error.to_string().contains("at most 24"), "{error}");
}

#[test]
fn code_that_is_none_and_kernels_that_are_not_there_are_refused() {
    let bench = Bench::new();
    for code in [
        &b""[..],
        b"\x7fELF",
        b"not a code object at all, whatever its length is",
    ] {
        let error = Module::load(&bench.device, code).unwrap_err();
        let Error::Module { arch, bytes, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((&**arch, *bytes), ("host", code.len()));
    }
    let Some(module) = bench.module() else { return };
    for name in ["nothing", "", "a\0b"] {
        let error = module.kernel(name).unwrap_err();
        assert!(
            matches!(&error, Error::NoKernel { name: n } if &**n == name),
            "{error}"
        );
    }
}

#[test]
fn what_goes_wrong_in_a_kernel_is_told_when_it_is_waited_for() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let mut y = Buffer::from_slice(&stream, &[0.0f32; 64]).unwrap();
    for (name, block, what) in [
        ("divergent", 32, "wave operation"),
        ("lonely", 64, "block barrier"),
    ] {
        let kernel = module.kernel(name).unwrap();
        let launch = kernel.launch(1, block).arg_mut(&mut y.view_mut());
        // SAFETY: the arguments are those of the kernel.
        unsafe { launch.run(&stream) }.unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(&error, Error::Call { code: 719, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(what) && text.contains(name), "{text}");
        stream.synchronize().unwrap();
    }
}
