//! A stand-in for `libamdhip64`, compiled by `load.rs` beside it: it knows two functions and returns what it was built with.

const fn number(text: &str) -> i32 {
    let (mut value, mut i) = (0, 0);
    while i < text.len() {
        value = 10 * value + (text.as_bytes()[i] - b'0') as i32;
        i += 1;
    }
    value
}

/// # Safety
/// `version` must be valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRuntimeGetVersion(version: *mut i32) -> i32 {
    unsafe { *version = number(env!("LOOKALIKE_VERSION")) };
    0
}

/// # Safety
/// `count` must be valid for a write.
#[cfg(not(without_device_count))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceCount(count: *mut i32) -> i32 {
    unsafe { *count = number(env!("LOOKALIKE_DEVICES")) };
    number(env!("LOOKALIKE_STATUS"))
}
