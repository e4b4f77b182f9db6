//! Captures and graphs.

use std::ffi::{CStr, c_char, c_uint, c_ulonglong, c_void};

use ds4_hip::sys::*;

use super::{E, enter, kernel, leave, out};
use crate::Device;
use crate::device::State;
use crate::faults;
use crate::graph::Graph;
use crate::queue::{Capture, Work};

pub unsafe fn hipStreamBeginCapture(
    d: &Device,
    stream: hipStream_t,
    _mode: hipStreamCaptureMode,
) -> E {
    enter(|| {
        let mut state = d.state();
        if state.streams.get(stream as usize)?.capture.is_some() {
            return Err(E::hipErrorIllegalState);
        }
        let graph = State::insert(|s| &mut s.graphs, &mut state, Graph::default());
        state.streams.get(stream as usize)?.capture = Some(Capture {
            graph,
            after: Vec::new(),
            origin: true,
        });
        Ok(())
    })
}

/// Ends the capture also when the call is made to fail: a stream that stays captured is of no use to anybody.
pub unsafe fn hipStreamEndCapture(d: &Device, stream: hipStream_t, to: *mut hipGraph_t) -> E {
    let injected = faults::injected();
    let mut state = d.state();
    let ended = state.end_capture(stream as usize);
    let status = match (ended, injected) {
        (Ok(graph), Some(code)) => state.graphs.remove(graph).err().unwrap_or(code),
        // SAFETY: the caller's promise.
        (Ok(graph), None) => unsafe { out(to, graph as hipGraph_t) }
            .err()
            .unwrap_or(E::hipSuccess),
        (Err(error), injected) => injected.unwrap_or(error),
    };
    faults::remember(status)
}

pub unsafe fn hipStreamIsCapturing(
    d: &Device,
    stream: hipStream_t,
    to: *mut hipStreamCaptureStatus,
) -> E {
    enter(|| {
        let status = match d.state().streams.get(stream as usize)?.capture {
            Some(_) => hipStreamCaptureStatus::hipStreamCaptureStatusActive,
            None => hipStreamCaptureStatus::hipStreamCaptureStatusNone,
        };
        // SAFETY: the caller's promise.
        unsafe { out(to, status) }
    })
}

pub unsafe fn hipGraphCreate(d: &Device, to: *mut hipGraph_t, _flags: c_uint) -> E {
    enter(|| {
        let handle = State::insert(|s| &mut s.graphs, &mut d.state(), Graph::default());
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipGraph_t) }
    })
}

pub unsafe fn hipGraphAddKernelNode(
    d: &Device,
    to: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    params: *const hipKernelNodeParams,
) -> E {
    enter(|| {
        let mut state = d.state();
        if params.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the caller promised the arguments of the kernel it names.
        let work = unsafe { kernel(&mut state, &*params) }?;
        // SAFETY: the caller's promise.
        unsafe { add(&mut state, to, graph, after, count, work) }
    })
}

pub unsafe fn hipGraphAddMemcpyNode1D(
    d: &Device,
    node: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
) -> E {
    enter(|| {
        let mut state = d.state();
        let (to, from) = (to as usize, from as usize);
        if !state.copyable(to, from, bytes, kind) {
            return Err(E::hipErrorInvalidValue);
        }
        let work = Work::Copy { to, from, bytes };
        // SAFETY: the caller's promise.
        unsafe { add(&mut state, node, graph, after, count, work) }
    })
}

pub unsafe fn hipGraphAddMemsetNode(
    d: &Device,
    node: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    params: *const hipMemsetParams,
) -> E {
    enter(|| {
        let mut state = d.state();
        if params.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the caller's promise.
        let params = unsafe { *params };
        // Only what this project asks for: bytes, in one line.
        let bytes = params.width;
        if params.elementSize != 1
            || params.height != 1
            || !state.memory.contains(params.dst as usize, bytes)
        {
            return Err(E::hipErrorInvalidValue);
        }
        let work = Work::Fill {
            to: params.dst as usize,
            byte: params.value.to_le_bytes()[0],
            bytes,
        };
        // SAFETY: the caller's promise.
        unsafe { add(&mut state, node, graph, after, count, work) }
    })
}

