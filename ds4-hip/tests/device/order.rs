//! Streams and events: what waits for what.
#![expect(unsafe_code, reason = "launches kernels")]

use ds4_hip::{Buffer, Error, Event, Stream};

use crate::Bench;

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let bench = Bench::new();
    let (first, second) = (
        Stream::new(&bench.device).unwrap(),
        Stream::new(&bench.device).unwrap(),
    );
    let mut a = Buffer::from_slice(&first, &[1u8; 16]).unwrap();
    let mut b = Buffer::from_slice(&first, &[0u8; 16]).unwrap();
    let mut done = Event::new(&bench.device).unwrap();
    assert!(done.is_reached().unwrap(), "never recorded");
    first.fill(&mut a.view_mut(), 9).unwrap();
    done.record(&first).unwrap();
    second.wait(&done).unwrap();
    second.copy(a.view(), &mut b.view_mut()).unwrap();
    assert_eq!(second.read(b.view()).unwrap(), [9; 16]);
    assert!(done.is_reached().unwrap());
}

#[test]
fn not_yet_is_no_error_and_is_not_remembered_as_one() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut a = Buffer::<u8>::new(&bench.device, 16).unwrap();
    assert!(stream.is_idle().unwrap());
    for _ in 0..3 {
        stream.fill(&mut a.view_mut(), 1).unwrap();
    }
    let mut done = Event::new(&bench.device).unwrap();
    done.record(&stream).unwrap();
    assert!(!stream.is_idle().unwrap());
    assert!(!done.is_reached().unwrap());
    let last = bench.device.hip().sys().hipGetLastError.as_ref().unwrap();
    // SAFETY: takes nothing.
    let remembered = unsafe { last() };
    assert_eq!(remembered.0, 0);
    done.synchronize().unwrap();
    assert!(done.is_reached().unwrap());
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
    bench.device.synchronize().unwrap();
}

#[test]
fn time_is_between_two_timed_events() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut a = Buffer::<u8>::new(&bench.device, 1 << 20).unwrap();
    let (mut start, mut end) = (
        Event::timed(&bench.device).unwrap(),
        Event::timed(&bench.device).unwrap(),
    );
    start.record(&stream).unwrap();
    stream.fill(&mut a.view_mut(), 1).unwrap();
    end.record(&stream).unwrap();
    assert!(
        matches!(end.ms_since(&start), Err(Error::Call { .. })),
        "not reached"
    );
    end.synchronize().unwrap();
    assert!(end.ms_since(&start).unwrap() > 0.0);
    let mut untimed = Event::new(&bench.device).unwrap();
    untimed.record(&stream).unwrap();
    untimed.synchronize().unwrap();
    assert!(untimed.ms_since(&start).is_err());
}

#[test]
fn work_is_done_before_its_stream_goes() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let x = Buffer::from_slice(&stream, &[1.0f32; 64]).unwrap();
    let mut y = Buffer::from_slice(&stream, &[0.0f32; 64]).unwrap();
    let axpy = module.kernel("axpy").unwrap();
    {
        let other = Stream::new(&bench.device).unwrap();
        let launch = axpy
            .launch(1, 128)
            .scalar(3.0f32)
            .arg(&x.view())
            .arg_mut(&mut y.view_mut())
            .scalar(64u32);
        // SAFETY: the arguments are those of `axpy`, for 64 values each.
        unsafe { launch.run(&other) }.unwrap();
    }
    assert_eq!(stream.read(y.view()).unwrap(), [3.0; 64]);
}
