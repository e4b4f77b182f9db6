//! Graphs: work written down once and done many times.
#![expect(unsafe_code, reason = "owns HIP handles")]

use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use bytemuck::Pod;

use crate::call::call;
use crate::launch::Arguments;
use crate::stream::Keep;
use crate::{Device, Error, Launch, Stream, View, ViewMut, sys};

/// A node of a [`Graph`], by its place in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// Work written down: kernels, copies and fills, each after those it names. Made node by node, or by
/// [capturing](Stream::capture) a stream.
///
/// It owns the argument blocks of its kernels and keeps the memory and the modules that its nodes mention.
pub struct Graph {
    raw: sys::hipGraph_t,
    device: Arc<Device>,
    nodes: Vec<Node>,
    /// What nodes of a captured graph mention; which one does is not known.
    captured: Vec<Keep>,
}

// SAFETY: HIP allows a graph to be used from any thread, one at a time; the type is not `Sync`.
unsafe impl Send for Graph {}

struct Node {
    raw: sys::hipGraphNode_t,
    /// For a kernel added here: its arguments and what they mention.
    kernel: Option<Box<Arguments>>,
    _keep: Vec<Keep>,
}

impl Graph {
    /// A graph without nodes.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn new(device: &Arc<Device>) -> Result<Self, Error> {
        device.bind()?;
        let mut raw = null_mut();
        // SAFETY: the function writes a handle through a pointer that is valid for the call.
        unsafe { call!(device.hip(), hipGraphCreate(&raw mut raw, 0)) }?;
        Ok(Self::own(raw, device, Vec::new()))
    }

    fn own(raw: sys::hipGraph_t, device: &Arc<Device>, captured: Vec<Keep>) -> Self {
        Self {
            raw,
            device: Arc::clone(device),
            nodes: Vec::new(),
            captured,
        }
    }

    /// Add a kernel that runs after the nodes `after`.
    ///
    /// # Errors
    /// [`Error::Launch`] as for [`Launch::run`], [`Error::NoSuchNode`] for a node of another graph, [`Error::Call`] when the
    /// runtime refuses.
    ///
    /// # Safety
    /// As for [`Launch::run`], each time the graph is launched; memory that views were given of is kept.
    pub unsafe fn kernel(
        &mut self,
        launch: &Launch<'_>,
        after: &[NodeId],
    ) -> Result<NodeId, Error> {
        launch.check()?;
        let arguments = Box::new(launch.arguments.clone());
        let mut addresses = arguments.addresses();
        let params = params(launch, addresses.as_mut_ptr());
        let after = self.raw_nodes(after)?;
        let mut raw = null_mut();
        // SAFETY: all handles live; the arguments are the caller's promise and stay in the box that the node keeps.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphAddKernelNode(
                    &raw mut raw,
                    self.raw,
                    after.as_ptr(),
                    after.len(),
                    &raw const params
                )
            )
        }?;
        Ok(self.push(raw, Some(arguments), kept(launch)))
    }

    /// Add a copy that is done after the nodes `after`.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ; else as for [`Graph::kernel`].
    pub fn copy<T: Pod>(
        &mut self,
        from: &View<'_, T>,
        to: &mut ViewMut<'_, T>,
        after: &[NodeId],
    ) -> Result<NodeId, Error> {
        if from.len() != to.len() {
            return Err(Error::Length {
                what: "the destination of a copy",
                found: to.len(),
                expected: from.len(),
            });
        }
        let after = self.raw_nodes(after)?;
        let mut raw = null_mut();
        // SAFETY: both ranges are inside memory that the node keeps, below.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphAddMemcpyNode1D(
                    &raw mut raw,
                    self.raw,
                    after.as_ptr(),
                    after.len(),
                    to.address() as *mut c_void,
                    from.address() as *const c_void,
                    from.bytes(),
                    sys::hipMemcpyKind::hipMemcpyDeviceToDevice
                )
            )
        }?;
        let keep: Vec<Keep> = vec![
            Arc::clone(from.memory) as Keep,
            Arc::clone(to.memory) as Keep,
        ];
        Ok(self.push(raw, None, keep))
    }

    /// Add the setting of every byte of `to` to `byte`, done after the nodes `after`.
    ///
    /// # Errors
    /// As for [`Graph::kernel`].
    pub fn fill<T: Pod>(
        &mut self,
        to: &mut ViewMut<'_, T>,
        byte: u8,
        after: &[NodeId],
    ) -> Result<NodeId, Error> {
        let after = self.raw_nodes(after)?;
        let params = sys::hipMemsetParams {
            dst: to.address() as *mut c_void,
            elementSize: 1,
            height: 1,
            pitch: 0,
            value: u32::from(byte),
            width: to.bytes(),
        };
        let mut raw = null_mut();
        // SAFETY: the range is inside memory that the node keeps, below.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphAddMemsetNode(
                    &raw mut raw,
                    self.raw,
                    after.as_ptr(),
                    after.len(),
                    &raw const params
                )
            )
        }?;
        Ok(self.push(raw, None, vec![Arc::clone(to.memory) as Keep]))
    }

    /// How many nodes it has.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn nodes(&self) -> Result<usize, Error> {
        let mut count = 0;
        // SAFETY: without a place for handles only their number is written, through a valid pointer.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphGetNodes(self.raw, null_mut(), &raw mut count)
            )
        }?;
        Ok(count)
    }

    /// Write what the runtime knows of it to `path`, in the language of Graphviz.
    ///
    /// # Errors
    /// [`Error::Path`] for a path with a zero byte, [`Error::Call`] when the runtime cannot write it.
    pub fn write_dot(&self, path: &Path) -> Result<(), Error> {
        /// `hipGraphDebugDotFlagsVerbose`.
        const VERBOSE: u32 = 1;
        let c_path =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Error::Path {
                path: path.to_path_buf(),
            })?;
        // SAFETY: the handle lives and the path ends in a zero byte.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphDebugDotPrint(self.raw, c_path.as_ptr(), VERBOSE)
            )
        }
    }

    /// Make it ready to launch.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn instantiate(self) -> Result<GraphExec, Error> {
        self.device.bind()?;
        let mut raw = null_mut();
        // SAFETY: the graph lives; the handle is written through a valid pointer.
        unsafe {
            call!(
                self.device.hip(),
                hipGraphInstantiateWithFlags(&raw mut raw, self.raw, 0)
            )
        }?;
        Ok(GraphExec { raw, graph: self })
    }

    fn push(
        &mut self,
        raw: sys::hipGraphNode_t,
        kernel: Option<Box<Arguments>>,
        keep: Vec<Keep>,
    ) -> NodeId {
        self.nodes.push(Node {
            raw,
            kernel,
            _keep: keep,
        });
        NodeId(self.nodes.len() - 1)
    }

    fn raw_nodes(&self, ids: &[NodeId]) -> Result<Vec<sys::hipGraphNode_t>, Error> {
        ids.iter()
            .map(|&NodeId(node)| {
                self.nodes
                    .get(node)
                    .map(|n| n.raw)
                    .ok_or(Error::NoSuchNode {
                        node,
                        nodes: self.nodes.len(),
                    })
            })
            .collect()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed only here.
        let gone = unsafe { call!(self.device.hip(), hipGraphDestroy(self.raw)) };
        if let Err(error) = gone {
            tracing::warn!(%error, "graph not destroyed");
        }
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("added", &self.nodes.len())
            .field("captured", &!self.captured.is_empty())
            .finish_non_exhaustive()
    }
}

