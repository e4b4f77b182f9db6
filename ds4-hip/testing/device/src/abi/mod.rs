//! The C functions: arguments checked, work handed to the device.
//!
//! Every function takes the device and then what its prototype in HIP's header says; [`lookalike!`](crate::lookalike) exports
//! them and lets the compiler compare the prototypes with the bindings.
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "the names and the contracts are those of HIP's header"
)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use ds4_hip::sys::*;

use crate::Device;
use crate::device::{Function, State};
use crate::faults::{self, Control};
use crate::queue::{Event, Stream, Work};

mod graphs;

pub use graphs::*;

/// `HIP_VERSION` of the header that the bindings come from.
const VERSION: c_int = 70_125_424;

type E = hipError_t;

/// One call: counted, made to fail where that was asked for, its error remembered.
fn enter(work: impl FnOnce() -> Result<(), E>) -> E {
    let status = match faults::injected() {
        Some(code) => code,
        None => work().err().unwrap_or(E::hipSuccess),
    };
    faults::remember(status)
}

/// A call that gives something back: that is done also when the call is made to fail, or tests could not tell a leak.
fn leave(work: impl FnOnce() -> Result<(), E>) -> E {
    let injected = faults::injected();
    let done = work().err().unwrap_or(E::hipSuccess);
    faults::remember(injected.unwrap_or(done))
}

/// Write a result through a pointer of the caller.
unsafe fn out<T>(to: *mut T, value: T) -> Result<(), E> {
    if to.is_null() {
        return Err(E::hipErrorInvalidValue);
    }
    // SAFETY: not null, and the caller of the C function promised a place for it.
    unsafe { to.write(value) };
    Ok(())
}

pub unsafe fn hipInit(_: &Device, _flags: c_uint) -> E {
    enter(|| Ok(()))
}

pub unsafe fn hipRuntimeGetVersion(_: &Device, version: *mut c_int) -> E {
    // SAFETY: the caller's promise.
    enter(|| unsafe { out(version, VERSION) })
}

pub unsafe fn hipGetDeviceCount(_: &Device, count: *mut c_int) -> E {
    // SAFETY: the caller's promise.
    enter(|| unsafe { out(count, 1) })
}

pub unsafe fn hipSetDevice(_: &Device, device: c_int) -> E {
    enter(|| match device {
        0 => Ok(()),
        _ => Err(E::hipErrorInvalidDevice),
    })
}

pub unsafe fn hipGetDevicePropertiesR0600(
    d: &Device,
    props: *mut hipDeviceProp_tR0600,
    device: c_int,
) -> E {
    enter(|| {
        if device != 0 {
            return Err(E::hipErrorInvalidDevice);
        }
        let mut filled = hipDeviceProp_tR0600 {
            totalGlobalMem: d.state().total(),
            sharedMemPerBlock: 65_536,
            warpSize: 32,
            maxThreadsPerBlock: 1024,
            multiProcessorCount: std::thread::available_parallelism()
                .map_or(1, |n| c_int::try_from(n.get()).unwrap_or(c_int::MAX)),
            integrated: 1,
            canMapHostMemory: 1,
            ..Default::default()
        };
        write_text(&mut filled.name, &d.executor.name());
        write_text(&mut filled.gcnArchName, d.executor.arch());
        // SAFETY: the caller's promise.
        unsafe { out(props, filled) }
    })
}

pub unsafe fn hipMemGetInfo(d: &Device, free: *mut usize, total: *mut usize) -> E {
    enter(|| {
        let state = d.state();
        let all = state.total();
        // SAFETY: the caller's promise.
        unsafe { out(free, all.saturating_sub(state.memory.used())) }?;
        // SAFETY: the caller's promise.
        unsafe { out(total, all) }
    })
}

pub unsafe fn hipDeviceSynchronize(d: &Device) -> E {
    enter(|| d.state().synchronize())
}

pub unsafe fn hipGetErrorName(_: &Device, error: E) -> *const c_char {
    name(error).as_ptr()
}

pub unsafe fn hipGetErrorString(_: &Device, error: E) -> *const c_char {
    match faults::told() {
        Some(words)
            if matches!(
                error,
                E::hipErrorLaunchFailure | E::hipErrorInvalidImage | E::hipErrorNoBinaryForGpu
            ) =>
        {
            words.as_ptr()
        }
        _ => name(error).as_ptr(),
    }
}

pub unsafe fn hipGetLastError(_: &Device) -> E {
    faults::take_last()
}

pub unsafe fn hipMalloc(d: &Device, to: *mut *mut c_void, bytes: usize) -> E {
    enter(|| {
        let at = d.state().allocate(bytes)?;
        // SAFETY: the caller's promise.
        unsafe { out(to, at) }
    })
}

