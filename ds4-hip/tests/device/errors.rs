//! Whatever call fails: a typed error, nothing left behind, no panic.
#![expect(unsafe_code, reason = "launches kernels")]

use ds4_hip::{Buffer, Device, Error, Event, Graph, Hip, HostBuffer, Module, Search, Stream};
use ds4_hip_testing::Control;

use crate::{Bench, code, lookalike};

/// Everything this crate does, once.
fn everything(code: &[u8], hip: &std::sync::Arc<Hip>) -> Result<f32, Error> {
    hip.version()?;
    let device = Device::open(hip, 0)?;
    device.memory()?;
    let module = Module::load(&device, code)?;
    let kernel = module.kernel("axpy")?;
    kernel.resources()?;
    kernel.blocks_per_unit(128)?;
    let (stream, other) = (Stream::new(&device)?, Stream::new(&device)?);
    let mut host = HostBuffer::<f32>::new(&device, 64)?;
    host.as_mut_slice().fill(1.0);
    let mut x = Buffer::<f32>::new(&device, 64)?;
    stream.copy(host.view(), &mut x.view_mut())?;
    let mut y = Buffer::from_slice(&stream, &[0.0f32; 64])?;
    let (mut start, mut end) = (Event::timed(&device)?, Event::timed(&device)?);
    start.record(&stream)?;
    let captured = stream.capture(|s| {
        s.fill(&mut y.view_mut(), 0)?;
        let launch = kernel
            .launch(1, 128)
            .scalar(2.0f32)
            .arg(&x.view())
            .arg_mut(&mut y.view_mut())
            .scalar(64u32);
        // SAFETY: the arguments are those of `axpy`, for 64 values each.
        unsafe { launch.run(s) }
    })?;
    captured.nodes()?;
    let captured = captured.instantiate()?;
    captured.upload(&stream)?;
    captured.launch(&stream)?;
    end.record(&stream)?;
    other.wait(&end)?;
    let mut graph = Graph::new(&device)?;
    let zero = graph.fill(&mut x.view_mut(), 0, &[])?;
    let copy = graph.copy(&y.view(), &mut x.view_mut(), &[zero])?;
    let launch = kernel
        .launch(1, 128)
        .scalar(1.0f32)
        .arg(&y.view())
        .arg_mut(&mut x.view_mut())
        .scalar(64u32);
    // SAFETY: as above.
    let node = unsafe { graph.kernel(&launch, &[copy]) }?;
    let mut exec = graph.instantiate()?;
    // SAFETY: as above, and nothing is under way.
    unsafe { exec.set_kernel(node, &launch) }?;
    exec.launch(&other)?;
    other.is_idle()?;
    end.is_reached()?;
    end.synchronize()?;
    end.ms_since(&start)?;
    device.synchronize()?;
    Ok(other.read(x.view())?[63])
}

#[test]
fn whichever_call_fails_the_error_names_it_and_nothing_is_left() {
    let bench = Bench::new();
    let Some(code) = code() else { return };
    let before = bench.control(Control::Alive, 0);
    bench.control(Control::FailAt, 0);
    assert_eq!(everything(&code, bench.device.hip()).unwrap(), 4.0);
    let calls = bench.control(Control::Calls, 0);
    assert!(calls > 60, "{calls}");
    // hipErrorOutOfMemory, hipErrorInvalidValue, hipErrorUnknown
    for code_of_error in [2u64, 1, 999] {
        let mut silent = 0;
        for call in 1..=calls {
            bench.control(Control::FailAt, call | code_of_error << 32);
            let result = everything(&code, bench.device.hip());
            bench.control(Control::FailAt, 0);
            assert_eq!(bench.control(Control::Alive, 0), before, "call {call}");
            match result {
                Err(Error::Call { call, code, .. }) => {
                    assert!(call.starts_with("hip"));
                    assert_eq!(u64::from(code), code_of_error);
                }
                Err(Error::OutOfMemory { .. }) => assert_eq!(code_of_error, 2),
                Err(Error::Module { code, .. }) => assert_eq!(u64::from(code), code_of_error),
                // What gives something back has nobody to tell but the log.
                Ok(value) => {
                    assert_eq!(value, 4.0);
                    silent += 1;
                }
                Err(other) => panic!("call {call}: {other}"),
            }
        }
        // 2 streams with a wait each, 2 events, 3 pieces of memory, a module, 2 graphs, 2 instances, 1 retried memory query
        assert!(silent <= 14, "{silent}");
    }
    assert_eq!(everything(&code, bench.device.hip()).unwrap(), 4.0);
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let hip = Hip::load_with(&Search::library(lookalike())).unwrap();
    let error = Device::open(&hip, 3).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NoSuchDevice {
                ordinal: 3,
                count: 1
            }
        ),
        "{error}"
    );
    let device = Device::open(&hip, 0).unwrap();
    let props = device.props();
    assert_eq!((&*props.arch, props.wave_size), ("host", 32));
    assert!(props.integrated && props.maps_host && props.units >= 1);
    assert_eq!(props.lds_bytes, 65_536);
    assert!(format!("{device:?}").contains("host"));
}
