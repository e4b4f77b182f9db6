//! Graphs: explicit, captured, changed, and what they keep alive.
#![expect(unsafe_code, reason = "launches kernels")]

use ds4_hip::{Buffer, Error, Event, Graph, Kernel, Launch, Stream, View, ViewMut};
use ds4_hip_testing::Control;

use crate::Bench;

fn axpy<'a>(kernel: &'a Kernel, a: f32, x: &View<'a, f32>, y: &mut ViewMut<'a, f32>) -> Launch<'a> {
    let n = x.len() as u32;
    kernel
        .launch(n.div_ceil(128), 128)
        .scalar(a)
        .arg(x)
        .arg_mut(y)
        .scalar(n)
}

#[test]
fn nodes_are_done_after_those_they_name() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let kernel = module.kernel("axpy").unwrap();
    let stream = Stream::new(&bench.device).unwrap();
    let x = Buffer::from_slice(&stream, &[1.0f32; 300]).unwrap();
    let mut y = Buffer::from_slice(&stream, &[5.0f32; 300]).unwrap();
    let mut z = Buffer::from_slice(&stream, &[7.0f32; 300]).unwrap();
    let mut graph = Graph::new(&bench.device).unwrap();
    let zero = graph.fill(&mut y.view_mut(), 0, &[]).unwrap();
    // SAFETY: the arguments are those of `axpy`, for 300 values each.
    let first = unsafe { graph.kernel(&axpy(&kernel, 2.0, &x.view(), &mut y.view_mut()), &[zero]) }
        .unwrap();
    let copy = graph.copy(&y.view(), &mut z.view_mut(), &[first]).unwrap();
    // SAFETY: as above.
    let last = unsafe { graph.kernel(&axpy(&kernel, 3.0, &x.view(), &mut z.view_mut()), &[copy]) }
        .unwrap();
    assert_eq!(graph.nodes().unwrap(), 4);
    let mut exec = graph.instantiate().unwrap();
    exec.upload(&stream).unwrap();
    for _ in 0..3 {
        exec.launch(&stream).unwrap();
        assert_eq!(stream.read(z.view()).unwrap(), [5.0; 300]);
    }
    // SAFETY: as above, and no launch is under way.
    unsafe { exec.set_kernel(last, &axpy(&kernel, 30.0, &x.view(), &mut z.view_mut())) }.unwrap();
    exec.launch(&stream).unwrap();
    assert_eq!(stream.read(z.view()).unwrap(), [32.0; 300]);
    // SAFETY: refused.
    let error = unsafe { exec.set_kernel(copy, &axpy(&kernel, 1.0, &x.view(), &mut z.view_mut())) };
    assert!(matches!(
        error,
        Err(Error::NoSuchNode { node: 2, nodes: 4 })
    ));
}

#[test]
fn nodes_of_another_graph_and_lengths_that_differ_are_refused() {
    let bench = Bench::new();
    let mut a = Buffer::<f32>::new(&bench.device, 8).unwrap();
    let b = Buffer::<f32>::new(&bench.device, 9).unwrap();
    let mut graph = Graph::new(&bench.device).unwrap();
    let node = graph.fill(&mut a.view_mut(), 0, &[]).unwrap();
    let mut other = Graph::new(&bench.device).unwrap();
    assert!(matches!(
        other.fill(&mut a.view_mut(), 0, &[node]),
        Err(Error::NoSuchNode { node: 0, nodes: 0 })
    ));
    assert!(matches!(
        graph.copy(&b.view(), &mut a.view_mut(), &[]),
        Err(Error::Length { .. })
    ));
}

