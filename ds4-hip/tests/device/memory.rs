//! Buffers, views, pinned memory.

use ds4_hip::{Buffer, Error, HostBuffer, Pool, Stream};
use ds4_hip_testing::Control;

use crate::Bench;

#[test]
fn values_go_to_the_device_and_come_back() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let values: Vec<u32> = (0..1000).collect();
    let mut buffer = Buffer::from_slice(&stream, &values).unwrap();
    assert_eq!(buffer.len(), 1000);
    assert_eq!(stream.read(buffer.view()).unwrap(), values);
    assert_eq!(
        stream.read(buffer.slice(10..13).unwrap()).unwrap(),
        [10, 11, 12]
    );
    assert_eq!(
        stream.read(buffer.slice(998..).unwrap()).unwrap(),
        [998, 999]
    );
    stream
        .upload(&[7, 8], &mut buffer.slice_mut(..=1).unwrap())
        .unwrap();
    assert_eq!(stream.read(buffer.slice(..3).unwrap()).unwrap(), [7, 8, 2]);
    stream
        .fill(&mut buffer.slice_mut(1..3).unwrap(), 0xff)
        .unwrap();
    assert_eq!(
        stream.read(buffer.slice(..4).unwrap()).unwrap(),
        [7, u32::MAX, u32::MAX, 3]
    );
}

#[test]
fn a_part_outside_a_buffer_is_refused() {
    let bench = Bench::new();
    let mut buffer = Buffer::<f32>::new(&bench.device, 10).unwrap();
    for (start, end) in [(0, 11), (11, 11), (5, 4), (0, usize::MAX)] {
        let Err(Error::Range {
            start: s,
            end: e,
            len,
        }) = buffer.slice(start..end)
        else {
            panic!("{start}..{end}")
        };
        assert_eq!((s, e, len), (start, end, 10));
        assert!(buffer.slice_mut(start..end).is_err());
    }
    assert!(buffer.slice(3..3).unwrap().is_empty());
    assert!(buffer.slice(..=usize::MAX).is_err());
    let view = buffer.slice(2..8).unwrap();
    assert_eq!(view.address(), buffer.view().address() + 8);
    assert_eq!(
        view.slice(1..3).unwrap().address(),
        buffer.view().address() + 12
    );
    assert!(view.slice(..7).is_err());
}

#[test]
fn lengths_that_differ_are_refused() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut buffer = Buffer::<f32>::new(&bench.device, 10).unwrap();
    let other = Buffer::<f32>::new(&bench.device, 9).unwrap();
    let mut host = [0.0; 9];
    for error in [
        stream.upload(&host, &mut buffer.view_mut()).unwrap_err(),
        stream.download(buffer.view(), &mut host).unwrap_err(),
        stream
            .copy(other.view(), &mut buffer.view_mut())
            .unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::Length { found, expected, .. } if found + expected == 19),
            "{error}"
        );
    }
}

#[test]
fn buffers_without_values_are_buffers() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut empty = Buffer::<f32>::from_slice(&stream, &[]).unwrap();
    assert!(empty.is_empty());
    stream.fill(&mut empty.view_mut(), 1).unwrap();
    assert_eq!(stream.read(empty.view()).unwrap(), [0.0; 0]);
    let mut host = HostBuffer::<f32>::new(&bench.device, 0).unwrap();
    assert!(host.as_slice().is_empty() && host.as_mut_slice().is_empty());
}

#[test]
fn memory_that_is_not_there_is_named_with_its_pool_and_size() {
    let bench = Bench::new();
    let error = Buffer::<u64>::new(&bench.device, 1 << 50).unwrap_err();
    let Error::OutOfMemory {
        pool,
        bytes,
        free: Some(free),
        total: Some(total),
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((pool, bytes), (Pool::Device, 8 << 50));
    assert!(free <= total);
    let text = error.to_string();
    assert!(
        text.contains("out of device memory: 9007199254740992 more bytes"),
        "{text}"
    );
    let pinned = HostBuffer::<u8>::new(&bench.device, 1 << 60).unwrap_err();
    assert!(
        pinned.to_string().contains("pinned host memory"),
        "{pinned}"
    );
    // More than a number can say.
    assert!(matches!(
        Buffer::<u64>::new(&bench.device, usize::MAX),
        Err(Error::OutOfMemory { .. })
    ));
    assert!(HostBuffer::<u64>::new(&bench.device, usize::MAX / 4).is_err());
    let memory = bench.device.memory().unwrap();
    assert!(memory.free <= memory.total);
}

#[test]
fn pinned_memory_is_seen_by_host_and_device() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut host = HostBuffer::<u32>::new(&bench.device, 100).unwrap();
    assert_eq!(host.as_slice(), [0; 100]);
    host.as_mut_slice()[99] = 5;
    let mut buffer = Buffer::<u32>::new(&bench.device, 100).unwrap();
    stream.copy(host.view(), &mut buffer.view_mut()).unwrap();
    host.as_mut_slice().fill(0);
    assert_eq!(stream.read(buffer.slice(99..).unwrap()).unwrap(), [5]);
    stream.copy(buffer.view(), &mut host.view_mut()).unwrap();
    assert_eq!(host.as_slice()[99], 5);
    assert_eq!(host.len(), 100);
}

#[test]
fn handles_may_go_in_any_order() {
    let bench = Bench::new();
    let before = bench.control(Control::Alive, 0);
    let stream = Stream::new(&bench.device).unwrap();
    let buffer = Buffer::from_slice(&stream, &[1u32; 64]).unwrap();
    let host = HostBuffer::<u32>::new(&bench.device, 8).unwrap();
    assert_eq!(bench.control(Control::Alive, 0), before + 3);
    let Bench { device, library } = bench;
    drop(device);
    drop(stream);
    drop(buffer);
    drop(host);
    assert_eq!(crate::control(&library, Control::Alive, 0), before);
}
