//! The functions of `libcuda.so.1` that are used, and the structs they take.
//!
//! Source: CUDA driver API reference (`cuda.h`), entry points with the version suffixes that the header gives them.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock};

use ds4_hip::sys::{hipKernelNodeParams, hipMemsetParams};
use libloading::Library;

use crate::NONE;

/// Any handle.
type P = *mut c_void;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub(crate) struct KernelNode {
    function: P,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    params: *mut P,
    extra: *mut P,
    kernel: P,
    context: P,
}

impl KernelNode {
    pub(crate) fn new(params: &hipKernelNodeParams) -> Self {
        let three = |d: ds4_hip::sys::dim3| [d.x, d.y, d.z];
        Self {
            function: params.func,
            grid: three(params.gridDim),
            block: three(params.blockDim),
            shared: params.sharedMemBytes,
            params: params.kernelParams,
            extra: params.extra,
            kernel: NONE,
            context: NONE,
        }
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub(crate) struct MemsetNode {
    to: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

impl MemsetNode {
    pub(crate) fn new(params: &hipMemsetParams) -> Self {
        Self {
            to: params.dst as u64,
            pitch: params.pitch,
            value: params.value,
            element: params.elementSize,
            width: params.width,
            height: params.height,
        }
    }
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: c_uint,
    host: P,
    device: u64,
    array: P,
    reserved: P,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub(crate) struct Copy3d {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
    depth: usize,
}

impl Copy3d {
    /// Bytes in a line, device to device.
    pub(crate) fn line(to: u64, from: u64, bytes: usize) -> Self {
        /// `CU_MEMORYTYPE_DEVICE`.
        const DEVICE: c_uint = 2;
        let side = |device| Side {
            x: 0,
            y: 0,
            z: 0,
            lod: 0,
            kind: DEVICE,
            host: NONE,
            device,
            array: NONE,
            reserved: NONE,
            pitch: bytes,
            height: 1,
        };
        Self {
            from: side(from),
            to: side(to),
            width: bytes,
            height: 1,
            depth: 1,
        }
    }
}
const _: () = assert!(size_of::<Copy3d>() == 200 && size_of::<KernelNode>() == 72);

macro_rules! driver {
    ($( $name:ident($($type:ty),*); )*) => {
        pub(crate) struct Driver {
            $( pub(crate) $name: unsafe extern "C" fn($($type),*) -> c_int, )*
            contexts: Mutex<Vec<(c_int, usize)>>,
            _library: Library,
        }

        impl Driver {
            fn load() -> Option<Self> {
                let library = unsafe { Library::new("libcuda.so.1") }.ok()?;
                Some(Self {
                    $( $name: *unsafe { library.get(stringify!($name)) }.ok()?, )*
                    contexts: Mutex::new(Vec::new()),
                    _library: library,
                })
            }
        }
    };
}

driver! {
    cuInit(c_uint);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuDeviceTotalMem_v2(*mut usize, c_int);
    cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    cuDevicePrimaryCtxRetain(*mut P, c_int);
    cuCtxSetCurrent(P);
    cuCtxGetCurrent(*mut P);
    cuCtxSynchronize();
    cuGetErrorName(c_int, *mut *const c_char);
    cuGetErrorString(c_int, *mut *const c_char);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemHostAlloc(*mut P, usize, c_uint);
    cuMemFreeHost(P);
    cuMemHostGetDevicePointer_v2(*mut u64, P, c_uint);
    cuMemcpyAsync(u64, u64, usize, P);
    cuMemsetD8Async(u64, u8, usize, P);
    cuStreamCreate(*mut P, c_uint);
    cuStreamDestroy_v2(P);
    cuStreamSynchronize(P);
    cuStreamQuery(P);
    cuStreamWaitEvent(P, P, c_uint);
    cuEventCreate(*mut P, c_uint);
    cuEventDestroy_v2(P);
    cuEventRecord(P, P);
    cuEventSynchronize(P);
    cuEventQuery(P);
    cuEventElapsedTime(*mut f32, P, P);
    cuModuleLoadData(*mut P, *const c_void);
    cuModuleUnload(P);
    cuModuleGetFunction(*mut P, P, *const c_char);
    cuFuncGetAttribute(*mut c_int, c_int, P);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, P, c_int, usize);
    cuLaunchKernel(P, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, P, *mut P, *mut P);
    cuStreamBeginCapture_v2(P, c_int);
    cuStreamEndCapture(P, *mut P);
    cuStreamIsCapturing(P, *mut c_uint);
    cuGraphCreate(*mut P, c_uint);
    cuGraphAddKernelNode_v2(*mut P, P, *const P, usize, *const KernelNode);
    cuGraphAddMemcpyNode(*mut P, P, *const P, usize, *const Copy3d, P);
    cuGraphAddMemsetNode(*mut P, P, *const P, usize, *const MemsetNode, P);
    cuGraphGetNodes(P, *mut P, *mut usize);
    cuGraphInstantiateWithFlags(*mut P, P, c_ulonglong);
    cuGraphLaunch(P, P);
    cuGraphUpload(P, P);
    cuGraphExecKernelNodeSetParams_v2(P, P, *const KernelNode);
    cuGraphDebugDotPrint(P, *const c_char, c_uint);
    cuGraphDestroy(P);
    cuGraphExecDestroy(P);
}

impl Driver {
    /// Make the device's primary context the thread's.
    pub(crate) fn set_current(&self, device: c_int) -> c_int {
        let mut contexts = self.contexts.lock().unwrap_or_else(|p| p.into_inner());
        let known = contexts.iter().find(|(d, _)| *d == device).map(|(_, c)| *c);
        let context = match known {
            Some(context) => context as P,
            None => {
                let mut made = null_mut();
                let code = unsafe { (self.cuDevicePrimaryCtxRetain)(&raw mut made, device) };
                if code != 0 {
                    return code;
                }
                contexts.push((device, made as usize));
                made
            }
        };
        unsafe { (self.cuCtxSetCurrent)(context) }
    }

    /// The thread's context.
    pub(crate) fn context(&self) -> P {
        let mut now = null_mut();
        unsafe { (self.cuCtxGetCurrent)(&raw mut now) };
        now
    }
}

/// The driver, initialised; `None` on a machine without one.
pub(crate) fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            let driver = Driver::load()?;
            (unsafe { (driver.cuInit)(0) } == 0).then_some(driver)
        })
        .as_ref()
}