#[test]
fn a_capture_does_nothing_until_it_is_launched_and_keeps_what_it_mentions() {
    let bench = Bench::new();
    let Some(module) = bench.module() else { return };
    let stream = Stream::new(&bench.device).unwrap();
    let mut y = Buffer::from_slice(&stream, &[1.0f32; 64]).unwrap();
    let exec = {
        let kernel = module.kernel("axpy").unwrap();
        let x = Buffer::from_slice(&stream, &[1.0f32; 64]).unwrap();
        let graph = stream
            .capture(|s| {
                for a in [1.0, 10.0] {
                    // SAFETY: the arguments are those of `axpy`, for 64 values each.
                    unsafe { axpy(&kernel, a, &x.view(), &mut y.view_mut()).run(s) }?;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(graph.nodes().unwrap(), 2);
        graph.instantiate().unwrap()
    };
    // `x`, the kernel and its module are gone but for the graph.
    drop(module);
    assert_eq!(stream.read(y.view()).unwrap(), [1.0; 64]);
    for round in 1..4 {
        exec.launch(&stream).unwrap();
        assert_eq!(
            stream.read(y.view()).unwrap(),
            [1.0 + 11.0 * round as f32; 64]
        );
    }
}

#[test]
fn a_capture_follows_events_into_other_streams_and_back() {
    let bench = Bench::new();
    let (first, second) = (
        Stream::new(&bench.device).unwrap(),
        Stream::new(&bench.device).unwrap(),
    );
    let mut a = Buffer::from_slice(&first, &[0u8; 8]).unwrap();
    let mut b = Buffer::from_slice(&first, &[0u8; 8]).unwrap();
    let (mut fork, mut join) = (
        Event::new(&bench.device).unwrap(),
        Event::new(&bench.device).unwrap(),
    );
    let graph = first
        .capture(|s| {
            s.fill(&mut a.view_mut(), 3)?;
            fork.record(s)?;
            second.wait(&fork)?;
            second.copy(a.view(), &mut b.view_mut())?;
            join.record(&second)?;
            s.wait(&join)?;
            s.fill(&mut a.view_mut(), 4)
        })
        .unwrap();
    assert_eq!(graph.nodes().unwrap(), 3);
    let exec = graph.instantiate().unwrap();
    exec.launch(&first).unwrap();
    assert_eq!(first.read(b.view()).unwrap(), [3; 8]);
    assert_eq!(first.read(a.view()).unwrap(), [4; 8]);
    second.synchronize().unwrap();
}

#[test]
fn what_cannot_be_captured_is_refused_and_the_stream_is_good_afterwards() {
    let bench = Bench::new();
    let before = bench.control(Control::Alive, 0);
    let stream = Stream::new(&bench.device).unwrap();
    let mut a = Buffer::from_slice(&stream, &[0u8; 8]).unwrap();
    let refused = |work: &mut dyn FnMut(&Stream) -> Result<(), Error>| {
        let error = stream.capture(|s| work(s)).unwrap_err();
        assert!(matches!(error, Error::Graph { .. }), "{error}");
        stream.synchronize().unwrap();
    };
    refused(&mut |s| s.synchronize());
    refused(&mut |s| s.is_idle().map(drop));
    refused(&mut |s| s.upload(&[1; 8], &mut a.view_mut()));
    refused(&mut |s| s.read(a.view()).map(drop));
    refused(&mut |s| s.capture(|_| Ok(())).map(drop));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture(|_| panic!("on purpose"))
    }));
    assert!(panicked.is_err());
    stream.fill(&mut a.view_mut(), 6).unwrap();
    assert_eq!(stream.read(a.view()).unwrap(), [6; 8]);
    drop((a, stream));
    assert_eq!(bench.control(Control::Alive, 0), before);
}

#[test]
fn a_graph_is_drawn() {
    let bench = Bench::new();
    let stream = Stream::new(&bench.device).unwrap();
    let mut a = Buffer::from_slice(&stream, &[0u8; 8]).unwrap();
    let graph = stream
        .capture(|s| {
            s.fill(&mut a.view_mut(), 1)?;
            s.fill(&mut a.view_mut(), 2)
        })
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.dot");
    graph.write_dot(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("n0 -> n1") && text.contains("fill 8"),
        "{text}"
    );
    assert!(matches!(
        graph.write_dot(&folder.path().join("no/such/folder.dot")),
        Err(Error::Call { .. })
    ));
    assert!(matches!(
        graph.write_dot(std::path::Path::new("a\0b")),
        Err(Error::Path { .. })
    ));
}
