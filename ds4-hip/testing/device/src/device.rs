//! The device: everything that handles stand for, behind one lock.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::Instant;

use ds4_hip::sys::{hipError_t, hipMemcpyKind};

use crate::graph::{Graph, Node};
use crate::memory::Memory;
use crate::queue::{Capture, Event, Stream, Work};
use crate::{Code, Executor, Program, faults};

pub(crate) type Status = Result<(), hipError_t>;

/// A device that an [`Executor`] runs kernels for.
pub struct Device {
    pub(crate) executor: Box<dyn Executor>,
    state: Mutex<State>,
}

impl Device {
    /// A device with nothing on it.
    pub fn new(executor: impl Executor) -> Self {
        Self {
            executor: Box::new(executor),
            state: Mutex::new(State::default()),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in here would be ours; what it left behind is still the best there is to look at.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A thing with a handle, and the thread that made it.
struct Owned<T> {
    thing: T,
    thread: ThreadId,
}

/// Things of one kind by handle.
pub(crate) struct Table<T>(HashMap<usize, Owned<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Table<T> {
    pub(crate) fn get(&mut self, handle: usize) -> Result<&mut T, hipError_t> {
        self.0
            .get_mut(&handle)
            .map(|o| &mut o.thing)
            .ok_or(hipError_t::hipErrorInvalidHandle)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Result<T, hipError_t> {
        self.0
            .remove(&handle)
            .map(|o| o.thing)
            .ok_or(hipError_t::hipErrorInvalidHandle)
    }

    fn mine(&self) -> usize {
        let me = thread::current().id();
        self.0.values().filter(|o| o.thread == me).count()
    }
}

/// A kernel as `hipFunction_t` stands for it.
pub(crate) struct Function {
    pub(crate) program: Arc<dyn Program>,
    pub(crate) name: Arc<str>,
    pub(crate) module: usize,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) memory: Memory,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) modules: Table<Box<dyn Code>>,
    pub(crate) functions: Table<Function>,
    pub(crate) graphs: Table<Graph>,
    pub(crate) execs: Table<Graph>,
    /// Bytes there are; 0 for all the machine has.
    pub(crate) limit: usize,
    handles: usize,
}

impl State {
    /// A handle that no other thing has or had.
    pub(crate) fn handle(&mut self) -> usize {
        self.handles += 16;
        self.handles
    }

    pub(crate) fn insert<T>(
        table: impl Fn(&mut Self) -> &mut Table<T>,
        state: &mut Self,
        thing: T,
    ) -> usize {
        let handle = state.handle();
        let thread = thread::current().id();
        table(state).0.insert(handle, Owned { thing, thread });
        handle
    }

    /// What the calling thread made and did not destroy. Kernels go with their modules.
    pub(crate) fn alive(&self) -> usize {
        self.memory.mine()
            + self.streams.mine()
            + self.events.mine()
            + self.modules.mine()
            + self.graphs.mine()
            + self.execs.mine()
    }

    /// Kernels of a module go with it.
    pub(crate) fn forget_functions(&mut self, module: usize) {
        self.functions.0.retain(|_, f| f.thing.module != module);
    }

    pub(crate) fn total(&self) -> usize {
        if self.limit > 0 {
            return self.limit;
        }
        // SAFETY: asks the system for two numbers.
        let (pages, page) = unsafe {
            (
                libc::sysconf(libc::_SC_PHYS_PAGES),
                libc::sysconf(libc::_SC_PAGESIZE),
            )
        };
        usize::try_from(pages.saturating_mul(page)).unwrap_or(0)
    }

    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<*mut c_void, hipError_t> {
        if bytes > self.total().saturating_sub(self.memory.used()) {
            return Err(hipError_t::hipErrorOutOfMemory);
        }
        match self.memory.allocate(bytes) {
            Some(start) => Ok(start as *mut c_void),
            None => Err(hipError_t::hipErrorOutOfMemory),
        }
    }

    /// Freeing waits for all work, as HIP does.
    pub(crate) fn free(&mut self, at: usize) -> Status {
        if at == 0 {
            return Ok(());
        }
        let waited = self.synchronize();
        match self.memory.free(at) {
            None => Err(hipError_t::hipErrorInvalidValue),
            Some(false) => {
                faults::tell("bytes around an allocation were written");
                Err(hipError_t::hipErrorLaunchFailure)
            }
            Some(true) => waited,
        }
    }

    /// Put work into a stream, or write it down where the stream is captured.
    pub(crate) fn put(&mut self, stream: usize, work: Work) -> Status {
        let Some(capture) = self.streams.get(stream)?.capture.clone() else {
            self.streams.get(stream)?.work.push_back(work);
            return Ok(());
        };
        let place = self.add(capture.graph, work, capture.after)?.0;
        if let Some(capture) = self.streams.get(stream)?.capture.as_mut() {
            capture.after = vec![place];
        }
        Ok(())
    }

    /// Add a node; its place and handle.
    pub(crate) fn add(
        &mut self,
        graph: usize,
        work: Work,
        after: Vec<usize>,
    ) -> Result<(usize, usize), hipError_t> {
        let handle = self.handle();
        let nodes = &mut self.graphs.get(graph)?.nodes;
        nodes.push(Node {
            handle,
            work,
            after,
        });
        Ok((nodes.len() - 1, handle))
    }

    /// Do all work of all streams.
    pub(crate) fn synchronize(&mut self) -> Status {
        let streams: Vec<usize> = self.streams.0.keys().copied().collect();
        let mut result = Ok(());
        for stream in streams {
            // A captured stream has no work.
            let done = self.drain(stream, usize::MAX);
            result = result.and(done);
        }
        result
    }

    /// Do up to `most` things of a stream. After a fault the rest of the stream is dropped and the fault returned.
    pub(crate) fn drain(&mut self, stream: usize, most: usize) -> Status {
        for _ in 0..most {
            let Some(work) = self.streams.get(stream)?.work.pop_front() else {
                return Ok(());
            };
            let done = match &work {
                Work::Record { event, n } => {
                    if let Ok(event) = self.events.get(*event) {
                        event.reached = event.reached.max(*n);
                        event.at = Some(Instant::now());
                    }
                    Ok(())
                }
                Work::Wait { event, n } => self.reach(*event, *n),
                _ => work.run(&self.memory).map_err(|what| {
                    faults::tell(&what);
                    hipError_t::hipErrorLaunchFailure
                }),
            };
            if let Err(error) = done {
                self.streams.get(stream)?.work.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Do the work before an event's `n`-th record.
    pub(crate) fn reach(&mut self, event: usize, n: u64) -> Status {
        loop {
            let Ok(state) = self.events.get(event) else {
                // It was destroyed after it was waited for: its stream is not known any more.
                return Ok(());
            };
            let (reached, stream) = (state.reached, state.stream);
            if reached >= n {
                return Ok(());
            }
            if self
                .streams
                .get(stream)
                .map(|s| s.work.is_empty())
                .unwrap_or(true)
            {
                // A fault dropped the record.
                return Ok(());
            }
            self.drain(stream, 1)?;
        }
    }

    pub(crate) fn record(&mut self, event: usize, stream: usize) -> Status {
        let capture = self.streams.get(stream)?.capture.clone();
        let state = self.events.get(event)?;
        state.stream = stream;
        if let Some(capture) = capture {
            state.capture = Some(Capture {
                origin: false,
                ..capture
            });
            return Ok(());
        }
        state.capture = None;
        state.recorded += 1;
        let n = state.recorded;
        self.put(stream, Work::Record { event, n })
    }

    pub(crate) fn wait(&mut self, stream: usize, event: usize) -> Status {
        let state = self.events.get(event)?;
        let n = state.recorded;
        match state.capture.clone() {
            Some(behind) => {
                let waiting = self.streams.get(stream)?;
                match waiting.capture.as_mut() {
                    Some(capture) if capture.graph == behind.graph => {
                        capture.after.extend(behind.after);
                        capture.after.sort_unstable();
                        capture.after.dedup();
                    }
                    Some(_) => return Err(hipError_t::hipErrorStreamCaptureMerge),
                    None => waiting.capture = Some(behind),
                }
                Ok(())
            }
            None if self.streams.get(stream)?.capture.is_some() => {
                Err(hipError_t::hipErrorStreamCaptureIsolation)
            }
            None => self.put(stream, Work::Wait { event, n }),
        }
    }

    /// End a capture; the graph's handle.
    pub(crate) fn end_capture(&mut self, stream: usize) -> Result<usize, hipError_t> {
        let Some(capture) = self.streams.get(stream)?.capture.take() else {
            return Err(hipError_t::hipErrorIllegalState);
        };
        let mut joined = true;
        for other in self.streams.0.values_mut() {
            if other
                .thing
                .capture
                .as_ref()
                .is_some_and(|c| c.graph == capture.graph)
            {
                let last = other.thing.capture.take();
                joined &= last.is_some_and(|l| {
                    l.after.iter().all(|n| {
                        capture.after.contains(n) || n < capture.after.iter().max().unwrap_or(&0)
                    })
                });
            }
        }
        if !capture.origin || !joined {
            self.graphs.remove(capture.graph)?;
            return Err(hipError_t::hipErrorStreamCaptureUnjoined);
        }
        Ok(capture.graph)
    }

    /// Whether the ends of a copy that must be on the device are.
    pub(crate) fn copyable(
        &self,
        to: usize,
        from: usize,
        bytes: usize,
        kind: hipMemcpyKind,
    ) -> bool {
        let (to_device, from_device) = match kind {
            hipMemcpyKind::hipMemcpyHostToDevice => (true, false),
            hipMemcpyKind::hipMemcpyDeviceToHost => (false, true),
            hipMemcpyKind::hipMemcpyDeviceToDevice => (true, true),
            hipMemcpyKind::hipMemcpyDefault => (
                self.memory.find(to).is_some(),
                self.memory.find(from).is_some(),
            ),
            _ => return false,
        };
        (!to_device || self.memory.contains(to, bytes))
            && (!from_device || self.memory.contains(from, bytes))
    }
}