/// A graph that is ready to launch. Owns what its nodes mention.
pub struct GraphExec {
    raw: sys::hipGraphExec_t,
    graph: Graph,
}

// SAFETY: as for `Graph`.
unsafe impl Send for GraphExec {}

impl GraphExec {
    /// Do all of it once, in `stream`.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: both handles live; the promises about the nodes were made when they were added.
        unsafe {
            call!(
                self.graph.device.hip(),
                hipGraphLaunch(self.raw, stream.raw)
            )
        }
    }

    /// Bring it to the device ahead of the first launch.
    ///
    /// # Errors
    /// [`Error::Call`] when the runtime refuses.
    pub fn upload(&self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: both handles live.
        unsafe {
            call!(
                self.graph.device.hip(),
                hipGraphUpload(self.raw, stream.raw)
            )
        }
    }

    /// Give the kernel of `node` other arguments, for launches that follow.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`] when the node is no kernel added to this graph, [`Error::Launch`] as for [`Launch::run`],
    /// [`Error::Call`] when the runtime refuses.
    ///
    /// # Safety
    /// As for [`Graph::kernel`]; no launch of the graph is under way.
    pub unsafe fn set_kernel(&mut self, node: NodeId, launch: &Launch<'_>) -> Result<(), Error> {
        launch.check()?;
        let nodes = self.graph.nodes.len();
        let hip = Arc::clone(self.graph.device.hip());
        let Some(changed) = self
            .graph
            .nodes
            .get_mut(node.0)
            .filter(|n| n.kernel.is_some())
        else {
            return Err(Error::NoSuchNode {
                node: node.0,
                nodes,
            });
        };
        let arguments = Box::new(launch.arguments.clone());
        let mut addresses = arguments.addresses();
        let params = params(launch, addresses.as_mut_ptr());
        // SAFETY: all handles live; the arguments are the caller's promise and stay in the box that the node keeps.
        unsafe {
            call!(
                hip,
                hipGraphExecKernelNodeSetParams(self.raw, changed.raw, &raw const params)
            )
        }?;
        changed.kernel = Some(arguments);
        changed._keep = kept(launch);
        Ok(())
    }

    /// The graph it was made from.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        let hip = self.graph.device.hip();
        // SAFETY: the handle is ours and destroyed only here; the runtime lets a launch under way end first.
        let gone = unsafe { call!(hip, hipGraphExecDestroy(self.raw)) };
        if let Err(error) = gone {
            tracing::warn!(%error, "graph not destroyed");
        }
    }
}

