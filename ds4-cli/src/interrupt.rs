//! Ctrl-C as a request to stop.

use std::ops::ControlFlow;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

static STOP: AtomicBool = AtomicBool::new(false);

/// Hear Ctrl-C from now on. A second one, before the first was heeded, ends the program at once: every file survives that.
pub(crate) fn hear() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // Without a handler Ctrl-C ends the program at once.
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(Exit::Failed as u8));
            }
        });
    });
}

/// Whether it was pressed.
pub(crate) fn is_set() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Whether it was pressed; from now on it is not.
pub(crate) fn take() -> bool {
    STOP.swap(false, Ordering::Relaxed)
}

/// It was heeded.
pub(crate) fn clear() {
    STOP.store(false, Ordering::Relaxed);
}

/// Whether to go on.
pub(crate) fn flow() -> ControlFlow<()> {
    if is_set() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Press it.
#[cfg(test)]
pub(crate) fn press() {
    STOP.store(true, Ordering::Relaxed);
}