pub unsafe fn hipFree(d: &Device, at: *mut c_void) -> E {
    leave(|| d.state().free(at as usize))
}

pub unsafe fn hipHostMalloc(d: &Device, to: *mut *mut c_void, bytes: usize, _flags: c_uint) -> E {
    // SAFETY: the caller's promise is the same.
    unsafe { hipMalloc(d, to, bytes) }
}

pub unsafe fn hipHostFree(d: &Device, at: *mut c_void) -> E {
    leave(|| d.state().free(at as usize))
}

pub unsafe fn hipHostGetDevicePointer(
    d: &Device,
    to: *mut *mut c_void,
    at: *mut c_void,
    _flags: c_uint,
) -> E {
    enter(|| {
        if d.state().memory.find(at as usize).is_none() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: the caller's promise.
        unsafe { out(to, at) }
    })
}

pub unsafe fn hipMemcpyAsync(
    d: &Device,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> E {
    enter(|| {
        let mut state = d.state();
        let (to, from) = (to as usize, from as usize);
        if !state.copyable(to, from, bytes, kind) {
            return Err(E::hipErrorInvalidValue);
        }
        state.put(stream as usize, Work::Copy { to, from, bytes })
    })
}

pub unsafe fn hipMemsetAsync(
    d: &Device,
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: hipStream_t,
) -> E {
    enter(|| {
        let mut state = d.state();
        if !state.memory.contains(to as usize, bytes) {
            return Err(E::hipErrorInvalidValue);
        }
        let fill = Work::Fill {
            to: to as usize,
            // HIP sets each byte to the lowest of the value.
            byte: value.to_le_bytes()[0],
            bytes,
        };
        state.put(stream as usize, fill)
    })
}

pub unsafe fn hipStreamCreateWithFlags(d: &Device, to: *mut hipStream_t, _flags: c_uint) -> E {
    enter(|| {
        let handle = State::insert(|s| &mut s.streams, &mut d.state(), Stream::default());
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipStream_t) }
    })
}

pub unsafe fn hipStreamDestroy(d: &Device, stream: hipStream_t) -> E {
    leave(|| {
        let mut state = d.state();
        let done = state.drain(stream as usize, usize::MAX);
        state.streams.remove(stream as usize)?;
        done
    })
}

pub unsafe fn hipStreamSynchronize(d: &Device, stream: hipStream_t) -> E {
    enter(|| {
        let mut state = d.state();
        if state.streams.get(stream as usize)?.capture.is_some() {
            return Err(E::hipErrorStreamCaptureUnsupported);
        }
        state.drain(stream as usize, usize::MAX)
    })
}

/// Does one thing of the stream a call: programs meet `hipErrorNotReady`.
pub unsafe fn hipStreamQuery(d: &Device, stream: hipStream_t) -> E {
    enter(|| {
        let mut state = d.state();
        if state.streams.get(stream as usize)?.capture.is_some() {
            return Err(E::hipErrorStreamCaptureUnsupported);
        }
        if state.streams.get(stream as usize)?.work.is_empty() {
            return Ok(());
        }
        state.drain(stream as usize, 1)?;
        Err(E::hipErrorNotReady)
    })
}

pub unsafe fn hipStreamWaitEvent(
    d: &Device,
    stream: hipStream_t,
    event: hipEvent_t,
    _flags: c_uint,
) -> E {
    enter(|| d.state().wait(stream as usize, event as usize))
}

pub unsafe fn hipEventCreateWithFlags(d: &Device, to: *mut hipEvent_t, flags: c_uint) -> E {
    /// `hipEventDisableTiming`.
    const NO_TIME: c_uint = 2;
    enter(|| {
        let event = Event {
            timed: flags & NO_TIME == 0,
            ..Event::default()
        };
        let handle = State::insert(|s| &mut s.events, &mut d.state(), event);
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipEvent_t) }
    })
}

pub unsafe fn hipEventDestroy(d: &Device, event: hipEvent_t) -> E {
    leave(|| {
        let mut state = d.state();
        // Who waits for it must not wait for ever.
        let recorded = state.events.get(event as usize)?.recorded;
        let done = state.reach(event as usize, recorded);
        state.events.remove(event as usize)?;
        done
    })
}

pub unsafe fn hipEventRecord(d: &Device, event: hipEvent_t, stream: hipStream_t) -> E {
    enter(|| d.state().record(event as usize, stream as usize))
}

pub unsafe fn hipEventSynchronize(d: &Device, event: hipEvent_t) -> E {
    enter(|| {
        let mut state = d.state();
        let recorded = state.events.get(event as usize)?.recorded;
        state.reach(event as usize, recorded)
    })
}