pub unsafe fn hipGraphGetNodes(
    d: &Device,
    graph: hipGraph_t,
    to: *mut hipGraphNode_t,
    count: *mut usize,
) -> E {
    enter(|| {
        let mut state = d.state();
        let nodes = &state.graphs.get(graph as usize)?.nodes;
        if count.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        if !to.is_null() {
            // SAFETY: not null; with a place for handles it says how many there is room for.
            let room = unsafe { *count };
            for (i, node) in nodes.iter().take(room).enumerate() {
                // SAFETY: the caller promised room for this many.
                unsafe { to.add(i).write(node.handle as hipGraphNode_t) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { out(count, nodes.len()) }
    })
}

pub unsafe fn hipGraphInstantiateWithFlags(
    d: &Device,
    to: *mut hipGraphExec_t,
    graph: hipGraph_t,
    _flags: c_ulonglong,
) -> E {
    enter(|| {
        let mut state = d.state();
        let copy = state.graphs.get(graph as usize)?.clone();
        let handle = State::insert(|s| &mut s.execs, &mut state, copy);
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipGraphExec_t) }
    })
}

pub unsafe fn hipGraphLaunch(d: &Device, exec: hipGraphExec_t, stream: hipStream_t) -> E {
    enter(|| {
        let mut state = d.state();
        if state.streams.get(stream as usize)?.capture.is_some() {
            return Err(E::hipErrorStreamCaptureUnsupported);
        }
        let graph = state.execs.get(exec as usize)?;
        let order = graph.order();
        let work: Vec<Work> = order.iter().map(|&n| graph.nodes[n].work.clone()).collect();
        work.into_iter()
            .try_for_each(|one| state.put(stream as usize, one))
    })
}

pub unsafe fn hipGraphUpload(d: &Device, exec: hipGraphExec_t, stream: hipStream_t) -> E {
    enter(|| {
        let mut state = d.state();
        state.execs.get(exec as usize)?;
        state.streams.get(stream as usize).map(drop)
    })
}

pub unsafe fn hipGraphExecKernelNodeSetParams(
    d: &Device,
    exec: hipGraphExec_t,
    node: hipGraphNode_t,
    params: *const hipKernelNodeParams,
) -> E {
    enter(|| {
        let mut state = d.state();
        if params.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the caller promised the arguments of the kernel it names.
        let work = unsafe { kernel(&mut state, &*params) }?;
        let graph = state.execs.get(exec as usize)?;
        let place = graph.place(node as usize).ok_or(E::hipErrorInvalidHandle)?;
        graph.nodes[place].work = work;
        Ok(())
    })
}

pub unsafe fn hipGraphDebugDotPrint(
    d: &Device,
    graph: hipGraph_t,
    path: *const c_char,
    _flags: c_uint,
) -> E {
    enter(|| {
        if path.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        let text = d.state().graphs.get(graph as usize)?.dot();
        // SAFETY: the caller promised a text that ends in a zero byte.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        std::fs::write(path.as_ref(), text).map_err(|_| E::hipErrorFileNotFound)
    })
}

pub unsafe fn hipGraphDestroy(d: &Device, graph: hipGraph_t) -> E {
    leave(|| d.state().graphs.remove(graph as usize).map(drop))
}

pub unsafe fn hipGraphExecDestroy(d: &Device, exec: hipGraphExec_t) -> E {
    leave(|| d.state().execs.remove(exec as usize).map(drop))
}

/// Add a node to a graph.
unsafe fn add(
    state: &mut State,
    to: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    work: Work,
) -> Result<(), E> {
    let mut places = Vec::with_capacity(count);
    for i in 0..count {
        // SAFETY: the caller promised `count` handles.
        let handle = unsafe { *after.add(i) };
        let place = state.graphs.get(graph as usize)?.place(handle as usize);
        places.push(place.ok_or(E::hipErrorInvalidHandle)?);
    }
    let (_, handle) = state.add(graph as usize, work, places)?;
    // SAFETY: the caller's promise.
    unsafe { out(to, handle as hipGraphNode_t) }
}