impl std::fmt::Debug for GraphExec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GraphExec").field(&self.graph).finish()
    }
}

impl Stream {
    /// Write down what `work` puts into this stream instead of doing it.
    ///
    /// The stream can be used again afterwards, also when `work` fails.
    ///
    /// # Errors
    /// What `work` returns; [`Error::Graph`] when the stream is being captured already; [`Error::Call`] when the runtime
    /// refuses, also for something that `work` did and that cannot be captured.
    pub fn capture(&self, work: impl FnOnce(&Self) -> Result<(), Error>) -> Result<Graph, Error> {
        if self.captured.borrow().is_some() {
            return Err(Error::Graph {
                what: "the stream is being captured already",
            });
        }
        let hip = self.device().hip();
        // SAFETY: the handle lives. The mode keeps other threads' calls out of it.
        unsafe {
            call!(
                hip,
                hipStreamBeginCapture(
                    self.raw,
                    sys::hipStreamCaptureMode::hipStreamCaptureModeThreadLocal
                )
            )
        }?;
        *self.captured.borrow_mut() = Some(Vec::new());
        let ending = EndCapture(self);
        let done = work(self);
        let (raw, kept) = ending.end();
        // Owned before anything is returned: a graph of work that failed is destroyed.
        let graph = raw.map(|raw| Graph::own(raw, self.device(), kept));
        done?;
        graph
    }
}

/// Ends a capture once, also when the work panics.
struct EndCapture<'a>(&'a Stream);

impl EndCapture<'_> {
    fn end(self) -> (Result<sys::hipGraph_t, Error>, Vec<Keep>) {
        let ended = end_capture(self.0);
        std::mem::forget(self);
        ended
    }
}

impl Drop for EndCapture<'_> {
    fn drop(&mut self) {
        let (raw, kept) = end_capture(self.0);
        if let Ok(raw) = raw {
            drop(Graph::own(raw, self.0.device(), kept));
        }
    }
}

fn end_capture(stream: &Stream) -> (Result<sys::hipGraph_t, Error>, Vec<Keep>) {
    let kept = stream.captured.borrow_mut().take().unwrap_or_default();
    let hip = stream.device().hip();
    let mut raw = null_mut();
    // SAFETY: the stream lives; the handle is written through a valid pointer.
    let ended = unsafe { call!(hip, hipStreamEndCapture(stream.raw, &raw mut raw)) };
    let raw = ended.and_then(|()| {
        if raw.is_null() {
            return Err(Error::Graph {
                what: "the capture was given up by the runtime",
            });
        }
        Ok(raw)
    });
    (raw, kept)
}

fn params(launch: &Launch<'_>, addresses: *mut *mut c_void) -> sys::hipKernelNodeParams {
    let line = |x| sys::dim3 { x, y: 1, z: 1 };
    sys::hipKernelNodeParams {
        blockDim: line(launch.block),
        extra: null_mut(),
        func: launch.kernel.raw.cast(),
        gridDim: line(launch.grid),
        kernelParams: addresses,
        sharedMemBytes: 0,
    }
}

fn kept(launch: &Launch<'_>) -> Vec<Keep> {
    let mut keep: Vec<Keep> = vec![Arc::clone(launch.kernel.module()) as Keep];
    launch.keep(&mut |memory| keep.push(Arc::clone(memory) as Keep));
    keep
}