pub unsafe fn hipEventQuery(d: &Device, event: hipEvent_t) -> E {
    enter(|| {
        let mut state = d.state();
        let found = state.events.get(event as usize)?;
        let (recorded, reached, stream) = (found.recorded, found.reached, found.stream);
        if reached >= recorded {
            return Ok(());
        }
        state.drain(stream, 1)?;
        Err(E::hipErrorNotReady)
    })
}

pub unsafe fn hipEventElapsedTime(
    d: &Device,
    to: *mut f32,
    start: hipEvent_t,
    end: hipEvent_t,
) -> E {
    enter(|| {
        let mut state = d.state();
        let mut when = |event: hipEvent_t| {
            let event = state.events.get(event as usize)?;
            match (event.timed, event.at) {
                (true, Some(at)) if event.reached == event.recorded => Ok(at),
                (true, Some(_)) => Err(E::hipErrorNotReady),
                _ => Err(E::hipErrorInvalidHandle),
            }
        };
        let (from, until) = (when(start)?, when(end)?);
        let ms = until.saturating_duration_since(from).as_secs_f32() * 1e3;
        // SAFETY: the caller's promise.
        unsafe { out(to, ms) }
    })
}

pub unsafe fn hipModuleLoadData(d: &Device, to: *mut hipModule_t, image: *const c_void) -> E {
    enter(|| {
        // SAFETY: the caller promised a whole image.
        let Some(image) = (unsafe { elf(image.cast()) }) else {
            faults::tell("the image is no ELF file");
            return Err(E::hipErrorInvalidImage);
        };
        let code = d.executor.load(image).map_err(|what| {
            faults::tell(&what);
            E::hipErrorNoBinaryForGpu
        })?;
        let handle = State::insert(|s| &mut s.modules, &mut d.state(), code);
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipModule_t) }
    })
}

pub unsafe fn hipModuleUnload(d: &Device, module: hipModule_t) -> E {
    leave(|| {
        let mut state = d.state();
        let done = state.synchronize();
        state.modules.remove(module as usize)?;
        state.forget_functions(module as usize);
        done
    })
}

pub unsafe fn hipModuleGetFunction(
    d: &Device,
    to: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> E {
    enter(|| {
        if name.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: the caller promised a text that ends in a zero byte.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let mut state = d.state();
        let found = state.modules.get(module as usize)?.kernel(&name);
        let Some(program) = found else {
            return Err(E::hipErrorNotFound);
        };
        let function = Function {
            program: Arc::from(program),
            name: name.as_ref().into(),
            module: module as usize,
        };
        let handle = State::insert(|s| &mut s.functions, &mut state, function);
        // SAFETY: the caller's promise.
        unsafe { out(to, handle as hipFunction_t) }
    })
}

pub unsafe fn hipFuncGetAttribute(
    d: &Device,
    to: *mut c_int,
    attribute: hipFunction_attribute,
    function: hipFunction_t,
) -> E {
    enter(|| {
        let needs = d.state().functions.get(function as usize)?.program.needs();
        let value = match attribute {
            hipFunction_attribute::HIP_FUNC_ATTRIBUTE_NUM_REGS => needs.registers,
            hipFunction_attribute::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => needs.lds_bytes,
            hipFunction_attribute::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => needs.scratch_bytes,
            hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => needs.max_block,
            _ => return Err(E::hipErrorInvalidValue),
        };
        // SAFETY: the caller's promise.
        unsafe { out(to, c_int::try_from(value).unwrap_or(c_int::MAX)) }
    })
}

pub unsafe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    d: &Device,
    to: *mut c_int,
    function: hipFunction_t,
    block: c_int,
    _lds: usize,
) -> E {
    enter(|| {
        d.state().functions.get(function as usize)?;
        if block <= 0 {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: the caller's promise. One processor of ours runs one block.
        unsafe { out(to, 1) }
    })
}

pub unsafe fn hipModuleLaunchKernel(
    d: &Device,
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
    extra: *mut *mut c_void,
) -> E {
    enter(|| {
        let node = hipKernelNodeParams {
            blockDim: dim3 {
                x: block_x,
                y: block_y,
                z: block_z,
            },
            extra,
            func: function.cast(),
            gridDim: dim3 {
                x: grid_x,
                y: grid_y,
                z: grid_z,
            },
            kernelParams: params,
            sharedMemBytes: lds,
        };
        let mut state = d.state();
        // SAFETY: the caller promised the arguments of this kernel.
        let work = unsafe { kernel(&mut state, &node) }?;
        state.put(stream as usize, work)
    })
}

/// What tests ask of the device beside HIP's functions; see [`Control`].
pub fn control(d: &Device, what: u32, value: u64) -> u64 {
    match what {
        w if w == Control::Calls as u32 => faults::calls(),
        w if w == Control::FailAt as u32 => {
            faults::fail_at(value & u64::from(u32::MAX), (value >> 32) as u32);
            0
        }
        w if w == Control::Alive as u32 => d.state().alive() as u64,
        w if w == Control::Memory as u32 => {
            d.state().limit = usize::try_from(value).unwrap_or(usize::MAX);
            0
        }
        _ => u64::MAX,
    }
}

/// A launch as work, its arguments copied.
pub(super) unsafe fn kernel(state: &mut State, params: &hipKernelNodeParams) -> Result<Work, E> {
    let flat = |d: dim3| d.y == 1 && d.z == 1 && d.x > 0;
    if !params.extra.is_null()
        || params.sharedMemBytes != 0
        || !flat(params.gridDim)
        || !flat(params.blockDim)
        || params.blockDim.x > 1024
    {
        return Err(E::hipErrorInvalidValue);
    }
    let function = state.functions.get(params.func as usize)?;
    let limit = function.program.needs().max_block;
    if limit > 0 && params.blockDim.x > limit {
        return Err(E::hipErrorInvalidValue);
    }
    let sizes = function.program.argument_bytes();
    if !sizes.is_empty() && params.kernelParams.is_null() {
        return Err(E::hipErrorInvalidValue);
    }
    let mut arguments = Vec::with_capacity(sizes.len());
    for (i, &bytes) in sizes.iter().enumerate() {
        // SAFETY: the caller promised one pointer for each argument of the kernel.
        let at = unsafe { *params.kernelParams.add(i) };
        if at.is_null() {
            return Err(E::hipErrorInvalidValue);
        }
        // SAFETY: and that each points at a value of the argument's size.
        let value = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), bytes as usize) };
        arguments.push(value.into());
    }
    Ok(Work::Kernel {
        program: Arc::clone(&function.program),
        name: Arc::clone(&function.name),
        grid: params.gridDim.x,
        block: params.blockDim.x,
        arguments,
    })
}

