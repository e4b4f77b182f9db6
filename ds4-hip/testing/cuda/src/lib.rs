//! A `libamdhip64` over the CUDA driver: the unmodified program on an NVIDIA GPU.
//!
//! Handles pass through, and so do most statuses: HIP took CUDA's numbers. Its code objects are PTX or cubin files, its
//! architecture is called `cuda-sm_90` or as the card is. `libcuda.so.1` is found while the program runs; on a machine without it
//! there is no device.
#![expect(
    unsafe_code,
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "one C interface in terms of another: what HIP's header demands of callers is what CUDA's demands of us"
)]

mod driver;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::{null, null_mut};

use driver::{Copy3d, KernelNode, MemsetNode, driver};
use ds4_hip::sys::*;

type E = hipError_t;

/// `HIP_VERSION` of the header that the bindings come from.
const VERSION: c_int = 70_125_424;

fn status(code: c_int) -> E {
    hipError_t(match code {
        // What the two count differently: invalid image, invalid context, no binary, not supported.
        218 => 200,
        other => other.cast_unsigned(),
    })
}

/// Call a function of the driver.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {
        match driver() {
            Some(driver) => status(unsafe { (driver.$name)($($arg),*) }),
            None => E::hipErrorNoDevice,
        }
    };
}

macro_rules! functions {
    ($( fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block )*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> $result $body
        )*

        /// Does not compile where a prototype differs from the bindings.
        #[expect(dead_code, reason = "only compiled")]
        fn same_prototypes(bindings: &mut Hip) {
            $( bindings.$name = Ok($name); )*
        }
    };
}

