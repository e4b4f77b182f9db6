//! The C functions of `libamdhip64`, exported.

/// Export the C functions of `libamdhip64`, their kernels run by an [`Executor`](crate::Executor), and `ds4_testing`, by which
/// tests [control](crate::Control) the device. For a crate that is a `cdylib` and holds nothing else.
#[macro_export]
macro_rules! lookalike {
    ($executor:expr) => {
        static DEVICE: std::sync::LazyLock<$crate::Device> =
            std::sync::LazyLock::new(|| $crate::Device::new($executor));

        /// What tests ask of the device beside HIP's functions.
        #[unsafe(no_mangle)]
        pub extern "C" fn ds4_testing(what: u32, value: u64) -> u64 {
            $crate::abi::control(&DEVICE, what, value)
        }

        $crate::export! {
            fn hipInit(flags: c_uint) -> hipError_t;
            fn hipRuntimeGetVersion(version: *mut c_int) -> hipError_t;
            fn hipGetDeviceCount(count: *mut c_int) -> hipError_t;
            fn hipSetDevice(device: c_int) -> hipError_t;
            fn hipGetDevicePropertiesR0600(props: *mut hipDeviceProp_tR0600, device: c_int) -> hipError_t;
            fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t;
            fn hipDeviceSynchronize() -> hipError_t;
            fn hipGetErrorName(error: hipError_t) -> *const c_char;
            fn hipGetErrorString(error: hipError_t) -> *const c_char;
            fn hipGetLastError() -> hipError_t;
            fn hipMalloc(to: *mut *mut c_void, bytes: usize) -> hipError_t;
            fn hipFree(at: *mut c_void) -> hipError_t;
            fn hipHostMalloc(to: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t;
            fn hipHostFree(at: *mut c_void) -> hipError_t;
            fn hipHostGetDevicePointer(to: *mut *mut c_void, at: *mut c_void, flags: c_uint) -> hipError_t;
            fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
            fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: hipStream_t) -> hipError_t;
            fn hipStreamCreateWithFlags(to: *mut hipStream_t, flags: c_uint) -> hipError_t;
            fn hipStreamDestroy(stream: hipStream_t) -> hipError_t;
            fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t;
            fn hipStreamQuery(stream: hipStream_t) -> hipError_t;
            fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t;
            fn hipEventCreateWithFlags(to: *mut hipEvent_t, flags: c_uint) -> hipError_t;
            fn hipEventDestroy(event: hipEvent_t) -> hipError_t;
            fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t;
            fn hipEventSynchronize(event: hipEvent_t) -> hipError_t;
            fn hipEventQuery(event: hipEvent_t) -> hipError_t;
            fn hipEventElapsedTime(to: *mut f32, start: hipEvent_t, end: hipEvent_t) -> hipError_t;
            fn hipModuleLoadData(to: *mut hipModule_t, image: *const c_void) -> hipError_t;
            fn hipModuleUnload(module: hipModule_t) -> hipError_t;
            fn hipModuleGetFunction(to: *mut hipFunction_t, module: hipModule_t, name: *const c_char) -> hipError_t;
            fn hipFuncGetAttribute(to: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t) -> hipError_t;
            fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, function: hipFunction_t, block: c_int, lds: usize) -> hipError_t;
            fn hipModuleLaunchKernel(function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, lds: c_uint, stream: hipStream_t, params: *mut *mut c_void, extra: *mut *mut c_void) -> hipError_t;
            fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t;
            fn hipStreamEndCapture(stream: hipStream_t, to: *mut hipGraph_t) -> hipError_t;
            fn hipStreamIsCapturing(stream: hipStream_t, to: *mut hipStreamCaptureStatus) -> hipError_t;
            fn hipGraphCreate(to: *mut hipGraph_t, flags: c_uint) -> hipError_t;
            fn hipGraphAddKernelNode(to: *mut hipGraphNode_t, graph: hipGraph_t, after: *const hipGraphNode_t, count: usize, params: *const hipKernelNodeParams) -> hipError_t;
            fn hipGraphAddMemcpyNode1D(node: *mut hipGraphNode_t, graph: hipGraph_t, after: *const hipGraphNode_t, count: usize, to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t;
            fn hipGraphAddMemsetNode(node: *mut hipGraphNode_t, graph: hipGraph_t, after: *const hipGraphNode_t, count: usize, params: *const hipMemsetParams) -> hipError_t;
            fn hipGraphGetNodes(graph: hipGraph_t, to: *mut hipGraphNode_t, count: *mut usize) -> hipError_t;
            fn hipGraphInstantiateWithFlags(to: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong) -> hipError_t;
            fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
            fn hipGraphUpload(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
            fn hipGraphExecKernelNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, params: *const hipKernelNodeParams) -> hipError_t;
            fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint) -> hipError_t;
            fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t;
            fn hipGraphExecDestroy(exec: hipGraphExec_t) -> hipError_t;
        }
    };
}

/// The functions themselves.
#[doc(hidden)]
#[macro_export]
macro_rules! export {
    ($( fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty; )*) => {
        /// The C functions.
        #[allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments, reason = "those of HIP's header")]
        mod functions {
            use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

            use $crate::sys::*;

            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                    // SAFETY: the caller's promise, which is that of HIP's header.
                    unsafe { $crate::abi::$name(&super::DEVICE, $($arg),*) }
                }
            )*

            /// Does not compile where a prototype differs from the bindings.
            #[expect(dead_code, reason = "only compiled")]
            fn same_prototypes(bindings: &mut Hip) {
                $( bindings.$name = Ok($name); )*
            }
        }
    };
}