/// An ELF file in memory, as long as its tables say. `None` for anything else.
unsafe fn elf<'a>(image: *const u8) -> Option<&'a [u8]> {
    const HEADER: usize = 64;
    if image.is_null() {
        return None;
    }
    // SAFETY: the caller promised an image; the shortest there is has as many bytes as are looked at one after the other.
    let magic = |i: usize| unsafe { *image.add(i) };
    if !b"\x7fELF\x02\x01"
        .iter()
        .enumerate()
        .all(|(i, &b)| magic(i) == b)
    {
        return None;
    }
    // SAFETY: a file that begins like this has a header of 64 bytes.
    let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let mut table = [0; 8];
    table.copy_from_slice(&header[40..48]);
    let end = u64::from_le_bytes(table).checked_add(u16_at(58) * u16_at(60))?;
    let end = usize::try_from(end).ok().filter(|&end| end >= HEADER)?;
    // SAFETY: linkers put the section table last, so that the file ends where it does.
    Some(unsafe { std::slice::from_raw_parts(image, end) })
}

fn write_text(to: &mut [c_char], text: &str) {
    let room = to.len() - 1;
    for (to, from) in to.iter_mut().zip(text.bytes().take(room)) {
        *to = from.cast_signed();
    }
}

fn name(error: E) -> &'static CStr {
    match error {
        E::hipSuccess => c"hipSuccess",
        E::hipErrorInvalidValue => c"hipErrorInvalidValue",
        E::hipErrorOutOfMemory => c"hipErrorOutOfMemory",
        E::hipErrorNoDevice => c"hipErrorNoDevice",
        E::hipErrorInvalidDevice => c"hipErrorInvalidDevice",
        E::hipErrorInvalidImage => c"hipErrorInvalidImage",
        E::hipErrorNoBinaryForGpu => c"hipErrorNoBinaryForGpu",
        E::hipErrorFileNotFound => c"hipErrorFileNotFound",
        E::hipErrorInvalidHandle => c"hipErrorInvalidHandle",
        E::hipErrorIllegalState => c"hipErrorIllegalState",
        E::hipErrorNotFound => c"hipErrorNotFound",
        E::hipErrorNotReady => c"hipErrorNotReady",
        E::hipErrorLaunchFailure => c"hipErrorLaunchFailure",
        E::hipErrorStreamCaptureUnsupported => c"hipErrorStreamCaptureUnsupported",
        E::hipErrorStreamCaptureUnjoined => c"hipErrorStreamCaptureUnjoined",
        E::hipErrorStreamCaptureMerge => c"hipErrorStreamCaptureMerge",
        E::hipErrorStreamCaptureIsolation => c"hipErrorStreamCaptureIsolation",
        _ => c"hipErrorUnknown",
    }
}
