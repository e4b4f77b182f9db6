//! Errors on purpose, and what went wrong on the device.

use std::cell::Cell;
use std::ffi::CString;
use std::sync::Mutex;

use ds4_hip::sys::hipError_t;

thread_local! {
    /// Calls that this thread made.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// The call of this thread that fails, and how.
    static FAIL: Cell<Option<(u64, hipError_t)>> = const { Cell::new(None) };
    /// What `hipGetLastError` returns.
    static LAST: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
}

/// The words of the last fault. Each is leaked: `hipGetErrorString` promises a text for ever, and tests have few faults.
static WORDS: Mutex<Option<&'static std::ffi::CStr>> = Mutex::new(None);

/// What `ds4_testing` does, by number; its second argument and what it returns are those of the variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Control {
    /// Calls that this thread made since it last asked to [fail](Control::FailAt).
    Calls = 0,
    /// The `n`-th call from now on, counted from 1, fails; 0 for none. Bits 32.. are the `hipError_t`.
    FailAt = 1,
    /// What of this thread's is alive: allocations, streams, events, modules, graphs and their instances, added up.
    Alive = 2,
    /// Bytes the device has; what is beyond is out of memory. 0 for all the machine has.
    Memory = 3,
}

/// Count a call; the error it must return, if any.
pub(crate) fn injected() -> Option<hipError_t> {
    let call = CALLS.get() + 1;
    CALLS.set(call);
    let (at, code) = FAIL.get()?;
    (call == at).then_some(code)
}

pub(crate) fn calls() -> u64 {
    CALLS.get()
}

pub(crate) fn fail_at(call: u64, code: u32) {
    CALLS.set(0);
    FAIL.set((call > 0).then_some((call, hipError_t(code))));
}

/// Remember an error for `hipGetLastError`, as HIP does.
pub(crate) fn remember(code: hipError_t) -> hipError_t {
    if code != hipError_t::hipSuccess {
        LAST.set(code);
    }
    code
}

pub(crate) fn take_last() -> hipError_t {
    LAST.replace(hipError_t::hipSuccess)
}

/// Say what happened on the device, for `hipGetErrorString`.
pub(crate) fn tell(words: &str) {
    let text = CString::new(words.replace('\0', "?")).unwrap_or_default();
    let mut last = WORDS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    *last = Some(Box::leak(text.into_boxed_c_str()));
}

pub(crate) fn told() -> Option<&'static std::ffi::CStr> {
    *WORDS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