functions! {
    fn hipInit(_flags: c_uint) -> E { if driver().is_some() { E::hipSuccess } else { E::hipErrorNoDevice } }
    fn hipRuntimeGetVersion(version: *mut c_int) -> E { unsafe { *version = VERSION }; E::hipSuccess }
    fn hipGetDeviceCount(count: *mut c_int) -> E { unsafe { *count = 0 }; cu!(cuDeviceGetCount(count)) }
    fn hipSetDevice(device: c_int) -> E {
        match driver() {
            Some(driver) => status(driver.set_current(device)),
            None => E::hipErrorNoDevice,
        }
    }
    fn hipGetDevicePropertiesR0600(props: *mut hipDeviceProp_tR0600, device: c_int) -> E {
        let Some(driver) = driver() else { return E::hipErrorNoDevice };
        let mut filled = hipDeviceProp_tR0600::default();
        let attribute = |which: c_int| {
            let mut value = 0;
            unsafe { (driver.cuDeviceGetAttribute)(&raw mut value, which, device) };
            value
        };
        unsafe { (driver.cuDeviceGetName)(filled.name.as_mut_ptr(), 255, device) };
        unsafe { (driver.cuDeviceTotalMem_v2)(&raw mut filled.totalGlobalMem, device) };
        let arch = format!("cuda-sm_{}{}", attribute(75), attribute(76));
        for (to, from) in filled.gcnArchName.iter_mut().zip(arch.bytes()) {
            *to = from.cast_signed();
        }
        filled.maxThreadsPerBlock = attribute(1);
        filled.sharedMemPerBlock = usize::try_from(attribute(8)).unwrap_or(0);
        filled.warpSize = attribute(10);
        filled.clockRate = attribute(13);
        filled.multiProcessorCount = attribute(16);
        filled.integrated = attribute(18);
        filled.canMapHostMemory = attribute(19);
        filled.memoryClockRate = attribute(36);
        filled.memoryBusWidth = attribute(37);
        filled.l2CacheSize = attribute(38);
        filled.managedMemory = attribute(83);
        unsafe { *props = filled };
        E::hipSuccess
    }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> E { cu!(cuMemGetInfo_v2(free, total)) }
    fn hipDeviceSynchronize() -> E { cu!(cuCtxSynchronize()) }
    fn hipGetErrorName(error: E) -> *const c_char { text(error, false) }
    fn hipGetErrorString(error: E) -> *const c_char { text(error, true) }
    fn hipGetLastError() -> E { E::hipSuccess }

    fn hipMalloc(to: *mut *mut c_void, bytes: usize) -> E { cu!(cuMemAlloc_v2(to.cast(), bytes)) }
    fn hipFree(at: *mut c_void) -> E {
        if at.is_null() { return E::hipSuccess }
        cu!(cuMemFree_v2(at as u64))
    }
    fn hipHostMalloc(to: *mut *mut c_void, bytes: usize, _flags: c_uint) -> E {
        /// Portable and mapped.
        const FLAGS: c_uint = 3;
        cu!(cuMemHostAlloc(to, bytes, FLAGS))
    }
    fn hipHostFree(at: *mut c_void) -> E { cu!(cuMemFreeHost(at)) }
    fn hipHostGetDevicePointer(to: *mut *mut c_void, at: *mut c_void, flags: c_uint) -> E {
        cu!(cuMemHostGetDevicePointer_v2(to.cast(), at, flags))
    }
    fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, _kind: hipMemcpyKind, stream: hipStream_t) -> E {
        cu!(cuMemcpyAsync(to as u64, from as u64, bytes, stream.cast()))
    }
    fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: hipStream_t) -> E {
        cu!(cuMemsetD8Async(to as u64, value.to_le_bytes()[0], bytes, stream.cast()))
    }

    fn hipStreamCreateWithFlags(to: *mut hipStream_t, flags: c_uint) -> E { cu!(cuStreamCreate(to.cast(), flags)) }
    fn hipStreamDestroy(stream: hipStream_t) -> E { cu!(cuStreamDestroy_v2(stream.cast())) }
    fn hipStreamSynchronize(stream: hipStream_t) -> E { cu!(cuStreamSynchronize(stream.cast())) }
    fn hipStreamQuery(stream: hipStream_t) -> E { cu!(cuStreamQuery(stream.cast())) }
    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> E {
        cu!(cuStreamWaitEvent(stream.cast(), event.cast(), flags))
    }
    fn hipEventCreateWithFlags(to: *mut hipEvent_t, flags: c_uint) -> E { cu!(cuEventCreate(to.cast(), flags)) }
    fn hipEventDestroy(event: hipEvent_t) -> E { cu!(cuEventDestroy_v2(event.cast())) }
    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> E { cu!(cuEventRecord(event.cast(), stream.cast())) }
    fn hipEventSynchronize(event: hipEvent_t) -> E { cu!(cuEventSynchronize(event.cast())) }
    fn hipEventQuery(event: hipEvent_t) -> E { cu!(cuEventQuery(event.cast())) }
    fn hipEventElapsedTime(to: *mut f32, start: hipEvent_t, end: hipEvent_t) -> E {
        cu!(cuEventElapsedTime(to, start.cast(), end.cast()))
    }

    fn hipModuleLoadData(to: *mut hipModule_t, image: *const c_void) -> E { cu!(cuModuleLoadData(to.cast(), image)) }
    fn hipModuleUnload(module: hipModule_t) -> E { cu!(cuModuleUnload(module.cast())) }
    fn hipModuleGetFunction(to: *mut hipFunction_t, module: hipModule_t, name: *const c_char) -> E {
        cu!(cuModuleGetFunction(to.cast(), module.cast(), name))
    }
    fn hipFuncGetAttribute(to: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t) -> E {
        // The first numbers of both lists are the same.
        cu!(cuFuncGetAttribute(to, attribute.0.cast_signed(), function.cast()))
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, function: hipFunction_t, block: c_int, lds: usize) -> E {
        cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(to, function.cast(), block, lds))
    }
    fn hipModuleLaunchKernel(
        function: hipFunction_t,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        lds: c_uint,
        stream: hipStream_t,
        params: *mut *mut c_void,
        extra: *mut *mut c_void
    ) -> E {
        cu!(cuLaunchKernel(
            function.cast(),
            grid_x,
            grid_y,
            grid_z,
            block_x,
            block_y,
            block_z,
            lds,
            stream.cast(),
            params,
            extra
        ))
    }

    fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> E {
        cu!(cuStreamBeginCapture_v2(stream.cast(), mode.0.cast_signed()))
    }
    fn hipStreamEndCapture(stream: hipStream_t, to: *mut hipGraph_t) -> E { cu!(cuStreamEndCapture(stream.cast(), to.cast())) }
    fn hipStreamIsCapturing(stream: hipStream_t, to: *mut hipStreamCaptureStatus) -> E {
        cu!(cuStreamIsCapturing(stream.cast(), to.cast()))
    }
    fn hipGraphCreate(to: *mut hipGraph_t, flags: c_uint) -> E { cu!(cuGraphCreate(to.cast(), flags)) }
    fn hipGraphAddKernelNode(
        to: *mut hipGraphNode_t,
        graph: hipGraph_t,
        after: *const hipGraphNode_t,
        count: usize,
        params: *const hipKernelNodeParams
    ) -> E {
        let node = KernelNode::new(unsafe { &*params });
        cu!(cuGraphAddKernelNode_v2(to.cast(), graph.cast(), after.cast(), count, &raw const node))
    }
    fn hipGraphAddMemcpyNode1D(
        to: *mut hipGraphNode_t,
        graph: hipGraph_t,
        after: *const hipGraphNode_t,
        count: usize,
        dst: *mut c_void,
        src: *const c_void,
        bytes: usize,
        _kind: hipMemcpyKind
    ) -> E {
        let copy = Copy3d::line(dst as u64, src as u64, bytes);
        match driver() {
            Some(driver) => status(unsafe {
                (driver.cuGraphAddMemcpyNode)(to.cast(), graph.cast(), after.cast(), count, &raw const copy, driver.context())
            }),
            None => E::hipErrorNoDevice,
        }
    }
    fn hipGraphAddMemsetNode(
        to: *mut hipGraphNode_t,
        graph: hipGraph_t,
        after: *const hipGraphNode_t,
        count: usize,
        params: *const hipMemsetParams
    ) -> E {
        let fill = MemsetNode::new(unsafe { &*params });
        match driver() {
            Some(driver) => status(unsafe {
                (driver.cuGraphAddMemsetNode)(to.cast(), graph.cast(), after.cast(), count, &raw const fill, driver.context())
            }),
            None => E::hipErrorNoDevice,
        }
    }
    fn hipGraphGetNodes(graph: hipGraph_t, to: *mut hipGraphNode_t, count: *mut usize) -> E {
        cu!(cuGraphGetNodes(graph.cast(), to.cast(), count))
    }
    fn hipGraphInstantiateWithFlags(to: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong) -> E {
        cu!(cuGraphInstantiateWithFlags(to.cast(), graph.cast(), flags))
    }
    fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t) -> E { cu!(cuGraphLaunch(exec.cast(), stream.cast())) }
    fn hipGraphUpload(exec: hipGraphExec_t, stream: hipStream_t) -> E { cu!(cuGraphUpload(exec.cast(), stream.cast())) }
    fn hipGraphExecKernelNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, params: *const hipKernelNodeParams) -> E {
        let changed = KernelNode::new(unsafe { &*params });
        cu!(cuGraphExecKernelNodeSetParams_v2(exec.cast(), node.cast(), &raw const changed))
    }
    fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint) -> E {
        cu!(cuGraphDebugDotPrint(graph.cast(), path, flags))
    }
    fn hipGraphDestroy(graph: hipGraph_t) -> E { cu!(cuGraphDestroy(graph.cast())) }
    fn hipGraphExecDestroy(exec: hipGraphExec_t) -> E { cu!(cuGraphExecDestroy(exec.cast())) }
}

/// CUDA's name or text of a status.
fn text(error: E, long: bool) -> *const c_char {
    const UNKNOWN: &CStr = c"unknown";
    let mut found = null();
    if let Some(driver) = driver() {
        let code = error.0.cast_signed();
        let function = if long {
            driver.cuGetErrorString
        } else {
            driver.cuGetErrorName
        };
        unsafe { function(code, &raw mut found) };
    }
    if found.is_null() {
        UNKNOWN.as_ptr()
    } else {
        found
    }
}

/// No function, no handle.
const NONE: *mut c_void = null_mut();
