//! Calls with their status looked at: the layer between the generated bindings and the handles.
#![expect(unsafe_code, reason = "reads the runtime's texts")]

use std::ffi::{CStr, c_char};

use crate::{Error, Hip, sys};

/// Call a function of the runtime; its status becomes the result.
///
/// The call itself is unsafe: it stands in an `unsafe` block at the place that knows why it is right.
macro_rules! call {
    ($hip:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $hip.sys().$name.as_ref() {
            Ok(function) => $crate::call::check(&$hip, stringify!($name), function($($arg),*)),
            Err(_) => Err($hip.lacks(stringify!($name))),
        }
    };
}
pub(crate) use call;

/// A status as a result.
pub(crate) fn check(hip: &Hip, call: &'static str, status: sys::hipError_t) -> Result<(), Error> {
    if status == sys::hipError_t::hipSuccess {
        return Ok(());
    }
    Err(Error::Call {
        call,
        code: status.0,
        name: name(hip, status),
        text: text(hip, status),
    })
}

/// The status behind an error of a call.
pub(crate) fn status(error: &Error) -> Option<sys::hipError_t> {
    match error {
        Error::Call { code, .. } => Some(sys::hipError_t(*code)),
        _ => None,
    }
}

/// The name of a status, for instance `hipErrorOutOfMemory`.
pub(crate) fn name(hip: &Hip, status: sys::hipError_t) -> Box<str> {
    match hip.sys().hipGetErrorName.as_ref() {
        // SAFETY: takes a number and returns a text of the library's own, which stays loaded; unknown numbers have one too.
        Ok(function) => said(unsafe { function(status) }),
        Err(_) => "no name".into(),
    }
}

/// The meaning of a status.
pub(crate) fn text(hip: &Hip, status: sys::hipError_t) -> Box<str> {
    match hip.sys().hipGetErrorString.as_ref() {
        // SAFETY: as for the name.
        Ok(function) => said(unsafe { function(status) }),
        Err(_) => "no text".into(),
    }
}

fn said(text: *const c_char) -> Box<str> {
    if text.is_null() {
        return "no text".into();
    }
    // SAFETY: the runtime's texts are constants that end in a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into()
}
